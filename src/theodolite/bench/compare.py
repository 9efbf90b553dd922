"""`compare`: two choices of members, pair by pair.

Draws follow from a member's whole configuration, so equal seeds of two nets are not equal draws: pairing takes out what
rates and schedules do, and the differences of different pairs are independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from theodolite.bench.matched_pairs import pair_members
from theodolite.bench.runs import trained
from theodolite.errors import BadInput, UnknownName
from theodolite.lab.cell import Row
from theodolite.measurement import canonical
from theodolite.notebook import Shown
from theodolite.registry import unknown
from theodolite.statistics.intervals import mean_interval, paired_shares, sign_test

METRICS = {"accuracy": "accuracy", "unseen": "unseen", "steps": "solved_at"}  # and the entry of a row's result
_LEVEL = 0.05
_ROUNDING = 1e-9  # differences that differ by less, relatively, are equal

Verdict = Literal["first", "second", "undecided", "too few pairs"]


@dataclass(frozen=True)
class TaskComparison:
    """The pairs of one task. Differences are second − first; intervals and the verdict are at 95 %.

    All `pairs` count in the solved shares; the means, the difference and the wins are over the `compared` ones, which
    have the metric on both sides: a diverged member has none. `verdict` names the side whose metric is higher; where
    all differences are equal the interval has no width, and the sign test has to agree.
    """

    task: str
    task_args: Mapping[str, Any]
    pairs: int
    compared: int
    means: tuple[float, float] | None
    difference: float | None
    interval: tuple[float, float] | None
    wins: int  # of the second: a higher score, or fewer steps
    ties: int
    losses: int
    p: float  # of the sign test
    solved: tuple[int, int]
    solved_difference: float
    solved_interval: tuple[float, float]
    verdict: Verdict
    unpaired: tuple[int, int]


@dataclass(frozen=True)
class Comparison(Shown):
    """`first` is the baseline. `unpaired` counts the members without a partner, on tasks without any pair too."""

    first: str
    second: str
    metric: str
    tasks: tuple[TaskComparison, ...]
    unpaired: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    first: str, second: str, out: str | Path = "runs", *, task: str | None = None, metric: str = "accuracy"
) -> Comparison:
    """Trained members pair by pair. Those are paired that agree in task, seed, rates, optimiser and schedule, except in
    what the two sides name.

    Parameters:
        first: the baseline: a net's name, `key=value,…` or both, `lstm,width=16`
        second: what is compared with it, likewise
        out: folder of the store that `learn` wrote to
        task: only these tasks, with commas between them
        metric: accuracy, unseen (accuracy on lengths never trained on) or steps (to solve the task, where both members
            did)

    Examples:
        >>> import tempfile
        >>> from theodolite.bench.learn import learn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained = learn("mlp", "majority", seeds=3, lr=[1e-2, 1e-4], steps=9, task_args={"bits": 5}, out=folder)
        ...     compare("lr=0.0001", "lr=0.01", folder).tasks[0].pairs
        3
    """
    if metric not in METRICS:
        raise UnknownName(unknown("metric", metric, METRICS))
    rows = trained(out)
    if not rows:
        raise BadInput(f"the store in '{out}' holds no trained members yet: run 'theodolite learn' first")
    return compare_members(rows, first, second, task=task, metric=metric)


def compare_members(
    rows: Sequence[Row], first: str, second: str, *, task: str | None = None, metric: str = "accuracy"
) -> Comparison:
    """The same of rows at hand."""
    found = pair_members(rows, first, second, task, same_unseen=metric == "unseen")
    groups: dict[str, list[tuple[Row, Row]]] = {}
    for pair in found.pairs:
        groups.setdefault(_task_of(pair[0], found.named), []).append(pair)
    alone = [[_task_of(row, found.named) for row in side] for side in found.alone]
    tasks = tuple(
        _compared(pairs, metric, _shared_args(pairs[0][0], found.named), (alone[0].count(name), alone[1].count(name)))
        for name, pairs in groups.items()
    )
    return Comparison(first, second, metric, tasks, (len(alone[0]), len(alone[1])))


def _task_of(row: Row, named: frozenset[str]) -> str:
    return canonical([row.cell.config["task"], _shared_args(row, named)])


def _shared_args(row: Row, named: frozenset[str]) -> dict[str, Any]:
    return {name: v for name, v in row.cell.config["task_args"].items() if f"task_args.{name}" not in named}


def _compared(
    pairs: Sequence[tuple[Row, Row]], metric: str, task_args: Mapping[str, Any], unpaired: tuple[int, int]
) -> TaskComparison:
    entry = METRICS[metric]
    values = [(float(a[entry]), float(b[entry])) for a, b in pairs if a[entry] is not None and b[entry] is not None]
    differences = [b - a for a, b in values]
    more, fewer = sum(1 for d in differences if d > 0), sum(1 for d in differences if d < 0)
    wins, losses = (fewer, more) if metric == "steps" else (more, fewer)
    interval, p = mean_interval(differences), sign_test(wins, losses)
    solved = [(a["status"] == "solved", b["status"] == "solved") for a, b in pairs]
    both, only_first, only_second, neither = (
        solved.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))
    )
    shares = paired_shares(both, only_first, only_second, neither)
    assert shares is not None, "a task is compared over its pairs, of which there is one at least"
    return TaskComparison(
        task=pairs[0][0].cell.config["task"],
        task_args=task_args,
        pairs=len(pairs),
        compared=len(values),
        means=(_mean([a for a, _ in values]), _mean([b for _, b in values])) if values else None,
        difference=_mean(differences) if values else None,
        interval=interval,
        wins=wins,
        ties=len(values) - wins - losses,
        losses=losses,
        p=p,
        solved=(both + only_first, both + only_second),
        solved_difference=shares[0],
        solved_interval=shares[1],
        verdict=_verdict(interval, differences, p),
        unpaired=unpaired,
    )


def _verdict(interval: tuple[float, float] | None, differences: Sequence[float], p: float) -> Verdict:
    if interval is None:
        return "too few pairs"
    equal = np.std(differences, ddof=1) <= _ROUNDING * max(map(abs, differences))
    if interval[0] <= 0 <= interval[1] or (equal and p >= _LEVEL):
        return "undecided"
    return "second" if interval[0] > 0 else "first"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
