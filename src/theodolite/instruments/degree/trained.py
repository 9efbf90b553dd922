"""Networks of product blocks of every degree, trained at equal budget: T₂, T₃, T₄ … on a task or on a real set.

A learning rate is chosen for every degree (and problem) on seeds of its own, by validation loss; fresh seeds are then
trained at it. Seeds, rates and problems of one shape of network are one batched call.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

import torch
from scipy import stats
from torch import Tensor

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.instruments.degree.descent import Descent, Examples, Member, Reached, train_members
from theodolite.instruments.degree.product_shapes import Degree, Shape, shape_of
from theodolite.instruments.degree.real_data import REAL_SETS, real_examples
from theodolite.measurement import seed_of
from theodolite.statistics.intervals import mean_interval
from theodolite.tasks.contract import Task, make_task

RATES = (0.001, 0.003, 0.01, 0.03)
_ENOUGH = 6  # values whose range holds the median with 95 %: 1 − 2/2^6
_FACTOR = 3.0  # between one rate and the next, where the grid is extended
_VALIDATION, _TEST = 1024, 4096  # rows of a task
_AT_ONCE = 1 << 15  # rows drawn in one call: a task may need far more numbers a row than it gives out
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Problem:
    """A registered task on vectors with its fields, or a real set by name. Where the task numbers its functions by a
    field `draw` that is not set here, every seed has a function of its own, the same for all networks."""

    task: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seeds:
    """How many members each choice of a rate and each final figure rest on; how often a grid may be extended."""

    final: int = 16
    tuning: int = 4
    extensions: int = 2

    def __post_init__(self) -> None:
        for name, least in (("final", 2), ("tuning", 1), ("extensions", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise BadInput(f"{name} seeds must be a whole number of at least {least}, not {value!r}")


@dataclass(frozen=True)
class Prepared:
    """The examples of several problems of one kind, one source per problem and seed, those for tuning apart."""

    problems: tuple[Problem, ...]
    seeds: Seeds
    tuning: Examples
    final: Examples
    seed: int
    device: torch.device


def train_degrees(
    degrees: Sequence[Degree] = (2, 3, 4),
    budget: int = 12,
    width: int = 16,
    task: str = "prescribed-rank",
    task_args: Mapping[str, Any] | None = None,
    seeds: int = 16,
    steps: int = 1000,
    rates: Sequence[float] = RATES,
    device: str = "cpu",
    progress: Progress | None = None,
    tuning: int = 4,
    batch: int = 128,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One row per degree, of plain JSON: `error` is the median over seeds of the test error (the share of the target's
    variance that is left, or the share of wrong classes), `interval` its 95 % interval from order statistics
    (`interval_kind`; of fewer than 6 seeds the range);
    `mean_log_error` with `log_interval` is what comparisons use. `task` may be digits or diabetes too."""
    descent, counts = Descent(steps, batch), Seeds(seeds, tuning)
    prepared = prepare([Problem(task, task_args or {})], counts, descent, seed, resolve_device(device))
    rows = []
    for degree in degrees:
        shape = shape_of(degree, budget, width, prepared.final.features, prepared.final.outputs)
        share = lambda part, name=shape.degree: progress(f"degree {name}", part / len(degrees)) if progress else None
        rows += [{"budget": budget, **row} for row in train_shape(shape, prepared, descent, rates, share)]
    return rows


def prepare(problems: Sequence[Problem], seeds: Seeds, descent: Descent, seed: int, device: torch.device) -> Prepared:
    """Draw what all networks of a comparison learn from."""
    parts = {
        part: Examples.join([_examples(p, _numbers(part, count, seed), descent, device) for p in problems])
        for part, count in (("tuning", seeds.tuning), ("final", seeds.final))
    }
    return Prepared(tuple(problems), seeds, parts["tuning"], parts["final"], seed, device)


