"""Theorems 7.1 to 7.3 on the separation rank of self-attention (Eq. 7.6), as numbers.

Source: *Tensors for deep learning theory*, §7.3.3. Depth L, width d, heads H; the partition is balanced and the
statements hold for almost all weights. Bounds are on log₃ of the separation rank. Where the number behind a logarithm
is at most 10³⁰⁰ it is also given as an integer, computed without floating point, so that "rank ≥ lower" can be
certified to the last unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole

LARGEST_LOG3 = 300 / math.log10(3)
"""Beyond 3 to this power (10³⁰⁰) only logarithms are given."""


@dataclass(frozen=True)
class Bounds:
    """What a theorem says: lower ≤ separation rank ≤ upper. None: no bound, or (`lower`, `upper`) above 10³⁰⁰."""

    lower_log3: float | None
    upper_log3: float | None
    reason: str
    lower: int | None = None
    upper: int | None = None

    @property
    def vacuous(self) -> bool:
        """The lower bound says no more than rank ≥ 1, which every function but zero obeys."""
        return self.lower_log3 is None or (self.lower_log3 <= 0 if self.lower is None else self.lower <= 1)


@dataclass(frozen=True)
class Orders:
    """Leading terms of log(sep) in an Õ / Ω̃ statement: how it grows. They are *not* numeric bounds."""

    order_upper: int
    order_lower: int | None
    reason: str


def degree(depth: int, block_degree: int = 3) -> int:
    """Degree of the output in all inputs together: 3^L for attention."""
    return whole("block_degree", block_degree) ** whole("depth", depth, 0)


def hops(depth: int, block_degree: int = 3) -> int:
    """C = (3^L − 1)/2, the degree of the network in S = Σ_j x^j x^jᵀ; blocks of odd degree only."""
    if whole("block_degree", block_degree) % 2 == 0:
        raise OutsideDomain(
            f"block_degree = {block_degree} is outside the domain: a block y ↦ f(Σ_j y^j y^jᵀ) y has odd degree, "
            "pass an odd number"
        )
    return (degree(depth, block_degree) - 1) // 2


def mixing(depth: int) -> int:
    """C + 1: how many input vectors, with repetition, one term of the output multiplies (Corollary 7.1)."""
    return hops(depth) + 1


def theorem_7_1(depth: int, width: int, heads: int) -> Bounds:
    """3^(L−2)·(log₃(d−H) − L + 2 − log₃ 2) ≤ log₃ sep ≤ C·log₃(d+H), for L < log₃ d."""
    _check(depth, width, heads)
    if 3**depth >= width:
        raise OutsideDomain(
            f"depth = {depth} is outside the domain L < log3(d) of Theorem 7.1 for width {width}: pass a smaller depth"
            f" or a width above {3**depth}, or ask attention_bounds"
        )
    mixed = hops(depth)
    upper_log3 = mixed * _log3(width + heads)
    reason = "Theorem 7.1, L < log3 d"
    upper = (width + heads) ** mixed if upper_log3 <= LARGEST_LOG3 else None
    if heads == width:
        return Bounds(
            None, upper_log3, f"{reason}; no lower bound: H = d makes log3(d - H) minus infinity", None, upper
        )
    lower_log3 = 3.0 ** (depth - 2) * (_log3(width - heads) - depth + 2 - _log3(2))
    # 3^lower = ((d−H)·9 / (2·3^L))^(3^(L−2)), a cube root when L = 1
    base = Fraction(9 * (width - heads), 2 * 3**depth)
    if lower_log3 > LARGEST_LOG3:
        lower = None
    elif depth == 1:
        lower = _root_ceiling(base, 3)
    else:
        lower = _root_ceiling(base**3 ** (depth - 2), 1)
    return Bounds(lower_log3, upper_log3, reason, lower, upper)


def theorem_7_2(depth: int, width: int, heads: int) -> Bounds:
    """½dL + b₁ + b₂ ≤ log₃ sep ≤ 2dL + c₁ + c₂, for L > log₃ d.

    b₁ = −L(H/2 + 1), b₂ = −d(1 + ½·log₃((d−H)/2)), c₁ = L, c₂ = −2d·log₃(d/(2√(2e))) + log₃ d.
    """
    _check(depth, width, heads)
    if 3**depth <= width:
        raise OutsideDomain(
            f"depth = {depth} is outside the domain L > log3(d) of Theorem 7.2 for width {width}: pass a larger depth"
            f" or a width below {3**depth}, or ask attention_bounds"
        )
    upper_log3 = (2 * width + 1) * depth + width * (_log3(8) + _log3(math.e) - 2 * _log3(width)) + _log3(width)
    upper = _upper_7_2(depth, width) if upper_log3 <= LARGEST_LOG3 else None
    reason = "Theorem 7.2, L > log3 d"
    if heads == width:
        why = "no lower bound: at H = d its formula takes the logarithm of d - H = 0"
        return Bounds(None, upper_log3, f"{reason}; {why}", None, upper)
    twice = width * depth - depth * (heads + 2) - 2 * width
    lower_log3 = (twice - width * (_log3(width - heads) - _log3(2))) / 2
    if lower_log3 > LARGEST_LOG3:
        lower = None
    elif lower_log3 < -1:
        lower = 1
    else:  # 3^(2·lower) = 3^twice · (2/(d−H))^d
        lower = _root_ceiling(Fraction(3) ** twice * Fraction(2, width - heads) ** width, 2)
    return Bounds(lower_log3, upper_log3, reason, lower, upper)


def attention_bounds(depth: int, width: int, heads: int) -> Bounds:
    """The theorem that speaks of this shape; without one, bounds of None and the reason."""
    whole("heads", heads)
    reach = 3 ** whole("depth", depth)
    if heads > whole("width", width):
        return Bounds(None, None, f"H = {heads} > d = {width}: Eq. 7.6 has d/H features a head, so at most d heads")
    if reach == width:
        return Bounds(None, None, f"L = log3 d = {depth} belongs to neither theorem")
    return theorem_7_1(depth, width, heads) if reach < width else theorem_7_2(depth, width, heads)


def theorem_7_3(depth: int, width: int, embedding_rank: int, heads: int = 1) -> Orders:
    """log sep = Õ(L·min(r,d)), and Ω̃(L·(min(r,d) − H)) when L > log₃ d and H < r: the terms inside Õ and Ω̃."""
    _check(depth, width, heads)
    rank = min(whole("embedding_rank", embedding_rank), width)
    upper = depth * rank
    if 3**depth <= width:
        return Orders(upper, None, f"Theorem 7.3; no lower order: it needs L > log3 d, and 3^{depth} <= {width}")
    if heads >= embedding_rank:
        return Orders(upper, None, f"Theorem 7.3; no lower order: it needs H < r, and {heads} >= {embedding_rank}")
    return Orders(upper, depth * (rank - heads), "Theorem 7.3")


def _check(depth: int, width: int, heads: int) -> None:
    whole("depth", depth)
    if whole("heads", heads) > whole("width", width):
        raise OutsideDomain(
            f"heads = {heads} is outside the domain: Eq. 7.6 gives each head width/heads features, "
            f"pass at most width = {width} heads"
        )


def _log3(value: float) -> float:
    return math.log(value) / math.log(3)


def _root_ceiling(power: Fraction, root: int) -> int:
    """The least integer n ≥ 1 with n^root ≥ power."""
    target = math.ceil(power)
    low, high = 1, 1 << (max(target, 1).bit_length() // root + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**root >= target else (middle + 1, high)
    return low


def _upper_7_2(depth: int, width: int) -> int:
    """⌊3^((2d+1)L) · d · (8e/d²)^d⌋; e^d is irrational, 100 digits behind the point settle the floor."""
    context = Context(prec=400)
    rational = Fraction(3 ** ((2 * width + 1) * depth) * width * 8**width, width ** (2 * width))
    value = context.multiply(
        context.divide(Decimal(rational.numerator), Decimal(rational.denominator)), context.exp(Decimal(width))
    )
    return int(value)
