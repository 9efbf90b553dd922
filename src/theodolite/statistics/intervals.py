"""Intervals for what was counted or averaged over members; 95 % throughout."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from theodolite.statistics.tails import Z, halves_tail, student_quantile

# numpy and scipy are imported where they are needed: what lists runs needs none of them, and scipy takes a second.


def wilson(successes: int, trials: int) -> tuple[float, float] | None:
    """Wilson's score interval for a share."""
    if trials == 0:
        return None
    middle, whole = successes + Z * Z / 2, trials + Z * Z
    half = Z * math.sqrt(successes * (trials - successes) / trials + Z * Z / 4)
    low, high = (middle - half) / whole, (middle + half) / whole
    return low if successes else 0.0, high if successes < trials else 1.0


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's interval for a mean; None for fewer than two values. Equal values have an interval of width 0."""
    if len(values) < 2:
        return None
    import numpy as np

    return interval_of(float(np.mean(values)), float(np.std(values, ddof=1)), len(values))


def interval_of(mean: float, deviation: float, count: int) -> tuple[float, float]:
    """The same of values of which these are known, of at least two."""
    half = student_quantile(count - 1) * deviation / math.sqrt(count)
    return mean - half, mean + half


def difference_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> tuple[float, float]:
    """Welch's interval for mean(first) − mean(second), of at least two values each."""
    import numpy as np
    from scipy import stats

    if np.ptp(first) == np.ptp(second) == 0:
        return first[0] - second[0], first[0] - second[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of equal values on one side, which is no mistake here
        test = stats.ttest_ind(first, second, equal_var=False)
    low, high = test.confidence_interval(confidence)  # pyright: ignore[reportAttributeAccessIssue]
    return float(low), float(high)


def chance_of_no_lead(first: Sequence[float], second: Sequence[float], margin: float = 0.0) -> float:
    """Welch's one-sided p-value against mean(first) − mean(second) > margin, of at least two values each."""
    import numpy as np
    from scipy import stats

    if np.ptp(first) == np.ptp(second) == 0:
        return float(first[0] - second[0] <= margin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of equal values on one side, which is no mistake here
        test = stats.ttest_ind(np.asarray(first) - margin, second, equal_var=False, alternative="greater")
    return float(test.pvalue)  # pyright: ignore[reportAttributeAccessIssue]


def chance_of_no_excess(values: Sequence[float], bound: float = 0.0) -> float:
    """Student's one-sided p-value against a mean above `bound`, of at least two values."""
    import numpy as np
    from scipy import stats

    if np.ptp(values) == 0:
        return float(values[0] <= bound)
    return float(stats.ttest_1samp(values, bound, alternative="greater").pvalue)  # pyright: ignore[reportAttributeAccessIssue]


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
    return min(1.0, 2 * halves_tail(min(wins, losses), wins + losses))
