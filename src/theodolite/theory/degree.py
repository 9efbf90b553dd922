"""The degree paper's arithmetic: which degree of a block buys the most from a budget of square matrices.

Source: *Attention is optimal building block*. Blocks are composed, so degrees multiply: a budget of B matrices spent on
blocks of degree d, c(d) matrices each, buys the total degree d^(B/c(d)), and B·ln d/c(d) is to be made large. The paper
counts c(d) = d (Eq. 4), although its block (Eq. 2) has d − 1 matrices; attention with its output matrix has d + 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole

COUNTS = ("d-1", "d", "d+1")
"""How many w × w matrices a block of degree d has: Eq. 2 of the paper, Eq. 4, and attention with its output matrix."""

_LARGEST_USED = (
    6  # from 7 on, 4 and d−5 (count d+1), 2 and d−2 (d) or 2 and d−1 (d−1) cost as much and multiply to more
)


def matrices_per_block(degree: int | float, count: str = "d") -> int | float:
    """c(d): d − 1, d or d + 1."""
    return degree + _more(count)


def log_degree_per_matrix(degree: int | float, count: str = "d") -> float:
    """ln d/c(d), the natural logarithm of the total degree that one matrix buys."""
    if degree <= 1:
        raise OutsideDomain(
            f"degree = {degree!r} is outside the domain: a block must raise the degree, pass more than 1"
        )
    return math.log(degree) / matrices_per_block(degree, count)


def best_degree(count: str = "d") -> int:
    """The best whole degree: 2, 3 or 4 for d−1, d or d+1 matrices a block."""
    # ln d/c(d) falls from its real maximum on, which lies below 4 for every count.
    return max(range(2, 9), key=lambda degree: log_degree_per_matrix(degree, count))


def best_real_degree(count: str = "d") -> float:
    """The best real degree: e for d matrices, 3.59 for d+1; for d−1 the limit 1, of ever more and ever flatter blocks.

    The derivative of ln d/(d + k) has the sign of (d + k)/d − ln d, which falls.
    """
    more = _more(count)
    if more < 0:
        return 1.0
    low, high = 1.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (middle + more) / middle > math.log(middle) else (low, middle)
    return (low + high) / 2


def best_mixed(total: int, count: str = "d") -> tuple[tuple[int, ...], ...]:
    """The multisets of whole degrees, largest first, that spend `total` matrices exactly and have the largest product.

    Ties are all listed: with d matrices a block, degrees 2 and 2 stand for one degree 4.
    """
    whole("total", total)
    _more(count)
    for part in range(total):  # from below, so that no call is nested deeply
        _best(part, count)
    found = _best(total, count)
    if not found:
        raise OutsideDomain(
            f"total = {total} is outside the domain: no blocks of degree 2 and more have {total} matrices at {count} "
            f"a block, pass at least {matrices_per_block(2, count)}"
        )
    return tuple(sorted(found, reverse=True))


@cache
def _best(total: int, count: str) -> frozenset[tuple[int, ...]]:
    if total == 0:
        return frozenset({()})
    candidates = {
        tuple(sorted((*rest, degree), reverse=True))
        for degree in range(2, min(total - _more(count), _LARGEST_USED) + 1)
        for rest in _best(total - int(matrices_per_block(degree, count)), count)
    }
    most = max(map(math.prod, candidates), default=0)
    return frozenset(multiset for multiset in candidates if math.prod(multiset) == most)


def connected_exponent(width: int, inputs_a: int, inputs_b: int) -> int:
    """k such that the cap of the fully connected net grows like (total degree)^k: numbers by which a side enters.

    The two sides have dimensions u ≤ v; Σ_c min(c^(u−1), (t−c)^(v−1)) grows like t^u.
    """
    return min(whole("width", width), whole("inputs_a", inputs_a), whole("inputs_b", inputs_b))


def attention_exponent(degrees: Sequence[int], width: int, tokens: int) -> int:
    """k such that the cap of attention with `tokens` a side grows like (total degree)^k, these blocks being repeated.

    It is the dimension of what a side hands over: the matrix S = Σ x xᵀ where blocks make hops (degrees from 3), the
    sum s = Σ x where one is even. With m tokens of width d: S alone has md − m(m−1)/2 dimensions up to m = d, both
    together md − (m−1)(m−2)/2 up to m = d + 1, and s alone d.
    """
    d, m = whole("width", width), whole("tokens", tokens)
    even, hop = any(degree % 2 == 0 for degree in degrees), any(degree > 2 for degree in degrees)
    if not hop:
        return d
    if not even:
        m = min(m, d)
        return m * d - m * (m - 1) // 2
    m = min(m, d + 1)
    return m * d - (m - 1) * (m - 2) // 2


def _more(count: str) -> int:
    if count not in COUNTS:
        raise OutsideDomain(f"count = {count!r} is outside the domain: pass {', '.join(COUNTS[:-1])} or {COUNTS[-1]}")
    return COUNTS.index(count) - 1
