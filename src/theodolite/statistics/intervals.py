"""Intervals for what was counted or averaged over members; 95 % throughout."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats

Z = 1.959963984540054


def wilson(successes: int, trials: int) -> tuple[float, float] | None:
    """Wilson's score interval for a share."""
    if trials == 0:
        return None
    p, n = successes / trials, trials
    centre = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return (0.0 if successes == 0 else low, 1.0 if successes == trials else high)


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's interval for a mean; None for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    half = float(stats.t.ppf(0.975, n - 1)) * deviation(values) / math.sqrt(n)
    mean = math.fsum(values) / n
    return (mean - half, mean + half)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample, 0 for one value."""
    n = len(values)
    if n < 2:
        return 0.0
    mean = math.fsum(values) / n
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))


def quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Lower quartile, median, upper quartile, by linear interpolation."""
    ordered = sorted(values)
    if not ordered:
        return None

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    return at(0.25), at(0.5), at(0.75)


def paired_shares(
    both: int, only_first: int, only_second: int, neither: int
) -> tuple[float, tuple[float, float]] | None:
    """The difference of two shares over the same trials (second − first), with Newcombe's interval (method 10)."""
    n = both + only_first + only_second + neither
    if n == 0:
        return None
    first, second = (both + only_first) / n, (both + only_second) / n
    (l1, u1), (l2, u2) = wilson(both + only_first, n) or (0, 1), wilson(both + only_second, n) or (0, 1)
    marginals = (both + only_first) * (both + only_second) * (neither + only_first) * (neither + only_second)
    cross = both * neither - only_first * only_second
    if cross > 0:
        cross = max(cross - n / 2, 0)
    phi = cross / math.sqrt(marginals) if marginals else 0.0
    difference = second - first
    down = (second - l2) ** 2 - 2 * phi * (second - l2) * (u1 - first) + (u1 - first) ** 2
    up = (u2 - second) ** 2 - 2 * phi * (u2 - second) * (first - l1) + (first - l1) ** 2
    return difference, (difference - math.sqrt(max(down, 0.0)), difference + math.sqrt(max(up, 0.0)))


def sign_test(wins: int, losses: int) -> float:
    """The two-sided chance of so uneven a split if either side won as often; ties left out."""
    return float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
