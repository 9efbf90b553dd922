"""The separation rank of self-attention degree by degree: which part of the output falls short of its cap.

The output is homogeneous of degree C = (3^L − 1)/2 in S = S_A + S_B (docs/cap.md). Its parts of degree c in S_B,
c = 0 … C, live in independent spaces, so the separation rank is the sum of their ranks r_c, and each r_c has caps of
its own: min(h_m(c), a_n(C − c)), which knows the tokens, and `graded_weights_cap`, which knows the heads. A part is
measured by itself, from its own cap + 64 points, so that one part of a network far too large for
`separation_rank` can still be decided.

What is proven is what `instruments.rank` proves: the rank found is a lower bound for almost all real weights, and
equal to a cap it is the rank. Otherwise `exact` rests on surplus points and on repeats that agree.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from theodolite.claims.tensors.graded_blocks import AttentionForms, Side, block_matrix
from theodolite.device import device_name, require_memory, resolve_device
from theodolite.errors import BadInput
from theodolite.field import Modulus, draw_prime, eliminate
from theodolite.instruments.rank.doubt import Drawn, by_points, missed_rank
from theodolite.instruments.rank.exact import LARGEST_DOUBT, SURPLUS
from theodolite.measurement import Provenance, finite
from theodolite.nets.self_attention import SelfAttention
from theodolite.theory.attention import hops
from theodolite.theory.attention_counts import one_full_head, part_counts, singular_matrices
from theodolite.theory.attention_rank import graded_weights_cap
from theodolite.theory.invariants import covariants, invariants


@dataclass(frozen=True)
class BlockRank:
    """The part of degree `degree` in S_B."""

    degree: int
    rank: int
    cap: int  # min(h_m(c), a_n(C − c)): the tokens and the width allow no more
    heads_cap: int  # the heads, their width and matrices that repeat allow no more
    exact: bool
    points: int
    ranks: tuple[int, ...]

    @property
    def deficit(self) -> int:
        return self.cap - self.rank

    @property
    def proven(self) -> bool:
        return self.rank == min(self.cap, self.heads_cap)

    @property
    def surplus(self) -> int:
        return self.points - self.rank


@dataclass(frozen=True)
class GradedRank:
    """Ranks of the parts that were asked for; with all of them `total` is the separation rank."""

    depth: int
    width: int
    heads: int
    attention_width: int
    tokens_with_output: int
    tokens_other: int
    embedding_rank: int | None
    blocks: tuple[BlockRank, ...]
    failure_probability: float
    primes: tuple[int, ...]
    seconds: float
    provenance: Provenance

    @property
    def complete(self) -> bool:
        return len(self.blocks) == hops(self.depth) + 1

    @property
    def exact(self) -> bool:
        return all(block.exact for block in self.blocks)

    @property
    def proven(self) -> bool:
        return all(block.proven for block in self.blocks)

    @property
    def total(self) -> int:
        return sum(block.rank for block in self.blocks)

    @property
    def cap(self) -> int:
        return sum(block.cap for block in self.blocks)

    @property
    def deficits(self) -> dict[int, int]:
        """By how much each part that falls short of its cap does."""
        return {block.degree: block.deficit for block in self.blocks if block.deficit}

    def to_json(self) -> dict[str, Any]:
        row = finite(asdict(self))
        for written, block in zip(row["blocks"], self.blocks, strict=True):
            written.update(deficit=block.deficit, proven=block.proven, surplus=block.surplus)
        summary = {name: getattr(self, name) for name in ("total", "cap", "complete", "exact", "proven")}
        return {**row, **summary}


Progress = Callable[[str, float], None]  # as in `instruments.rank`


def graded_rank(
    depth: int = 2,
    width: int = 4,
    heads: int = 1,
    attention_width: int | None = None,
    tokens_with_output: int | None = None,
    tokens_other: int | None = None,
    embedding_rank: int | None = None,
    *,
    degrees: Sequence[int] | None = None,
    max_points: int | None = None,
    repeats: int = 2,
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> GradedRank:
    """Rank of each part of one output entry, between `tokens_with_output` tokens and `tokens_other` others.

    Both default to `width`, from where on more tokens change nothing. `degrees` chooses parts; `max_points` leaves
    a part whose cap lies above it with a lower bound, unless its rank is found to stay below.
    """
    started = time.perf_counter()
    device = resolve_device(device)
    shape = {"depth": depth, "width": width, "heads": heads}
    net = SelfAttention(**shape, attention_width=attention_width, embedding_rank=embedding_rank)
    features, inner = net.embedding_rank, net.attention_width
    n, m = (width if tokens is None else tokens for tokens in (tokens_with_output, tokens_other))
    total = hops(depth)
    chosen = _chosen(degrees, total)
    for name, value in (("repeats", repeats), ("max points", max_points)):
        if value is not None and value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}: an empty matrix has no rank to measure")
    narrow = graded_weights_cap(depth, width, heads, inner, n, m, features)
    caps = {c: min(invariants(c, features, m), covariants(total - c, features, n)) for c in chosen}
    moduli = [Modulus(draw_prime(f"{seed}/{repeat}/prime")) for repeat in range(repeats)]
    blocks, doubts = [], []
    for c in chosen:
        points = min(min(caps[c], narrow[c]) + SURPLUS, max_points or sys.maxsize)
        ranks = []
        for repeat, modulus in enumerate(moduli):
            if progress is not None:
                progress(f"degree {c}, repeat {repeat + 1}: {points:,} × {points:,} points", 0.0)
            stream = f"{seed}/{repeat}"
            forms = AttentionForms.drawn(
                f"{stream}/weights", modulus, device, **shape, attention_width=inner, features=features
            )
            ranks.append(_block(forms, stream, (n, m), c, total, points, features, device))
            if ranks[-1] == min(caps[c], narrow[c]):  # proven: no repeat can add to it
                break
        rank = max(ranks)
        if rank > min(caps[c], narrow[c]):
            raise AssertionError(f"rank {rank} of degree {c} is above its cap {min(caps[c], narrow[c])}")
        proven = rank == min(caps[c], narrow[c])
        missed = 0.0 if proven else max(by_points(points, rank, 3**depth, modulus.p) for modulus in moduli)
        agreed = len(ranks) > 1 and len(set(ranks)) == 1 and points - rank >= SURPLUS and missed <= LARGEST_DOUBT
        blocks.append(BlockRank(c, rank, caps[c], narrow[c], proven or agreed, points, tuple(ranks)))
        if not proven:
            doubts.append(_doubt(rank, points, moduli, c, depth, width, heads, inner, features))
    return GradedRank(
        **shape,
        attention_width=inner,
        tokens_with_output=n,
        tokens_other=m,
        embedding_rank=embedding_rank,
        blocks=tuple(blocks),
        failure_probability=min(1.0, sum(doubts, 0.0)),  # that some part has more
        primes=tuple(modulus.p for modulus in moduli),
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
    )


def _doubt(
    rank: int,
    points: int,
    moduli: Sequence[Modulus],
    part: int,
    depth: int,
    width: int,
    heads: int,
    inner: int,
    features: int,
) -> float:
    """The chance that all draws miss some rank of a part, counting points, weights and primes."""
    in_weights, terms = part_counts(depth, width, heads, inner, features, part)
    if one_full_head(width, heads, inner, features):  # as if each row of the minor had these on top
        in_weights += -(-singular_matrices(depth, width) // (rank + 1))
    return missed_rank(rank, 3**depth, [Drawn(points, modulus.p, in_weights, terms) for modulus in moduli])[0]


def _block(
    forms: AttentionForms,
    stream: str,
    tokens: tuple[int, int],
    degree: int,
    total: int,
    points: int,
    features: int,
    device: torch.device,
) -> int:
    require_memory(8 * points * points, device, f"a matrix of {points:,} × {points:,} points")
    a, b = (
        Side.drawn(f"{stream}/{side}", points, count, features, forms.modulus, device)
        for side, count in zip("ab", tokens, strict=True)
    )
    return eliminate(block_matrix(forms, a, b, degree, total), forms.modulus, overwrite=True).rank


def _chosen(degrees: Sequence[int] | None, total: int) -> list[int]:
    if degrees is None:
        return list(range(total + 1))
    wrong = [c for c in degrees if not 0 <= c <= total]
    if wrong or not degrees:
        what = f"degree {wrong[0]} is not there" if wrong else "no degree was named"
        raise BadInput(f"{what}: the parts of this depth have degrees 0 to {total}")
    return sorted(set(degrees))


def measure_graded_rank(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: any argument of `graded_rank` but seed and device."""
    return graded_rank(**config, seed=seed, device=device).to_json()