def train_shape(
    shape: Shape,
    prepared: Prepared,
    descent: Descent,
    rates: Sequence[float] = RATES,
    progress: Callable[[float], None] | None = None,
) -> list[dict[str, Any]]:
    """One row per problem: the rate that is best for it, then fresh seeds at that rate."""
    started = time.perf_counter()
    half = (lambda part: progress(part / 2)) if progress is not None else None
    tried = _tune(shape, prepared, descent, rates, half)
    chosen = [min(losses, key=losses.__getitem__) for losses in tried]
    count = prepared.seeds.final
    seeds = _numbers("final", count, prepared.seed)
    members = [
        Member(place * count + number, seeds[number], rate)
        for place, rate in enumerate(chosen)
        for number in range(count)
    ]
    reached = _train(shape, members, prepared, prepared.final, descent, half)
    seconds = (time.perf_counter() - started) / len(prepared.problems)
    return [
        {
            "task": problem.task,
            "task_args": dict(problem.args),
            "degree": shape.degree,
            "degrees": list(shape.degrees),
            **_real(shape),
            "depth": shape.depth,
            "width": shape.width,
            "power": shape.power,
            "parameters": shape.parameters,
            "off_budget": round(shape.off, 6),
            "note": shape.note,
            "rate": chosen[place],
            "at_edge": chosen[place] in (min(tried[place]), max(tried[place])),
            "tuning": {f"{rate:g}": loss for rate, loss in sorted(tried[place].items())},
            "steps": descent.steps,
            "batch": descent.batch,
            **summary(reached[place * count : (place + 1) * count], _least(prepared.final)),
            "seconds": round(seconds, 3),
        }
        for place, problem in enumerate(prepared.problems)
    ]


def _real(shape: Shape) -> dict[str, Any]:
    """What the built net has; exponents that are learnt have no degree to tell before training."""
    if shape.power == "learnt":
        return {"block_degrees": None, "total_degree": None, "matrices": None}
    blocks = shape.blocks()
    return {"block_degrees": list(blocks.degrees), "total_degree": blocks.total, "matrices": blocks.matrices}


def summary(reached: Sequence[Reached], least: float) -> dict[str, Any]:
    """Over seeds; an error of 0 counts as `least` where its logarithm is taken."""
    errors = [r.error for r in reached]
    logs = [math.log(max(error, least)) for error in errors]
    return {
        "seeds": len(errors),
        "error": statistics.median(errors),
        "interval": list(_median_interval(errors)),
        "interval_kind": "95 %" if len(errors) >= _ENOUGH else "range",
        "mean_log_error": statistics.fmean(logs),
        "log_interval": list(mean_interval(logs) or (-math.inf, math.inf)),
        "errors": errors,
        "log_errors": logs,
        "losses": [r.loss for r in reached],
        "diverged": sum(r.diverged for r in reached) / len(reached),
    }


def _tune(
    shape: Shape,
    prepared: Prepared,
    descent: Descent,
    rates: Sequence[float],
    progress: Callable[[float], None] | None,
) -> list[dict[float, float]]:
    """Of every problem the mean logarithm of the validation loss by rate. Where the best rate is the lowest or the
    highest that was tried, one beyond it is tried too."""
    if not rates or any(not 0 < rate < math.inf for rate in rates):
        raise BadInput(f"learning rates must be positive numbers, at least one, not {list(rates)}")
    count = prepared.seeds.tuning
    seeds = _numbers("tuning", count, prepared.seed)
    found: list[dict[float, float]] = [{} for _ in prepared.problems]
    asked = [list(dict.fromkeys(float(rate) for rate in rates)) for _ in prepared.problems]
    for extension in range(prepared.seeds.extensions + 1):
        members = [
            Member(place * count + number, seeds[number], rate)
            for place, own in enumerate(asked)
            for rate in own
            for number in range(count)
        ]
        watched = progress if extension == 0 else None
        reached = iter(_train(shape, members, prepared, prepared.tuning, descent, watched))
        for place, own in enumerate(asked):
            for rate in own:
                losses = [next(reached).validation for _ in range(count)]
                found[place][rate] = statistics.fmean(math.log(max(loss, 1e-12)) for loss in losses)
        asked = [_beyond(losses) for losses in found]
        if not any(asked):
            break
    return found


