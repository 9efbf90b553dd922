"""The cap of attention whose blocks may have even degrees, which multiply by W Σ_j y^j.

**Lemma.** Let S = Σ_j x^j x^jᵀ and s = Σ_j x^j. Then y^i = F(S, s) x^i, and the entries of F are homogeneous of degree
P in S and of degree Q in s. *Proof.* True of x^i itself, P = Q = 0. If it is true of the input y^j = F x^j of a block,
then Σ_j y^j y^jᵀ = F S Fᵀ and Σ_j y^j = F s: a hop multiplies by F S Fᵀ, of degrees (2P + 1, 2Q), and the product with
W Σ_j y^j by a diagonal matrix of degrees (P, Q + 1). ∎

So 2P + Q + 1 is the total degree, and the order of the blocks decides how it is shared: blocks 2 and 3 give (1, 3),
blocks 3 and 2 give (2, 1). With S = S_A + S_B and s = s_A + s_B, i in A, the part of degrees (p, q) on side B and
(P−p, Q−q) on side A has rank at most min(h, a): h counts the functions of degrees (p, q) in S_B and s_B, a the same on
side A times x^i. The parts of one degree c = 2p + q on side B lie in (forms of degree c of B) ⊗ (forms of degree
2P + Q + 1 − c of A), so their sum has at most the smaller of these dimensions too. The cap is the sum over c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from theodolite.theory.cap import homogeneous_cap
from theodolite.theory.domain import whole
from theodolite.theory.invariants import covariants, invariants

_MOST_PARTS = 4_000_000  # beyond them, some seconds, the coarser cap is given


def shared_degrees(degrees: Sequence[int]) -> tuple[int, int]:
    """(P, Q): the degree of attention of these blocks, the first block first, in S = Σ x xᵀ and in s = Σ x."""
    p = q = 0
    for degree in degrees:
        hops = (whole("degree", degree, 2) - 1) // 2
        even = degree % 2 == 0
        p, q = p + hops * (2 * p + 1) + even * p, q + hops * 2 * q + even * (q + 1)
    return p, q


def one_wide_rank(degrees: Sequence[int], tokens: int) -> int:
    """The exact rank of attention of width 1 with so many tokens a side, for all weights but zeros.

    S and s are numbers then, so y^i = c·S^P·s^Q·x^i with S = S_A + S_B and s = s_A + s_B. From two tokens a side on, S
    and s of a side are algebraically independent, and the (P + 1)(Q + 1) products of the binomial expansion are
    independent on both sides. With one token a side y = c·(a² + b²)^P·(a + b)^Q·a, whose rank is the number of its
    coefficients that are not 0: all are positive, and there are 2P + Q + 1 of them, or P + 1 if Q = 0.
    """
    p, q = shared_degrees(degrees)
    if whole("tokens", tokens) > 1:
        return (p + 1) * (q + 1)
    return 2 * p + q + 1 if q else p + 1


def gated_attention_cap(degrees: Sequence[int], width: int, tokens_with_output: int, tokens_other: int) -> int:
    """Cap for degree-attention of any blocks; for odd ones alone it is `attention_cap`."""
    d, n, m = (
        whole("width", width),
        whole("tokens_with_output", tokens_with_output),
        whole("tokens_other", tokens_other),
    )
    most_s, most_q = shared_degrees(degrees)
    total = 2 * most_s + most_q + 1
    if (most_s + 1) * (most_q + 1) > _MOST_PARTS:
        return homogeneous_cap(total, n * d, m * d)
    in_s = [invariants(p, d, m) for p in range(most_s + 1)]
    with_output = [covariants(p, d, n) for p in range(most_s + 1)]
    in_sum = [math.comb(d + q - 1, q) for q in range(most_q + 1)]
    parts = [0] * total
    for p in range(most_s + 1):
        for q in range(most_q + 1):
            here = with_output[most_s - p] * in_sum[most_q - q]
            parts[2 * p + q] += min(in_s[p] * in_sum[q], here)
    return sum(
        min(part, math.comb(m * d + c - 1, c), math.comb(n * d + total - c - 1, total - c))
        for c, part in enumerate(parts)
    )
