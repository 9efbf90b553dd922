"""How fast the separation rank of self-attention grows with depth: proven from below, for almost all weights.

Theorem (docs/exact-rank.md). With d ≥ 2 tokens a side or more and D = d(d+1)/2, log₃ sep = D·L + O_d(1). The lower
half: if for some depth L₀ the form q(S) = aᵀF S Fᵀa, F the network's matrix at depth L₀, of degree e = 3^L₀, vanishes
at a point where its Hessian is regular, then for all L > L₀

    sep ≥ 2·binom(D+k−1, D) + (m+1)·binom(D+k−1, k),     k = (3^(L−L₀) − 1)/2,   m = k(e − 2) + (e − 1)/2.

One head of full width has such a point as soon as 3^L₀ > d (proven for every d ≥ 2; at d = 1 the bound is the rank
itself); other shapes are certified one by one (`instruments.growth`). The bound contradicts the upper half of Theorem
7.2 for every d ≥ 4 and large L.
"""

from __future__ import annotations

import math
from dataclasses import replace

from theodolite.theory.attention import Bounds, attention_bounds, hops, theorem_7_2
from theodolite.theory.cap import log_binomial
from theodolite.theory.domain import whole


def base_depth(width: int) -> int:
    """The least L₀ with 3^L₀ > d."""
    whole("width", width)
    depth = 1
    while 3**depth <= width:
        depth += 1
    return depth


def growth_lower_bound(depth: int, width: int, base: int | None = None) -> int:
    """The theorem's bound, a whole number; 1, which says nothing, for depths up to the base depth.

    It holds with `width` tokens a side or more, one head of full width among the heads, or whichever heads a
    certificate of this base depth covers. With an embedding of rank r pass r for the width.
    """
    entries, k, m = _sizes(depth, width, base)
    if k == 0:
        return 1
    middle = math.comb(entries + k - 1, k)
    return 2 * math.comb(entries + k - 1, entries) + (m + 1) * middle


def growth_lower_bound_log3(depth: int, width: int, base: int | None = None) -> float:
    """log₃ of `growth_lower_bound`, for shapes of any size."""
    entries, k, m = _sizes(depth, width, base)
    if k == 0:
        return 0.0
    ends = math.log(2) + log_binomial(entries, k - 1)
    middle = math.log(m + 1) + log_binomial(entries - 1, k)
    high = max(ends, middle)
    return (high + math.log(math.exp(ends - high) + math.exp(middle - high))) / math.log(3)


def refuted_depth(width: int, base: int | None = None, deepest: int = 200) -> int | None:
    """The least depth at which the theorem's bound lies above the upper bound of Theorem 7.2; None for d ≤ 3."""
    if width * (width + 1) // 2 <= 2 * width + 1:  # the published bound grows as fast, or faster
        return None
    start = base_depth(width) if base is None else base
    for depth in range(start + 1, deepest + 1):
        if growth_lower_bound_log3(depth, width, base) > _published(depth, width):
            return depth
    return None


def upper_refuted(depth: int, width: int, tokens: int | None = None) -> bool:
    """Whether one head of full width has more rank than Theorem 7.2 allows, with this many tokens a side.

    Numbers of tokens left out are large ones. Fewer than the width span as many dimensions as they are, and weights
    that act on these give the theorem with their number for the width.
    """
    if 3 ** whole("depth", depth) <= whole("width", width):  # Theorem 7.1, or none
        return False
    space = width if tokens is None else min(width, whole("tokens", tokens))
    return growth_lower_bound_log3(depth, space) > _published(depth, width)


def standing_bounds(depth: int, width: int, heads: int, tokens: int | None = None) -> Bounds:
    """`attention_bounds` without an upper bound that is refuted; the reason says so, and what is proven instead."""
    bounds = attention_bounds(depth, width, heads)
    if heads > width or not upper_refuted(depth, width, tokens):
        return bounds
    proven = math.floor(growth_lower_bound_log3(depth, width if tokens is None else min(width, tokens)))
    why = f"its upper half is false here: one head of full width has rank at least 3^{proven}, see docs/exact-rank.md"
    return replace(bounds, upper_log3=None, upper=None, reason=f"{bounds.reason}; {why}")


def _published(depth: int, width: int) -> float:
    bound = theorem_7_2(depth, width, 1).upper_log3
    return math.inf if bound is None else bound


def _sizes(depth: int, width: int, base: int | None) -> tuple[int, int, int]:
    """D, k and m of the theorem."""
    whole("depth", depth)
    start = base_depth(width) if base is None else whole("base", base)
    k = hops(depth - start) if depth > start else 0
    return width * (width + 1) // 2, k, k * (3**start - 2) + hops(start)
