"""Trained members side by side: their cells, their scores, and the interval of a difference of two means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, Literal

from scipy import stats

from theodolite.lab.cell import Cell, Row

Equivalence = Literal["alike", "apart", "undecided"]


def trained(
    net: str, shape: dict[str, Any], task: str, task_args: dict[str, Any], seeds: int, rate: float, **schedule: Any
) -> Cell:
    """Members of a registered net, one per seed."""
    return Cell("trained-members", {"net": net, **training(shape, task, task_args, seeds, rate, **schedule)})


def training(
    shape: dict[str, Any], task: str, task_args: dict[str, Any], seeds: int, rate: float, **schedule: Any
) -> dict[str, Any]:
    """What such a cell says besides the net."""
    return {
        "shape": shape,
        "task": task,
        "task_args": task_args,
        "seeds": seeds,
        "rates": [rate],
        "schedule": schedule,
    }


def scores(row: Row, field: str) -> list[float]:
    """One per seed; a member that diverged has 0."""
    return [m[field] or 0.0 for m in row["members"]]


def difference_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> tuple[float, float]:
    """Welch's interval for mean(first) − mean(second), of at least two values each."""
    variances = [statistics.variance(values) / len(values) for values in (first, second)]
    difference, total = statistics.fmean(first) - statistics.fmean(second), sum(variances)
    if total == 0:
        return difference, difference
    freedom = total**2 / sum(v**2 / (len(x) - 1) for v, x in zip(variances, (first, second), strict=True))
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(total)
    return difference - half, difference + half


def equivalence(first: Sequence[float], second: Sequence[float], margin: float) -> Equivalence:
    """Two one-sided tests at 5 %: alike if the 90 % interval of the difference lies within ±margin, apart if it lies
    wholly outside."""
    low, high = difference_interval(first, second, 0.9)
    if -margin < low and high < margin:
        return "alike"
    return "apart" if low > margin or high < -margin else "undecided"
