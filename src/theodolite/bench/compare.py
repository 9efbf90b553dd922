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

from theodolite.bench.matched_pairs import Pairs, Side, pair_members
from theodolite.errors import BadInput, UnknownName
from theodolite.lab.store.trained import Condition, Tell, Trained
from theodolite.lab.tally import STATUSES
from theodolite.measurement import canonical
from theodolite.notebook import Shown
from theodolite.registry import unknown
from theodolite.statistics.intervals import mean_interval, paired_shares, sign_test

METRICS = {"accuracy": "accuracy", "unseen": "unseen", "steps": "solved_at"}  # and the entry of a member's scores
_SOLVED = STATUSES.index("solved")
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
    first: str,
    second: str,
    out: str | Path = "runs",
    *,
    task: str | None = None,
    metric: str = "accuracy",
    tell: Tell | None = None,
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
        tell: is told (rows, of so many) while a store of an older version is brought up to date, once

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
    with Trained(out, tell=tell) as trained:
        if not trained.conditions:
            raise BadInput(f"the store in '{out}' holds no trained members yet: run 'theodolite learn' first")
        return compare_trained(trained, first, second, task=task, metric=metric)


def compare_trained(
    trained: Trained,
    first: str,
    second: str,
    *,
    task: str | None = None,
    metric: str = "accuracy",
    among: Sequence[Condition] | None = None,
) -> Comparison:
    """The same of an open store, or of some of its conditions."""
    found = pair_members(trained, first, second, task, same_unseen=metric == "unseen", among=among)
    tasks = _task_of(found.first, found.named)
    alone = [_task_of(side, found.named) for side in found.alone]
    compared = tuple(
        _compared(found, tasks == name, metric, tuple(int((side == name).sum()) for side in alone))
        for name in dict.fromkeys(tasks)
    )
    return Comparison(first, second, metric, compared, (len(alone[0]), len(alone[1])))


def _task_of(side: Side, named: frozenset[str]) -> np.ndarray:
    """The task of each member, with those of its fields that the selectors do not name."""
    texts = [canonical([one.config["task"], _shared_args(one, named)]) for one in side.conditions]
    return np.array(texts, dtype=object)[side.own] if texts else np.zeros(0, dtype=object)


def _shared_args(one: Condition, named: frozenset[str]) -> dict[str, Any]:
    return {name: v for name, v in one.config["task_args"].items() if f"task_args.{name}" not in named}


def _compared(found: Pairs, which: np.ndarray, metric: str, unpaired: tuple[int, ...]) -> TaskComparison:
    one, other = found.first[which], found.second[which]
    a, b = one.members[METRICS[metric]], other.members[METRICS[metric]]
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    differences = b - a
    more, fewer = int((differences > 0).sum()), int((differences < 0).sum())
    wins, losses = (fewer, more) if metric == "steps" else (more, fewer)
    interval, p = mean_interval(differences.tolist()), sign_test(wins, losses)
    solved = [side.members["status"] == _SOLVED for side in (one, other)]
    both, only_first, only_second, neither = (
        int(((solved[0] == x) & (solved[1] == y)).sum()) for x in (True, False) for y in (True, False)
    )
    shares = paired_shares(both, only_first, only_second, neither)
    assert shares is not None, "a task is compared over its pairs, of which there is one at least"
    condition = one.conditions[one.own[0]]
    return TaskComparison(
        task=condition.config["task"],
        task_args=_shared_args(condition, found.named),
        pairs=len(one.members),
        compared=len(a),
        means=(_mean(a), _mean(b)) if len(a) else None,
        difference=_mean(differences) if len(a) else None,
        interval=interval,
        wins=wins,
        ties=len(a) - wins - losses,
        losses=losses,
        p=p,
        solved=(both + only_first, both + only_second),
        solved_difference=shares[0],
        solved_interval=shares[1],
        verdict=_verdict(interval, differences, p),
        unpaired=(unpaired[0], unpaired[1]),
    )


def _verdict(interval: tuple[float, float] | None, differences: np.ndarray, p: float) -> Verdict:
    if interval is None:
        return "too few pairs"
    equal = np.std(differences, ddof=1) <= _ROUNDING * np.abs(differences).max()
    if interval[0] <= 0 <= interval[1] or (equal and p >= _LEVEL):
        return "undecided"
    return "second" if interval[0] > 0 else "first"


def _mean(values: np.ndarray) -> float:
    return math.fsum(values.tolist()) / len(values)
