"""Errors of two networks on the same functions: the paired comparison, and many of them at one level."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

LEVEL = 0.05  # of the whole family of comparisons


@dataclass(frozen=True)
class ErrorRatio:
    """The geometric mean over paired members of error/rival's error, its 95 % interval and the t-test's p-value."""

    value: float
    interval: tuple[float, float]
    p: float


def error_ratio(log_errors: Sequence[float], rival: Sequence[float]) -> ErrorRatio:
    """Of logarithms of errors of members that pair by place: same function, same examples."""
    differences = [a - b for a, b in zip(log_errors, rival, strict=True)]
    if not any(differences):
        return ErrorRatio(1.0, (1.0, 1.0), 1.0)
    ratio = math.exp(statistics.fmean(differences))
    if len(differences) == 1:
        return ErrorRatio(ratio, (0.0, math.inf), 1.0)
    test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval()  # pyright: ignore[reportAttributeAccessIssue]
    return ErrorRatio(ratio, (math.exp(low), math.exp(high)), float(test.pvalue))  # pyright: ignore[reportAttributeAccessIssue]


def against(values: Sequence[float], bound: float) -> tuple[float, float]:
    """The mean, and the two-sided p-value of Student's test of it against a bound.

    Examples:
        >>> mean, p = against([1.0, 2.0, 3.0], 2.0)
        >>> mean, round(p, 3)
        (2.0, 1.0)
    """
    mean = statistics.fmean(values)
    if max(values) == min(values):
        return mean, 1.0 if mean == bound else 0.0
    return mean, float(stats.ttest_1samp(values, bound).pvalue)  # pyright: ignore[reportAttributeAccessIssue]


def holm(p: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which differ from chance when all are tested at this level together: in order, each against the level over the
    number of those left."""
    found = [False] * len(p)
    for place, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[index] > level / (len(p) - place):
            break
        found[index] = True
    return found


def signs(ratios: Sequence[ErrorRatio], clear: Sequence[bool] | None = None) -> list[int]:
    """−1 where the error is lower than the rival's, 1 where higher, 0 where they do not differ significantly over all
    comparisons (Holm); `clear` says which do where there were more comparisons than these."""
    clear = holm([ratio.p for ratio in ratios]) if clear is None else clear
    return [(1 if ratio.value > 1 else -1) if sure else 0 for ratio, sure in zip(ratios, clear, strict=True)]


def above_zero(values: ArrayLike, level: float = LEVEL) -> bool:
    """Whether the mean of many values lies above 0 beyond chance: the one-sided z-test."""
    values = np.asarray(values)
    return bool(values.mean() > stats.norm.isf(level) * values.std() / np.sqrt(len(values)))
