"""The generic separation rank of two attention layers, degree by degree: a law found by measuring.

With at least d tokens a side. `graded_heads_cap` (proven: no rank is larger) turned out to *be* the rank of all shapes
measured, except for one head that is narrower than the width by two or more, whose second layer cannot form all the
products that the cap allows. For H·d_a ≥ d most of that is a theorem now: `theory.two_layers.law_proven`. For the
narrow head the count below was found. It is a law in the sense of physics: every measured shape obeys it, shapes
measured after it was written down included; only "at most" is proven, and only of the cap. Table: docs/exact-rank.md.
"""

from __future__ import annotations

import math

from theodolite.errors import OutsideDomain
from theodolite.theory.attention import hops
from theodolite.theory.cap import attention_cap
from theodolite.theory.domain import whole
from theodolite.theory.heads import graded_heads_cap, heads_cap
from theodolite.theory.invariants import covariants, invariants
from theodolite.theory.repeated_weights import lost_covariants, lost_invariants

_PART_BY_PART = 3  # depth; beyond it the parts are many and large


def graded_cap(
    depth: int,
    width: int,
    heads: int,
    attention_width: int,
    tokens_with_output: int | None = None,
    tokens_other: int | None = None,
    embedding_rank: int | None = None,
) -> list[int]:
    """What the part of degree c in S_B, c = 0 … C, can have at most: the tokens' cap or the weights', the smaller one.

    Numbers of tokens left out are large ones.
    """
    space = min(width, embedding_rank or width)
    n, m = (space if tokens is None else tokens for tokens in (tokens_with_output, tokens_other))
    total = hops(depth)
    by_weights = graded_weights_cap(depth, width, heads, attention_width, n, m, embedding_rank)
    return [min(invariants(c, space, m), covariants(total - c, space, n), cap) for c, cap in enumerate(by_weights)]


def graded_weights_cap(
    depth: int,
    width: int,
    heads: int,
    attention_width: int,
    tokens_with_output: int,
    tokens_other: int,
    embedding_rank: int | None = None,
) -> list[int]:
    """Caps of the parts that know the heads, and for one head that its matrices repeat."""
    caps = graded_heads_cap(depth, width, heads, attention_width, embedding_rank)
    if heads > 1 or depth > _PART_BY_PART:
        return caps
    space = min(width, embedding_rank or width)
    return [
        min(
            cap,
            invariants(c, space, tokens_other) - lost_invariants(c, depth, space),
            covariants(len(caps) - 1 - c, space, tokens_with_output) - lost_covariants(len(caps) - 1 - c, depth, space),
        )
        for c, cap in enumerate(caps)
    ]


def separation_cap(
    depth: int,
    width: int,
    heads: int,
    attention_width: int,
    tokens_with_output: int,
    tokens_other: int,
    embedding_rank: int | None = None,
) -> int:
    """The smallest cap proven for a self-attention network: of its tokens and weights, part by part up to depth 3."""
    by_tokens = attention_cap(depth, width, tokens_with_output, tokens_other, embedding_rank)
    by_heads = heads_cap(depth, width, heads, attention_width, embedding_rank)
    space = min(width, embedding_rank or width)
    full = heads > 1 and by_heads == attention_cap(depth, space, space, space)
    if depth > _PART_BY_PART or full:
        return min(by_tokens, by_heads)
    tokens = (tokens_with_output, tokens_other)
    return sum(graded_cap(depth, width, heads, attention_width, *tokens, embedding_rank))


def measured_law_depth_2(width: int, heads: int, attention_width: int) -> list[int]:
    """The ranks r_0 … r_4 of two layers with at least `width` tokens a side; their sum is the separation rank.

    Several heads of more than one entry each that together are narrower than the width are outside the domain: the cap
    was attained in the nine such shapes measured (d ≤ 9), but a count of terms says that it cannot be for wide ones.
    """
    cap = graded_cap(2, width, whole("heads", heads), whole("attention_width", attention_width))
    inner = min(attention_width, width)
    if heads == 1 and inner < width:
        return _one_narrow_head(width, inner, cap)
    if inner > 1 and heads * inner < width:
        raise OutsideDomain(
            f"heads × attention_width = {heads * inner} is outside the domain: several heads of more than one entry "
            f"need a sum of at least the width {width}"
        )
    return cap


def heads_deficit_depth_2(width: int, heads: int) -> int:
    """How far H > 1 heads of width d/H each stay below the cap of one head of full width, at depth 2.

    binom(D − d²/H + 1, 2), and for heads of one entry (H = d) also max(0, d(D − d) − binom(d+2, 3)), D = d(d+1)/2.
    """
    if whole("width", width) % whole("heads", heads):
        raise OutsideDomain(f"heads = {heads} is outside the domain: pass a divisor of the width {width}")
    if heads == 1:
        return 0
    entries = _forms(width)
    missing = math.comb(entries - width**2 // heads + 1, 2)
    return missing + (max(0, width * (entries - width) - math.comb(width + 2, 3)) if heads == width else 0)


def _one_narrow_head(width: int, inner: int, cap: list[int]) -> list[int]:
    """One head of d_a < d.

    The first layer reads the λ forms of L = V S Kᵀ and passes on the forms of s = Q S Qᵀ. They span all but what they
    share: the quadrics in d_a variables that vanish on two spaces of dimension d − d_a. The parts quadratic in B are
    (s and one row of L) times L, and the d_a² entries of Lᵀ R L, of which some repeat when d − d_a is 1 or 2.
    """
    beyond = width - inner
    shared_rows = max(0, inner - beyond)  # of V and K
    seen = inner**2 - math.comb(shared_rows, 2)
    spaces = min(beyond, inner)
    span = seen + 2 * _forms(spaces) - _forms(max(0, 2 * spaces - inner))
    multipliers = _forms(inner) + inner
    products = multipliers * seen - math.comb(multipliers + seen - span, 2)
    repeated = shared_rows**2 if beyond == 1 else math.comb(shared_rows, 2) if beyond == 2 else 0
    ideal = math.comb(span + 1, 2) - math.comb(span - seen + 1, 2)  # quadrics with a factor among the forms of L
    return [cap[0], span, min(ideal, products + inner**2 - repeated), inner * span, inner]


def _forms(variables: int) -> int:
    """Quadratic monomials: D of d."""
    return variables * (variables + 1) // 2
