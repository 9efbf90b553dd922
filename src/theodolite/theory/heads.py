"""What narrow heads cost: a cap that knows the number of heads and their width. Theorem and proof: docs/exact-rank.md.

The first layer reads S = Σ_j x^j x^jᵀ only through the H blocks V_h S K_hᵀ, hence through at most K linear forms f; its
output reads the tokens through e = min(H·d_a, d) numbers. Whatever of S the later layers see besides f, they see
through the κ forms g that are left, and each g costs a layer: the degree in g is at most (3^(L−1) − 1)/2. For every
degree c in S_B the monomials of both sides, sorted by their degree in g, form a staircase, and its smallest cover is a
cap. At depth 2 and H·d_a ≥ d the rank equals it: `theory.two_layers` says where that is proven.

Where heads share keys and values the blocks are those of the G key–value heads, and where keys and values are made from
c numbers of a token (latent attention) all blocks read the c × c form of S alone: K is smaller, the rest as before.

Heads of one entry each pay a little more from depth 3 on: form f_h of head h meets only those g that q_h reads, so
that an S with f(S) = 0 and S q_h = 0 keeps f_h away from every place that it takes. `_single_entries_lost` counts the
operators that nothing is left for.

What narrow heads cost is less than a layer. With H·d_a ≥ d the cap at depth L is at least the full cap at depth L − 1:
multiplied by powers of one form f, every pair of monomials that depth L − 1 allows is allowed at depth L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

from theodolite.theory.attention import hops
from theodolite.theory.cap import attention_cap
from theodolite.theory.domain import whole

_LARGEST = 100_000  # terms of the sum below: depth 6


@dataclass(frozen=True)
class Reading:
    """How a first layer reads its tokens: `seen` forms of S at once, `later` more through what it puts out."""

    seen: int  # K
    later: int  # κ
    entries: int  # e, numbers of x^i that matter

    @staticmethod
    def of(
        width: int,
        heads: int,
        attention_width: int,
        embedding_rank: int | None = None,
        key_value_heads: int | None = None,
        latent: int | None = None,
    ) -> Reading:
        """For almost all weights; special ones read less.

        `key_value_heads`: fewer than the heads where they share keys and values. `latent`: the numbers of a token that
        keys and values are made from.
        """
        whole("width", width)
        whole("heads", heads)
        if embedding_rank is not None:
            width = min(width, whole("embedding_rank", embedding_rank))
        inner = min(whole("attention_width", attention_width), width)
        all_entries = width * (width + 1) // 2
        entries = min(width, heads * inner)
        # Rows of V and of K meet in a space of dimension 2·d_a − d or more, on which ⟨v, S k⟩ = ⟨k, S v⟩.
        blocks = heads if key_value_heads is None else min(heads, whole("key_value_heads", key_value_heads))
        seen = min(all_entries, blocks * (inner**2 - math.comb(max(0, 2 * inner - width), 2)))
        if latent is not None:
            seen = min(seen, whole("latent", latent) * (latent + 1) // 2)
        return Reading(seen, min(all_entries, seen + entries * (entries + 1) // 2) - seen, entries)


def graded_heads_cap(
    depth: int,
    width: int,
    heads: int,
    attention_width: int,
    embedding_rank: int | None = None,
    key_value_heads: int | None = None,
    latent: int | None = None,
) -> list[int]:
    """The cap degree by degree: entry c bounds the part of degree c in S_B, for all weights and any tokens."""
    total = hops(whole("depth", depth))
    reading = Reading.of(width, heads, attention_width, embedding_rank, key_value_heads, latent)
    most = hops(depth - 1) if depth > 1 else 0  # degree in g
    seen = [_forms(reading.seen, i) for i in range(total + 1)]
    later = [_forms(reading.later, j) for j in range(most + 1)]
    single = attention_width == 1 and key_value_heads is None and latent is None and reading.seen == heads
    free = max(0, reading.later - reading.entries)
    lost = [
        [_single_entries_lost(heads, free, most, c, j) if single else 0 for j in range(most + 1)]
        for c in range(total + 1)
    ]
    return [_staircase(seen, later, c, total - c, reading.entries, lost[c], lost[total - c]) for c in range(total + 1)]


def heads_cap(
    depth: int,
    width: int,
    heads: int,
    attention_width: int,
    embedding_rank: int | None = None,
    key_value_heads: int | None = None,
    latent: int | None = None,
) -> int:
    """The sum of `graded_heads_cap`; `attention_cap` where the first layer sees all of S, and where it is too long."""
    shape = (width, heads, attention_width, embedding_rank, key_value_heads, latent)
    reading = Reading.of(*shape)
    space = min(width, embedding_rank or width)
    everything = attention_cap(depth, space, space, space)
    whole_input = reading.later == 0 and reading.entries == space
    if whole_input or hops(depth) * (hops(depth - 1) if depth > 1 else 1) > _LARGEST:
        return everything
    return min(everything, sum(graded_heads_cap(depth, *shape)))


def heads_that_see_all(width: int, attention_width: int) -> int:
    """The fewest heads of this width that read all of S in one layer: their cap is that of one full head."""
    whole("width", width)
    inner = min(whole("attention_width", attention_width), width)
    block = inner**2 - math.comb(max(0, 2 * inner - width), 2)
    return max(-(-width // inner), -(-(width * (width + 1) // 2) // block))


def _forms(variables: int, degree: int) -> int:
    """Monomials of this degree."""
    return math.comb(variables + degree - 1, degree) if variables else int(degree == 0)


def _single_entries_lost(heads: int, free: int, most: int, degree: int, later: int) -> int:
    """Operators of `degree`, `later` of it in g, that kill all terms in which every place of a g is taken by one.

    Such a term has 2·most + 1 forms f, two beside each g. If `later` of the g are S with f(S) = 0 and q_hᵀS q_j = 0 for
    all j, a space of dimension `free` = κ − e at least, then none of the f beside them is f_h, and of f_h more than
    2·(most − later) + 1 are too many.
    """
    powers = _forms(free, later)
    least, left = 2 * (most - later) + 2, degree - later
    some = sum(
        (-1) ** (j + 1) * math.comb(heads, j) * _forms(heads, left - j * least)
        for j in range(1, heads + 1)
        if left >= j * least
    )
    return powers * some


def _staircase(
    seen: list[int], later: list[int], c: int, k: int, entries: int, lost_other: list[int], lost_here: list[int]
) -> int:
    """The smallest cover of the pairs (monomial of S_B, monomial of S_A times an entry of x) that can occur.

    Sides have degrees c and k; pairs whose degrees in g sum to more than the largest do not occur. By König's theorem
    no matrix with these entries has a larger rank than the best of the covers {degree in g ≤ t} ∪ {≤ most − t − 1}. A
    cover's last degree meets the other side's in one block alone: what is lost there, on one side or the other, is not
    needed to cover it.
    """
    most = len(later) - 1
    other = [0, *accumulate(seen[c - j] * later[j] if j <= c else 0 for j in range(most + 1))]
    here = [0, *accumulate(entries * seen[k - j] * later[j] if j <= k else 0 for j in range(most + 1))]
    return min(
        other[t]
        + here[most + 1 - t]
        - max(lost_other[t - 1] if t else 0, entries * lost_here[most - t] if t <= most else 0)
        for t in range(most + 2)
    )
