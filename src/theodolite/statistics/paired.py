"""Errors of two networks on the same functions: the paired comparison, and many of them at one level."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from theodolite.statistics.intervals import mean_interval

LEVEL = 0.05  # of the whole family of comparisons


@dataclass(frozen=True)
class Edge:
    """The geometric mean over paired members of error/rival's error, its 95 % interval and the t-test's p-value."""

    ratio: float
    interval: tuple[float, float]
    p: float


def edge(logs: Sequence[float], rival: Sequence[float]) -> Edge:
    """Of logarithms of errors of members that pair by place: same function, same examples."""
    differences = [a - b for a, b in zip(logs, rival, strict=True)]
    if not any(differences):
        return Edge(1.0, (1.0, 1.0), 1.0)
    low, high = mean_interval(differences) or (-math.inf, math.inf)
    p = stats.ttest_1samp(differences, 0.0).pvalue  # pyright: ignore[reportAttributeAccessIssue]
    return Edge(math.exp(statistics.fmean(differences)), (math.exp(low), math.exp(high)), float(p))


def holm(p: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which differ from chance when all are tested at this level together: in order, each against the level over the
    number of those left."""
    found = [False] * len(p)
    for place, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[index] > level / (len(p) - place):
            break
        found[index] = True
    return found


def signs(edges: Sequence[Edge]) -> list[int]:
    """−1 where the error is lower than the rival's, 1 where higher, 0 where they do not differ significantly over all
    comparisons (Holm)."""
    clear = holm([e.p for e in edges])
    return [(1 if e.ratio > 1 else -1) if sure else 0 for e, sure in zip(edges, clear, strict=True)]
