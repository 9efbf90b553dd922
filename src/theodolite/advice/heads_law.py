"""What the law of the heads says of a shape: how much of its input one layer reads, and which heads lie beyond."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.advice.shape import ModelShape
from theodolite.theory.bottleneck import heads_kept
from theodolite.theory.heads import Reading, heads_that_see_all


@dataclass(frozen=True)
class HeadsLaw:
    """A layer reads `seen` of the `entries` = d(d+1)/2 numbers of S that matter, for almost all weights.

    `enough` heads of keys and values read all of them. `kept` heads of queries and `kept_key_value` of keys and values
    have the cap of all heads that there are. `reached` are the numbers that any later layer can come to see: fewer
    than all where attention is narrower than the network.
    """

    seen: int
    entries: int
    reached: int
    enough: int
    kept: int
    kept_key_value: int

    @property
    def sees_all(self) -> bool:
        return self.seen == self.entries


def proven_heads(shape: ModelShape) -> tuple[int, int] | None:
    """Number and width of the heads with keys and values of their own, of which docs/paper.md speaks; None of latent
    attention."""
    return None if shape.cached_numbers is not None else (_groups(shape), shape.head_width)


def heads_law(shape: ModelShape) -> HeadsLaw:
    """`cached_numbers` are those that latent attention makes its keys and values from."""
    inner = max(shape.head_width, shape.score_width or 0)  # at least what a block reads
    least = min(shape.head_width, shape.score_width or shape.head_width)
    groups = _groups(shape)
    reading = Reading.of(shape.width, shape.heads, inner, None, groups, shape.cached_numbers)
    kept, kept_key_value = heads_kept(shape.width, shape.heads, least, groups, shape.cached_numbers)
    return HeadsLaw(
        seen=reading.seen,
        entries=shape.width * (shape.width + 1) // 2,
        reached=reading.seen + reading.later,
        enough=heads_that_see_all(shape.width, least),
        kept=kept,
        kept_key_value=kept_key_value,
    )


def _groups(shape: ModelShape) -> int:
    return max(1, min(shape.key_value_heads, shape.heads))
