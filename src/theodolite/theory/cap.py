"""Caps: numbers that the separation rank cannot exceed, whatever the weights.

A measured rank equal to its cap is proven to be the separation rank of almost all weights. Proofs: docs/cap.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from theodolite.theory.attention import hops
from theodolite.theory.domain import whole
from theodolite.theory.invariants import covariants, invariants


def attention_cap(
    depth: int,
    width: int,
    tokens_with_output: int,
    tokens_other: int,
    embedding_rank: int | None = None,
    block_degree: int = 3,
) -> int:
    """Cap for y = e_pᵀ F(S) x^i, F a polynomial of degree ≤ C = (block_degree^depth − 1)/2 in S = Σ_j x^j x^jᵀ.

    `tokens_with_output` counts the tokens on the side of the output token i (i among them), `tokens_other` those on
    the other side. The tokens may be drawn from a space of dimension `embedding_rank` (Eq. 7.9). Heads, attention
    width and skip connections make no difference to the cap.
    """
    whole("depth", depth)
    whole("width", width)
    whole("tokens_with_output", tokens_with_output)
    whole("tokens_other", tokens_other)
    if embedding_rank is not None:
        width = min(width, whole("embedding_rank", embedding_rank))
    return _graded(
        lambda c: invariants(c, width, tokens_other),
        lambda k: covariants(k, width, tokens_with_output),
        hops(depth, block_degree),
    )


def attention_cap_log3(depth: int, width: int, embedding_rank: int | None = None) -> float:
    """log₃ of `attention_cap` from min(r, d) tokens a side on, where it is largest; for shapes of any size.

    With D = d(d+1)/2 the cap is Σ_{c≤t} binom(D+c−1, c) + d·Σ_{k<C−t} binom(D+k−1, k), t being the last c whose first
    kind of term is the smaller one, and both sums are binomials: binom(D+t, D) + d·binom(D+C−t−1, D).
    """
    total = hops(whole("depth", depth))
    whole("width", width)
    if embedding_rank is not None:
        width = min(width, whole("embedding_rank", embedding_rank))
    entries = width * (width + 1) // 2

    def first_is_smaller(c: int) -> bool:
        return log_binomial(entries - 1, c) <= math.log(width) + log_binomial(entries - 1, total - c)

    low, high = 0, total + 1  # c = 0: binom(D−1, 0) = 1 is never the larger one
    while high - low > max(1, total >> 64):  # nearer than a float can tell
        middle = (low + high) // 2
        low, high = (middle, high) if first_is_smaller(middle) else (low, middle)
    terms = [log_binomial(entries, low)]
    if low < total:
        terms.append(math.log(width) + log_binomial(entries, total - low - 1))
    return (max(terms) + math.log(sum(math.exp(term - max(terms)) for term in terms))) / math.log(3)


def log_binomial(n: int, k: int) -> float:
    """ln binom(n+k, k), without the cancellation that differences of ln Γ suffer where n and k are far apart."""
    small, large = sorted((n, k))
    if large < 1000:
        return math.log(math.comb(n + k, k))
    # Stirling's series for ln Γ(x+small) − ln Γ(x); its next term is below 1/(1260·x⁵). x may be beyond a float.
    x, y = large + 1, large + 1 + small
    step = small / x
    risen = (x - 0.5) * math.log1p(step) if step > 1e-17 else float(small)
    risen += small * (math.log(y) - 1) + (1 / y - 1 / x) / 12 - ((1 / y) ** 3 - (1 / x) ** 3) / 360
    return risen - math.lgamma(small + 1.0)


def homogeneous_cap(degree: int, variables_a: int, variables_b: int) -> int:
    """Cap for every homogeneous polynomial of this degree; almost all of them attain it."""
    _check(degree, variables_a, variables_b)
    return _graded(
        lambda c: math.comb(variables_b + c - 1, c),
        lambda k: math.comb(variables_a + k - 1, k),
        degree,
    )


def polynomial_cap(degree: int, variables_a: int, variables_b: int) -> int:
    """Cap for every polynomial of total degree ≤ `degree`; almost all of them attain it.

    The coefficient of (monomial α in A, monomial β in B) vanishes when |α| + |β| > degree. Such a staircase is covered
    by the columns |β| ≤ t and the rows |α| ≤ degree − t − 1, and by König's theorem the best of these covers, t = −1
    (rows alone) to t = degree (columns alone), is the largest rank. It equals `homogeneous_cap`: terms of lower degree
    do not raise the cap.
    """
    _check(degree, variables_a, variables_b)
    # C(n + t, t) monomials of degree ≤ t in n variables, none for t = −1
    a = [0] + [math.comb(variables_a + t, t) for t in range(degree + 1)]
    b = [0] + [math.comb(variables_b + t, t) for t in range(degree + 1)]
    return min(b[t + 1] + a[degree - t] for t in range(-1, degree + 1))


def multihomogeneous_cap(degrees_a: Sequence[int], degrees_b: Sequence[int], features: int) -> int:
    """Cap for every polynomial of fixed degree in each site, a site being `features` variables: the smaller side."""
    whole("features", features)
    sides = [[whole("degree", degree, 0) for degree in side] for side in (degrees_a, degrees_b)]
    return min(math.prod(math.comb(features + degree - 1, degree) for degree in side) for side in sides)


def _graded(h: Callable[[int], int], a: Callable[[int], int], total: int) -> int:
    """Σ_{c=0..total} min(h(c), a(total − c)) for h and a that never fall, evaluating only the small values.

    With c, k the first terms not yet counted: if h(c) ≤ a(k) then h(c) ≤ a(total − c), for k ≤ total − c, and term c
    is h(c); else a(k) < h(c) ≤ h(total − k), and term total − k is a(k).
    """
    c = k = cap = 0
    while c + k <= total:
        if h(c) <= a(k):
            cap += h(c)
            c += 1
        else:
            cap += a(k)
            k += 1
    return cap


def _check(degree: int, variables_a: int, variables_b: int) -> None:
    whole("degree", degree, 0)
    whole("variables_a", variables_a)
    whole("variables_b", variables_b)
