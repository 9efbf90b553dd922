"""How large self-attention is as a polynomial: its degree in the weights, and the sum of its coefficients.

No coefficient is negative, so their sum is the value at weights and tokens of 1. Both numbers bound how often drawn
weights or primes hide some of its separation rank (docs/rank.md).
"""

from __future__ import annotations

import math

from theodolite.theory.attention import degree, hops
from theodolite.theory.domain import whole


def weight_degree(depth: int, embedded: int = 0, read: bool = False) -> int:
    """4·C for queries, keys, values and outputs; every map before the first layer enters with each of 3^L tokens."""
    return 4 * hops(depth) + whole("embedded", embedded, 0) * degree(depth) + int(read)


def coefficients_log2(
    depth: int, width: int, heads: int, attention_width: int, tokens: int, embedding: int = 1, read: bool = False
) -> float:
    """log₂ of the value at ones: layer by layer v ← N·H·d_a²·d³·v³, from a token's entry after its embedding."""
    step = math.log2(whole("tokens", tokens) * whole("heads", heads)) + 2 * math.log2(whole("inner", attention_width))
    value = math.log2(whole("embedding", embedding))
    for _ in range(whole("depth", depth)):
        value = 3 * value + step + 3 * math.log2(whole("width", width))
    return value + (math.log2(width) if read else 0.0)


def part_counts(
    depth: int, width: int, heads: int, attention_width: int, features: int, part: int
) -> tuple[int, float]:
    """Of the part of degree `part` in S_B: its degree in the weights, and log₂ of the sum of its coefficients.

    In S, x and weights, A and B being products of d_a terms. One head of full width needs fewer weights: with F_l =
    A_l ⋯ A_1·G_l the products B′ = (A_{l−1} ⋯ A_1)ᵀB_l(A_{l−1} ⋯ A_1) and a = e_pᵀA_L ⋯ A_1 are as good as drawn, and
    G_{l+1} = G S Gᵀ B′ G has C of them.
    """
    mixed = hops(depth)
    d, choices = math.log2(whole("width", width)), math.log2(math.comb(mixed, whole("part", part, 0)))
    if one_full_head(width, heads, attention_width, features):
        g = d
        for _ in range(depth - 1):
            g = 3 * g + 4 * d
        return mixed + 1, g + 2 * d + choices
    pair = math.log2(heads) + 2 * math.log2(attention_width)
    embedded = features != width
    f = pair + 2 * d + (d + 2 * math.log2(features) if embedded else 0.0)
    for _ in range(depth - 1):
        f = 3 * f + 3 * d + 2 * math.log2(features) + pair
    return weight_degree(depth, int(embedded)), f + math.log2(features) + choices


def one_full_head(width: int, heads: int, attention_width: int, features: int) -> bool:
    return heads == 1 and attention_width == width == features


def singular_matrices(depth: int, width: int) -> int:
    """(3L − 1)·d: over p, how likely one of the matrices is singular that `part_counts` inverts for one full head."""
    return (3 * depth - 1) * width
