"""Two tails that every table of runs needs, without a library that takes longer to load than the runs to list."""

from __future__ import annotations

import math
from functools import lru_cache

Z = 1.959963984540054  # the normal's 97.5 % quantile
_SERIES = 400  # degrees of freedom up to which Student's distribution is summed term by term
_COUNTED = 1000  # of the smaller count: binomial coefficients up to this one are summed as whole numbers


@lru_cache(maxsize=4096)
def student_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution.

    Examples:
        >>> round(student_quantile(7), 12)
        2.364624251593
    """
    if freedom > _SERIES:
        return _expanded(freedom)
    t = _expanded(freedom) if freedom > 2 else 12.7062047362 if freedom == 1 else 4.30265272975
    for _ in range(40):  # Newton's method: the derivative of what lies within ±t is twice the density
        step = (_within(t, freedom) - 0.95) / (2 * _density(t, freedom))
        t -= step
        if abs(step) <= 1e-9 * t:  # the error is of the order of its square now
            break
    return t


def halves_tail(fewer: int, trials: int) -> float:
    """The chance of at most `fewer` heads in `trials` throws of a fair coin.

    Examples:
        >>> halves_tail(1, 4)
        0.3125
    """
    if 2 * fewer >= trials:
        return 1.0 - halves_tail(trials - fewer - 1, trials) if fewer < trials else 1.0
    if fewer <= _COUNTED:
        term = total = 1
        for k in range(1, fewer + 1):
            term = term * (trials - k + 1) // k
            total += term
        return total / 2**trials if fewer >= 0 else 0.0
    share = total = 1.0
    for k in range(fewer, 0, -1):  # every term beside the last, which is the largest
        share *= k / (trials - k + 1)
        total += share
        if share < 1e-18 * total:
            break
    return total * _half_chance(fewer, trials)


def _expanded(freedom: int) -> float:
    """Cornish and Fisher's expansion in 1/freedom (Abramowitz and Stegun 26.7.5)."""
    z, v = Z, 1.0 / freedom
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + v * (terms[0] + v * (terms[1] + v * (terms[2] + v * terms[3])))


def _within(t: float, freedom: int) -> float:
    """The chance of a value within ±t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    terms, term = [], cosine if odd else 1.0
    for k in range(1 + odd, freedom, 2):
        terms.append(term)
        term *= cosine * cosine * k / (k + 1)
    total = math.fsum(terms)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def _density(t: float, freedom: int) -> float:
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(log - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _half_chance(k: int, n: int) -> float:
    """Of exactly k heads in n throws, by Stirling's series: no difference of large numbers is taken (Loader 2000)."""
    e = (2 * k - n) / n
    distance = n / 2 * (math.log1p(-e * e) + 2 * e * math.atanh(e))
    series = _stirling(n) - _stirling(k) - _stirling(n - k) - distance
    return math.sqrt(n / (2 * math.pi * k * (n - k))) * math.exp(series)


def _stirling(n: int) -> float:
    """log n! less what Stirling's formula says."""
    v = 1.0 / (n * n)
    return (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v / 1680))) / n
