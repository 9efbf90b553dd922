"""What of a shape is wasted: widths that theory says another size caps, each with its share by counting.

`redundant_share` is a share of the parameters in the blocks, embeddings left out. It counts what could go while the
cap on the separation rank stays the same. It is no promise that a smaller model trains as well; where a measured
figure is published it stands in `why`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from theodolite.advice.shape import ModelShape
from theodolite.theory.bottleneck import ALBERT_PUBLISHED, T5_11B_PUBLISHED, excess_of, width_share

Kind = Literal["vocabulary", "embedding-rank", "attention-width", "too-many-heads"]

LOST_TO_HEADS = 0.1  # of d − H with one head: heads narrower than about ten numbers


@dataclass(frozen=True)
class Bottleneck:
    """One size that caps another, and the share of the blocks' parameters beyond it."""

    kind: Kind
    redundant_share: float
    why: str


def percent(share: float) -> str:
    """Whole percents; with as many digits as it takes where that would read as all or nothing and is not."""
    for digits in range(12):
        text = f"{share:.{digits}%}"
        if not 0 < share < 1 or float(text[:-1]) not in (0.0, 100.0):
            return text
    return f"{share:.0%}"  # no number a reader could tell apart


def input_rank(shape: ModelShape, given: int | None = None) -> int | None:
    """Dimension of the space the tokens come from: the least of vocabulary, factored embedding and what was given."""
    known = [rank for rank in (shape.vocab, shape.embedding_rank, _patch(shape), given) if rank is not None]
    return min(known, default=None)


def bottlenecks(shape: ModelShape, given_rank: int | None = None) -> tuple[Bottleneck, ...]:
    """All that are found; `given_rank` is what the user knows of the rank of the inputs."""
    found = [_input(shape, given_rank), _attention_width(shape), _heads(shape)]
    return tuple(one for one in found if one is not None)


def _input(shape: ModelShape, given: int | None) -> Bottleneck | None:
    rank = input_rank(shape, given)
    if rank is None or rank >= shape.width:
        return None
    share = width_share(shape.width, rank)
    capped = f"Theorem 7.3 and the cap: width {shape.width} then ties inputs no more strongly than width {rank}"
    if rank == shape.vocab:
        why = f"{rank} symbols span at most {rank} dimensions of {shape.width}. {capped}; depth still helps."
        return Bottleneck("vocabulary", share, why)
    inputs = f"A patch has {rank} numbers" if rank == _patch(shape) else f"The inputs have rank {rank}"
    why = f"{inputs}, below the width {shape.width}. {capped}; depth still helps."
    if shape.family == "albert":
        why += f" Published for ALBERT, by training: {ALBERT_PUBLISHED:.0%}."
    return Bottleneck("embedding-rank", share, why)


def _patch(shape: ModelShape) -> int | None:
    """Numbers of an image's patch: the rows of the matrix that maps it to the width, the bias taken off."""
    if shape.modality != "image" or shape.vocab is not None:
        return None
    return max(1, shape.parts.get("embedding", 0) // shape.width - 1)


def _attention_width(shape: ModelShape) -> Bottleneck | None:
    inner = shape.attention_width
    if inner <= shape.width:
        return None
    share = excess_of(shape.parts.get("attention", 0), shape.params_in_blocks, inner, shape.width)
    low, high = T5_11B_PUBLISHED
    why = (
        f"{shape.heads} heads of width {shape.head_width} make {inner}, above the width {shape.width}: the cap does "
        f"not grow with attention wider than the network. Published for T5-11B: {low:.0%} to {high:.0%}."
    )
    return Bottleneck("attention-width", share, why)


def _heads(shape: ModelShape) -> Bottleneck | None:
    """Heads cost no parameters, so nothing could go; but the lower bounds of Theorems 7.1 to 7.3 fall with d − H."""
    lost = (shape.heads - 1) / max(1, shape.width - 1)
    if lost < LOST_TO_HEADS:
        return None
    why = (
        f"{shape.heads} heads at width {shape.width}: the theorems' lower bounds grow with d - H, which is "
        f"{percent(lost)} less than with one head; fewer, wider heads cost no parameters."
    )
    return Bottleneck("too-many-heads", 0.0, why)
