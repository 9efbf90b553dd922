"""`scale`: depth against width at equal size on a text of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.lab.campaign import Failure, Listener
from theodolite.lab.running import Running
from theodolite.lab.work import Context
from theodolite.notebook import Shown
from theodolite.scaling.estimate import estimated_seconds
from theodolite.scaling.experiment import Experiment, Planned
from theodolite.scaling.shapes import WITHIN, Net
from theodolite.scaling.valley import Transition, Valley, diverged, points, transition, valley
from theodolite.tasks.contract import make_task
from theodolite.tasks.text import Text
from theodolite.theory.domain import parse_budget
from theodolite.theory.shapes import INTERCEPT, INTERCEPT_ERROR, SLOPE, SLOPE_ERROR

DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
RATES = (1e-3, 2e-3, 4e-3)


@dataclass(frozen=True)
class Scaling(Shown):
    """What `scale` gives: a valley for every size; `left_out`: depths without a shape, shapes that no rate trained;
    `diverged`: at which rates networks did."""

    valleys: tuple[Valley, ...]
    line: Transition | None
    left_out: tuple[str, ...]
    diverged: tuple[str, ...]
    failures: tuple[Failure, ...]
    reused: int
    about: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "about": dict(self.about),
            "sizes": [v.to_json() for v in self.valleys],
            "transition": None if self.line is None else self.line.to_json(),
            "published_transition": {
                "intercept": INTERCEPT,
                "intercept_error": INTERCEPT_ERROR,
                "slope": SLOPE,
                "slope_error": SLOPE_ERROR,
                "source": "Levine et al. 2020",
            },
            "left_out": list(self.left_out),
            "diverged": list(self.diverged),
            "failures": [{"cells": len(f.cells), "reason": f.sentence} for f in self.failures],
            "reused": self.reused,
        }


def scale(
    text: str = "python",
    net: Net = "decoder",
    *,
    sizes: Sequence[int | str] = ("30k", "100k", "300k"),
    depths: Sequence[int] = DEPTHS,
    seeds: int = 4,
    seed: int = 0,
    rates: Sequence[float] = RATES,
    per_width: bool = False,
    tokens: float = 20.0,
    vocabulary: int = 256,
    context: int = 128,
    batch: int = 32,
    rows: int = 256,
    precision: str = "float32",
    shape: Mapping[str, Any] | None = None,
    within: float = WITHIN,
    running: Running = Running(),
    listener: Listener | None = None,
    before: Callable[[Planned, float], None] | None = None,
) -> Scaling:
    """Train networks of equal size and different depth on the same text, and see which depth is best at each size.

    Parameters:
        text: a file, a folder, or `python`, the library of the Python that runs
        net: `decoder`, or any net that has a depth and a width, `file.py:Name` included
        sizes: parameters without embedding and readout, such as 30k
        depths: layers; a depth that has no shape of a size is left out, and said
        seeds: networks for every shape and rate, with the seeds from `seed` on
        rates: learning rates, of which each shape has its best
        per_width: whether rates are divided by the shape's width, such as 0.1, 0.2
        tokens: a parameter, the same for all shapes of a size
        vocabulary: 256 for bytes, or more for pieces of words
        context: symbols a network sees
        batch: windows a step
        rows: windows of what is held out, on which losses are measured
        precision: of products of matrices, float32, tf32 (CUDA) or bf16
        shape: other arguments of the net, such as {"rank": 8}
        within: how far a shape may be from its size, as a share of it
        running: `Running(device="cpu", out=None, …)`: what is finished in `out` is not trained again
        listener: is told of progress and of failures
        before: is told what will be trained, and about how many seconds of one process that takes here

    Examples:
        >>> found = scale("python", sizes=[2000], depths=[1, 2], seeds=2, rates=[4e-3], tokens=2, context=16, batch=8)
        >>> [point.shape.width for point in found.valleys[0].points]
        [12, 8]
    """
    given = [parse_budget(size) if isinstance(size, str) else size for size in sizes]
    if seeds < 1:
        raise BadInput(f"seeds = {seeds} trains nothing: give at least 1")
    task = make_task("text", {"corpus": text, "vocabulary": vocabulary, "context": context})
    assert isinstance(task, Text)
    experiment = Experiment(
        net,
        task,
        given,
        tuple(depths),
        range(seed, seed + seeds),
        tuple(rates),
        tokens,
        batch,
        rows,
        precision,
        shape or {},
        within,
        per_width,
    )
    planned, device = experiment.plan(), resolve_device(running.device)
    if running.chunk is None and (chunk := planned.chunk(device)) is not None:
        running = replace(running, chunk=chunk)
    with running.open() as store:
        if before is not None:
            finished = store.finished(cell.key for cell in planned.cells)
            before(planned, estimated_seconds(planned, finished, device))
        context_ = Context(checkpoints=store.checkpoints.resolve(), locations=planned.training.locations)
        outcome = running.run(
            planned.cells,
            store,
            context_,
            listener=listener,
            weigh=lambda cell: float(
                planned.shapes[cell.key].parameters * experiment.steps(planned.shapes[cell.key].size)
            ),
        )
    found = points(outcome.rows.values(), planned.shapes, task.bits_per_byte)
    if outcome.rows and not found and not outcome.failures:
        tried = f"a rate of {min(rates):g}" if len(rates) == 1 else f"all {len(rates)} rates, the least {min(rates):g}"
        raise BadInput(f"every network diverged at {tried}: give lower ones; what was trained is kept")
    valleys = tuple(valley(list(own)) for _, own in groupby(found, key=lambda p: p.shape.size))
    trained = {(p.shape.size, p.shape.depth) for p in found}
    untrained = {(s.size, s.depth) for s in planned.shapes.values()} - trained
    lost = tuple(f"size {size:,}, depth {depth}: diverged at every rate" for size, depth in sorted(untrained))
    return Scaling(
        valleys,
        transition(valleys),
        planned.left_out + lost,
        diverged(outcome.rows.values(), planned.shapes, planned.rates),
        tuple(outcome.failures),
        outcome.reused,
        {
            "text": text,
            "digest": task.digest,
            "vocabulary": vocabulary,
            "context": context,
            "bytes_per_symbol": task.symbols.bytes_per_symbol,
            "net": str(net),
            "seeds": seeds,
            "rates": list(rates),
            "rates_per_width": per_width,
            "tokens_per_parameter": tokens,
            "batch": batch,
            "precision": precision,
            "operations": planned.operations(),
            "devices": sorted({str(row.facts["device"]) for row in outcome.rows.values() if "device" in row.facts}),
        },
    )
