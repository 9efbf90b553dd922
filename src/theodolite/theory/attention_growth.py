"""How fast the separation rank of self-attention grows with depth: proven from below, for almost all weights.

With t tokens a side, log₃ sep = δ·L + O_d(1), δ being the number of dimensions through which S_A = Σ x xᵀ over one side
runs: D = d(d+1)/2 from d tokens on, dt − t(t−1)/2 for fewer. Theorems and proofs: docs/paper.md. The lower halves:

t ≥ d. If for some depth L₀ the form q(S) = aᵀF S Fᵀa, F the network's matrix at depth L₀, of degree e = 3^L₀, vanishes
at a point where its Hessian is regular, then for all L > L₀

    sep ≥ 2·binom(D+k−1, D) + (m+1)·binom(D+k−1, k),     k = (3^(L−L₀) − 1)/2,   m = k(e − 2) + (e − 1)/2.

One head of full width has such a point as soon as 3^L₀ > d; other shapes are certified one by one
(`claims.tensors.growth_certificate`).

t < d. One head of full width has sep ≥ binom(δ+k, k) for L > L₀ as soon as 3^L₀ > min(d, 2t); so have
⌈2t/d_a⌉·⌈d/d_a⌉ heads of width d_a, for d ≥ 2t and 3^(L₀−1) > 2t.

These bounds contradict the upper half of Theorem 7.2 for large L where δ > 2d + 1: d ≥ 5 with 6 tokens or more, and
d = 4 with 8 or more.
"""

from __future__ import annotations

import math
from dataclasses import replace

from theodolite.errors import OutsideDomain
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


def growth_exponent(width: int, tokens: int | None = None) -> int:
    """δ, by which log₃ sep grows a layer: the dimension of the symmetric d × d matrices of rank at most `tokens`.

    Numbers of tokens left out are large ones.
    """
    t = whole("width", width) if tokens is None else min(width, whole("tokens", tokens))
    return width * t - t * (t - 1) // 2


def few_tokens_lower_bound(depth: int, width: int, tokens: int, base: int | None = None) -> int:
    """binom(δ+k, k), a whole number, for fewer than `width` tokens a side; 1 for depths up to the base depth."""
    exponent, k = _few(depth, width, tokens, base)
    return math.comb(exponent + k, k)


def proven_log3(
    depth: int,
    width: int,
    tokens: int | None = None,
    space: int | None = None,
    heads: int = 1,
    head_width: int | None = None,
) -> float:
    """log₃ of the rank that these heads are proven to have at least, with this many tokens a side.

    The larger of both theorems, for these tokens or fewer (the others 0): fewer need less base depth. Numbers of tokens
    left out are large ones. `space` is the dimension that holds all tokens, where it is below the width: weights that
    act on it alone make it the width, and so do tokens in as many dimensions as there are of them. Without a head width
    a head has the full one; narrower heads contain a full head of the w dimensions with ⌈w/d_a⌉² ≤ H.
    """
    width = min(whole("width", width), width if space is None else whole("space", space))
    inner = width if head_width is None else min(width, whole("head_width", head_width))
    t = width if tokens is None else min(width, whole("tokens", tokens))
    one = _one_head_log3(depth, min(width, inner * math.isqrt(whole("heads", heads))), t)
    return one if inner == width else max(one, _narrow_heads_log3(depth, width, t, heads, inner))