def _beyond(losses: Mapping[float, float]) -> list[float]:
    best = min(losses, key=losses.__getitem__)
    if best == max(losses):
        return [float(f"{best * _FACTOR:.3g}")]
    return [float(f"{best / _FACTOR:.3g}")] if best == min(losses) else []


def _train(
    shape: Shape,
    members: Sequence[Member],
    prepared: Prepared,
    examples: Examples,
    descent: Descent,
    progress: Callable[[float], None] | None,
) -> list[Reached]:
    build = lambda: shape.build(examples.features, examples.outputs)
    return train_members(build, members, examples, descent, prepared.device, prepared.seed, progress)


def _numbers(part: str, count: int, seed: int) -> list[int]:
    return [seed_of([seed, part, number]) for number in range(count)]


def _examples(problem: Problem, seeds: Sequence[int], descent: Descent, device: torch.device) -> Examples:
    if problem.task in REAL_SETS:
        if problem.args:
            raise BadInput(f"the real set '{problem.task}' has no fields to set: leave out {', '.join(problem.args)}")
        return real_examples(problem.task, seeds, device)
    own = [_task(problem, seed) for seed in seeds]
    spec = own[0].spec
    if spec.kind != "vector" or spec.loss != "square" or spec.vocab is not None:
        raise BadInput(
            f"the task '{problem.task}' is no regression on vectors, which networks of product blocks are compared "
            "on: use prescribed-rank, digits or diabetes"
        )
    sizes = (descent.steps * descent.batch, _VALIDATION, _TEST)
    drawn = [
        _draw(task, sum(sizes), torch.Generator(device).manual_seed(seed))
        for task, seed in zip(own, seeds, strict=True)
    ]
    train, validation, test = (
        (
            torch.stack([inputs.split(sizes)[part] for inputs, _ in drawn]),
            torch.stack([targets.split(sizes)[part] for _, targets in drawn]),
        )
        for part in range(3)
    )
    return Examples(train, validation, test, "square", spec.outputs, True, constant=1.0, constant_error=1.0)


def _task(problem: Problem, seed: int) -> Task:
    """Tasks that number their functions by `draw` give every seed another, unless the problem says which."""
    task = make_task(problem.task, problem.args)
    if "draw" not in problem.args and any(f.name == "draw" for f in fields(cast("Any", task))):
        return make_task(problem.task, {**problem.args, "draw": seed % 2**31})
    return task


def _draw(task: Task, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs as the nets like them: of mean 0 and variance 1."""
    batches = [task.sample(1, min(_AT_ONCE, rows - start), None, generator) for start in range(0, rows, _AT_ONCE)]
    inputs, targets = (torch.cat([getattr(b, name)[0] for b in batches]) for name in ("inputs", "targets"))
    return (inputs - inputs.mean(dim=0)) / inputs.std(dim=0), targets


def _least(examples: Examples) -> float:
    """Half a wrong answer where answers are counted, the rounding of float32 where they are numbers."""
    return 0.5 / examples.test[0].shape[1] if examples.loss == "cross-entropy" else 1e-12


def _median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median with 95 % at least; the range of few values."""
    ordered, count = sorted(values), len(values)
    below = max(0, int(stats.binom.ppf(0.025, count, 0.5)) - 1)
    return ordered[below], ordered[count - 1 - below]


def measure_degree_training(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: degrees, budget, width, problems (pairs of task and fields), seeds, tuning, steps, batch, rates. One list
    of rows: every degree on every problem."""
    descent, counts = Descent(config["steps"], config["batch"]), Seeds(config["seeds"], config["tuning"])
    problems = [Problem(name, args) for name, args in config["problems"]]
    prepared = prepare(problems, counts, descent, seed, resolve_device(device))
    rows = []
    for degree in config["degrees"]:
        sizes = (prepared.final.features, prepared.final.outputs)
        shape = shape_of(degree, config["budget"], config["width"], *sizes)
        rows += train_shape(shape, prepared, descent, config["rates"])
    return {"rows": rows}
