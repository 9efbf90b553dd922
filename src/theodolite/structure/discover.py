"""From a table or a black box to a graph, to a network of it, and to what both are worth."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.nets.from_file import named_in_file
from theodolite.notebook import watching
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.statistics.paired import above_zero
from theodolite.structure.conformal import COVERAGE, half_width
from theodolite.structure.data.black_box import CallableSource
from theodolite.structure.data.coding import learn_coding
from theodolite.structure.data.source import Array, Hurried, OutOfTime
from theodolite.structure.data.tables import LEAST_ROWS, Samples, Table, read_table
from theodolite.structure.ebm import ebm_losses, require_ebm
from theodolite.structure.fit.confirm import Confirmation, confirm
from theodolite.structure.fit.effort import effort_named
from theodolite.structure.fit.guide import Guide
from theodolite.structure.progress import Progress, part_of
from theodolite.structure.result import Discovery, Found
from theodolite.structure.search.pairs import pairs_of
from theodolite.structure.search.search import search
from theodolite.structure.settle import CLOSE, settle
from theodolite.structure.stacking import Others, others_ahead, stacked
from theodolite.structure.surrogate.evidence import gather

Rows = TypeVar("Rows", Samples, Table)
TEST_SHARE = 0.2
MOST_ROWS = 20_000  # of a table, unless more are asked for
POINTS = 2_000  # of a black box, to fit networks to
SEARCHED = 0.5  # of the time, about, when a black box has been
_SEARCHED = {
    True: "no structure shows: every variable that matters enters one function with all the others",
    False: "finite differences show the graph; no network was fitted to confirm it",
}
log = logging.getLogger(__name__)


def discover(
    data: Any,
    target: str | int | None = None,
    *,
    ranges: Any = None,
    variables: int | Sequence[str] | None = None,
    rows: int | None = None,
    seed: int = 0,
    effort: str = "auto",
    seconds: float | None = None,
    boosting: bool = True,
    process: bool = True,
    additive: bool = False,
    fit: bool = True,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    header: bool = True,
    progress: Progress | None = None,
) -> Discovery:
    """Which variables enter which constituent function, and a network of that graph.

    A fifth of the rows is held out at the start, and nothing is chosen by it: it measures the errors.

    Parameters:
        data: a table (a path to .csv, .tsv or .parquet, a data frame, a pair (x, y) or a 2-D array) or a black box (a
            function from points (point, variable) to values, or 'file.py:function')
        target: of a table: the name or index of the column to explain
        ranges: of a black box: (low, high) for each variable, by name or in order, or one for all
        variables: of a black box: how many, or their names
        rows: drawn from a table that has more; the points of a black box that networks are fitted to
        seed: the same finds the same, unless `seconds` cuts in
        effort: auto, quick, standard or thorough
        seconds: end fitting about so long after the start
        boosting: measure gradient boosting beside the networks, and let it take part in what predicts
        process: let a Gaussian process take part in what predicts, which then holds the training rows
        additive: measure another additive model, EBM, too; needs `interpret-core`, and about half a minute
        fit: False asks a black box for its graph alone
        drop: columns to leave out
        categories: columns of numbers that are names, as codes are; words always are categories
        header: whether the file has names of columns
        progress: gets (done, total, label), in seconds where these are limited

    Examples:
        >>> box = lambda points: np.tanh(points[:, 0] * points[:, 1]) + points[:, 2] ** 2
        >>> found = discover(box, ranges=(-1, 1), variables=3, fit=False)
        >>> found.graph.edges
        (('x1', 'h1'), ('x2', 'h1'), ('h1', 'y'), ('x3', 'y'))
    """
    started = time.monotonic()
    if rows is not None and rows < LEAST_ROWS:
        raise BadInput(f"{rows} rows are too few to hold some out for a test: use at least {LEAST_ROWS}")
    if additive:
        require_ebm()
    effort_named(effort, LEAST_ROWS)  # refused now if it is unknown, not after a search
    progress = progress or watching()
    report = _silent if progress is None else progress if seconds is None else _by_the_clock(progress, seconds)
    work = _Work(np.random.default_rng(seed), effort, seconds, boosting, process, additive, seed, report)
    function, name = _black_box(data)
    if function is None:
        if ranges is not None or not fit:
            given = "--range (ranges)" if ranges is not None else "--graph-only (fit=False)"
            raise BadInput(f"{given} goes with a black box, a function named as file.py:function, and this is a table")
        if isinstance(variables, int):
            raise BadInput(
                f"a table has its own columns, not {variables} variables: leave out the count, or give names"
            )
        table = read_table(
            *(data, target),
            variables=variables,
            drop=drop,
            categories=categories,
            header=header,
            draw=lambda count: _fewer(count, rows or MOST_ROWS, work.generator),
        )
        found = _from_table(table, work)
    else:
        if drop or categories or not header:
            raise BadInput("a function has no columns to drop, no categories and no header: give these with a table")
        source = CallableSource(function, *_box(ranges, variables), seed=seed, seconds=seconds)
        found = _from_function(source, str(target or name), rows or POINTS, fit, work)
    log.info("%s in %.1f s", "abstained" if found.abstained else "graph found", time.monotonic() - started)
    return found


@dataclass(frozen=True)
class _Work:
    """What every step is told."""

    generator: np.random.Generator
    effort: str
    seconds: float | None
    boosting: bool
    process: bool
    additive: bool
    seed: int
    report: Progress
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        """Seconds, of those allowed; a little is always left, so that something is fitted."""
        return None if self.seconds is None else max(0.5, self.seconds - self.elapsed)

    @property
    def late(self) -> bool:
        return self.seconds is not None and self.elapsed > self.seconds

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started


def _from_table(table: Table, work: _Work) -> Discovery:
    learnt, unseen = _split(table, work.generator)
    coding = learn_coding(learnt.columns, learnt.y)
    train, test = learnt.coded(coding, learnt=True), unseen.coded(coding)
    with others_ahead(
        *(train.x, train.y, work.generator), boosting=work.boosting, process=work.process, seconds=work.seconds
    ) as others:
        asked = settle(
            *(train.x, train.y, train.variables, work.generator),
            effort=work.effort,
            seconds=work.left,
            progress=work.report,
        )
        found = _judged("data", asked, train, test, work, {"notes": list(train.notes)}, others)
    return replace(found, coding=coding)


def _from_function(source: CallableSource, name: str, rows: int, fit: bool, work: _Work) -> Discovery:
    work.report(0, 1, "asking the black box")
    points = source.points(rows, work.generator)
    values = source.values(points)
    if np.ptp(values) == 0:
        raise BadInput(f"the black box is {values[0]:g} at all of {rows} points: there is nothing to explain")
    found = _named(_searched(source, work), name)
    if fit:
        train, test = _split(Samples(points, values, source.variables, name), work.generator)
        asked = confirm(
            *([found], train.x, train.y, work.generator),
            variables=train.variables,
            effort=work.effort,
            guide=Guide((source.values,)),
            seconds=work.left,
            progress=part_of(work.report, SEARCHED, CLOSE),
        )
        judged = _judged("black box", asked, train, test, work, {"notes": []})
        judged = replace(judged, details={**judged.details, "evaluations": source.evaluations})
        return _unconfirmed(judged, found) if judged.abstained and not found.graph.is_dense else judged
    dense = found.graph.is_dense
    return Discovery(
        target=name,
        mode="black box",
        graph=found.graph,
        abstained=dense,
        reason=_SEARCHED[dense],
        confidence=found.confidence,
        pairs=found.pairs,
        test_error=None,
        dense_test_error=None,
        boosting_test_error=None,
        model=None,
        details={
            "evaluations": source.evaluations,
            "notes": list(found.notes),
            "seed": work.seed,
            "seconds": round(work.elapsed, 3),
        },
    )


def _searched(source: CallableSource, work: _Work) -> Found:
    """The graph that the differences show; a dense one where the time for it, half of what is allowed, is over."""
    asked = source if work.left is None else Hurried(source, time.monotonic() + work.left / 2)
    try:
        return search(gather(asked, work.generator), asked, work.generator)
    except OutOfTime:
        note = f"after {source.evaluations:,} evaluations the time for the search was over, and no graph was found yet"
        return Found(CompositionalGraph.dense(source.variables), {}, {}, (note,))


def _judged(
    mode: str,
    asked: Confirmation,
    train: Samples,
    test: Samples,
    work: _Work,
    details: dict[str, Any],
    others: Others | None = None,
) -> Discovery:
    """What rows held out of the training rows chose, and what predicts, measured on the test rows."""
    trials = tuple(replace(trial, found=_named(trial.found, train.target)) for trial in asked.trials)
    chosen = None if asked.chosen is None else _named(asked.chosen, train.target)
    asked = replace(asked, chosen=chosen, trials=trials)
    late = work.late
    stack = stacked(
        *(asked.model, asked.dense, train.x, train.y, work.generator),
        boosting=work.boosting and not late,
        process=work.process and not late,
        others=others,
        report=lambda label: work.report(CLOSE, 1, label),
    )
    returned = stack.returned
    loss = lambda predict: (predict(test.x) - test.y) ** 2 / np.var(test.y)
    losses = {
        "returned": loss(returned.predict),
        "graph": loss(asked.model.predict),
        "dense": loss(asked.dense.predict),
    }
    said = [*stack.notes]
    if late and work.boosting:
        said.append("the time was over before gradient boosting could be measured")
    if stack.boosted is not None:
        losses["boosting"] = loss(stack.boosted)
        if above_zero(losses["returned"] - losses["boosting"]):
            said.append("gradient boosting is better here: on the test rows its error is lower beyond chance")
    losses |= {name: loss(stack.models[name].predict) for name in ("additive", "process") if name in stack.models}
    if work.additive:
        work.report(CLOSE, 1, "EBM")
        losses["ebm"] = ebm_losses(train.x, train.y, test.x, test.y, work.seed)
    errors = {name: float(np.mean(loss)) for name, loss in losses.items()}
    graph = _output_named(asked.dense.graph if asked.chosen is None else asked.chosen.graph, train.target)
    assert returned.held_out is not None
    residuals = np.abs(returned.held_out - train.y)
    interval = None
    if len(np.unique(train.y)) > 2:
        width = half_width(residuals)
        covered = float(np.mean(np.abs(returned.predict(test.x) - test.y) <= width))
        interval = {"coverage": COVERAGE, "half_width": width, "share_of_test_rows": covered}
    best = chosen or next((trial.found for trial in trials), None)
    pairs = {} if best is None else pairs_of(best, asked, train.x, train.y) if mode == "data" else best.pairs
    heard = [*said, *details.pop("notes"), *asked.notes, *(best.notes if best is not None else ())]
    confirmed = {key: value for key, value in asked.to_json().items() if key not in ("abstained", "reason", "seconds")}
    return Discovery(
        target=train.target,
        mode=mode,
        graph=graph,
        abstained=asked.chosen is None,
        reason=asked.reason,
        confidence={} if asked.chosen is None else asked.chosen.confidence,
        pairs=pairs,
        test_error=errors["returned"],
        dense_test_error=errors["dense"],
        boosting_test_error=errors.get("boosting"),
        model=replace(asked.model, graph=_output_named(asked.model.graph, train.target)),
        residuals=None if interval is None else residuals,
        returned=returned,
        rows=(train, test),
        details={
            "rows": {"train": len(train.y), "test": len(test.y)},
            "error_intervals": {
                name: list(percentile_interval(resampled_means(loss, work.generator))) for name, loss in losses.items()
            },
            "network_test_error": errors["graph"],
            "additive_test_error": errors.get("additive"),
            "process_test_error": errors.get("process"),
            "ebm_test_error": errors.get("ebm"),
            "held_out_errors": dict(stack.errors),
            "prediction_interval": interval,
            **confirmed,
            **details,
            "notes": list(dict.fromkeys(heard)),
            "effort": work.effort,
            "seed": work.seed,
            "seconds": round(work.elapsed, 3),
        },
    )


def _unconfirmed(judged: Discovery, found: Found) -> Discovery:
    """An abstention that does not hide what the differences showed."""
    note = (
        "finite differences do show a graph (searched_graph), but its network did not train to a lower error than a "
        "dense one; --graph-only (fit=False in Python) returns it, and --effort thorough or more --rows may confirm it"
    )
    details = {**judged.details, "searched_graph": found.graph.to_json(), "notes": [*judged.details["notes"], note]}
    return replace(judged, details=details)


def _black_box(data: Any) -> tuple[Callable[[Array], Any] | None, str]:
    """The function that is meant and its name; None for a table."""
    if isinstance(data, str) and (data.endswith(".py") or ".py:" in data):
        found = named_in_file(data).found
        if not callable(found):
            raise BadInput(f"'{data}' is no function but of type {type(found).__name__}: name a function of points")
        return found, data.rpartition(":")[2]
    if callable(data):
        name = getattr(data, "__name__", type(data).__name__)
        return data, "y" if name == "<lambda>" else name
    return None, ""


def _box(ranges: Any, variables: int | Sequence[str] | None) -> tuple[Any, Sequence[str] | None]:
    """A pair for every variable, and their names where they have any."""
    if ranges is None:
        raise BadInput(
            "a function needs the ranges of its variables: give --range x1=0:1 for each, or --variables 8 --range 0:1 "
            "(ranges= and variables= in Python)"
        )
    if isinstance(variables, int):
        if variables < 1:
            raise BadInput(f"{variables} variables are none: give a positive number, or names")
        names = [f"x{i + 1}" for i in range(variables)]
    else:
        names = None if variables is None else [str(name) for name in variables]
    if isinstance(ranges, dict) or np.ndim(ranges) != 1 or len(ranges) != 2:
        return ranges, names
    if names is None:
        raise BadInput("one range for all variables does not say how many there are: give variables= too (--variables)")
    return [tuple(ranges)] * len(names), names


def _named(found: Found, target: str) -> Found:
    """The same with the target's name for the output."""
    graph, old = _output_named(found.graph, target), found.graph.output.name
    new = graph.output.name
    return replace(
        found, graph=graph, confidence={(a, new if b == old else b): c for (a, b), c in found.confidence.items()}
    )


def _output_named(graph: CompositionalGraph, target: str) -> CompositionalGraph:
    if target in graph.variables or target in graph.node:
        return graph
    return replace(graph, nodes=(*graph.nodes[:-1], replace(graph.output, name=target)))


def _fewer(count: int, rows: int, generator: np.random.Generator) -> NDArray[np.int64] | None:
    return None if count <= rows else np.sort(generator.choice(count, rows, replace=False))


def _split(samples: Rows, generator: np.random.Generator) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to test on."""
    order = generator.permutation(len(samples.y))
    cut = round(TEST_SHARE * len(order))
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    for what, rows in (("test", test), ("training", train)):
        if np.ptp(samples.y[rows]) == 0:
            raise BadInput(
                f"the target '{samples.target}' is {samples.y[rows[0]]:g} in all {len(rows)} {what} rows: give more "
                "rows in which it varies, or another seed"
            )
    return samples.take(train), samples.take(test)


def _by_the_clock(progress: Progress, seconds: float) -> Progress:
    """Where the time is limited, how much of it is gone."""
    started = time.monotonic()
    return lambda done, total, label: progress(min(time.monotonic() - started, seconds), seconds, label)


def _silent(done: float, total: float, label: str) -> None:
    pass