def _one_head_log3(depth: int, width: int, tokens: int) -> float:
    """Theorems 1 and 2 (a) for t tokens in w dimensions: for every base depth the largest t and w that it allows."""
    t, best = min(width, tokens), 0.0
    for step in (3**base for base in range(1, base_depth(width) + 1)):
        best = max(best, growth_lower_bound_log3(depth, min(t, step - 1)))
        space = min(width, step - 1)
        for few, dimensions in ((min(t, space - 1), space), (min(t, width - 1, step // 2), width)):
            if few:
                exponent, k = _few(depth, dimensions, few, None)
                best = max(best, log_binomial(exponent, k) / math.log(3))
    return best


def _narrow_heads_log3(depth: int, width: int, tokens: int, heads: int, inner: int) -> float:
    """Theorem 2 (b) for t tokens in w dimensions, 2t ≤ w, ⌈2t/d_a⌉·⌈w/d_a⌉ ≤ H: the best over t and w."""
    best = 0.0
    for shares in range(1, math.isqrt(heads) + 2):  # ⌈2t/d_a⌉; more leave fewer than 2t dimensions
        space = min(width, inner * (heads // shares))
        most = min(tokens, shares * inner // 2, space // 2)
        for base in range(1, base_depth(2 * most) + 1 if most else 1):  # 2t < 3^base
            few = min(most, 3**base // 2)
            exponent, k = _few(depth, space, few, base + 1)
            best = max(best, log_binomial(exponent, k) / math.log(3))
    return best


def refuted_depth(
    width: int,
    tokens: int | None = None,
    base: int | None = None,
    deepest: int = 200,
    *,
    heads: int = 1,
    head_width: int | None = None,
) -> int | None:
    """The least depth at which what is proven lies above the upper bound of Theorem 7.2; None if there is none.

    `tokens` a side, large if left out; heads as in `proven_log3`. For one head of full width None exactly if
    δ ≤ 2d + 1 (or nothing was found up to `deepest`): for d ≤ 3, for one or two tokens a side, and for d = 4 with
    three.

    Parameters:
        base: another L₀ than that of one head, from a certificate; these tokens and not fewer, heads do not count.
    """
    if growth_exponent(width, tokens) <= 2 * width + 1:  # the published bound grows as fast, or faster
        return None
    for depth in range(2, deepest + 1):
        if 3**depth <= width:
            continue
        if base is None:
            proven = proven_log3(depth, width, tokens, None, heads, head_width)
        elif tokens is None or tokens >= width:
            proven = growth_lower_bound_log3(depth, width, base)
        else:
            exponent, k = _few(depth, width, tokens, base)
            proven = log_binomial(exponent, k) / math.log(3)
        if proven > _published(depth, width):
            return depth
    return None


def upper_refuted(
    depth: int,
    width: int,
    tokens: int | None = None,
    space: int | None = None,
    heads: int = 1,
    head_width: int | None = None,
) -> bool:
    """Whether these heads are proven to have more rank than Theorem 7.2 allows; arguments as in `proven_log3`."""
    if 3 ** whole("depth", depth) <= whole("width", width):  # Theorem 7.1, or none
        return False
    return proven_log3(depth, width, tokens, space, heads, head_width) > _published(depth, width)


def standing_bounds(depth: int, width: int, heads: int, tokens: int | None = None) -> Bounds:
    """`attention_bounds` of heads of width d/H, without an upper bound that is refuted for them.

    The reason says what is proven instead, and so it does where only one head of full width refutes the bound.
    """
    bounds = attention_bounds(depth, width, heads)
    if heads > width or not upper_refuted(depth, width, tokens):
        return bounds
    shape = (depth, width, tokens, None, heads, width // heads)
    if not upper_refuted(*shape):
        why = "its upper half is refuted for one head of full width, not for these heads, see docs/paper.md"
        return replace(bounds, reason=f"{bounds.reason}; {why}")
    why = f"its upper half is false here: the rank is at least 3^{math.floor(proven_log3(*shape))}, see docs/paper.md"
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


def _few(depth: int, width: int, tokens: int, base: int | None) -> tuple[int, int]:
    """δ and k of the theorem for few tokens."""
    whole("depth", depth)
    if whole("tokens", tokens) >= whole("width", width):
        raise OutsideDomain(
            f"tokens = {tokens} is outside the domain: the theorem for few tokens speaks of fewer than width = {width} "
            "a side, ask growth_lower_bound"
        )
    start = base_depth(min(width, 2 * tokens)) if base is None else whole("base", base)
    return growth_exponent(width, tokens), hops(depth - start) if depth > start else 0
