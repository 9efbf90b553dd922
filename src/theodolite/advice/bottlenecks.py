"""What of a shape lies beyond the cap: sizes that theory says another size limits.

`beyond_cap_share` is a share of the parameters in the blocks, embeddings left out: what could go while the cap on the
separation rank stays the same. It is counted for attention alone. That a model trains as well without them is no
theorem; what training says stands in `why`. Inputs of low rank get no share: the theorems know no MLP, no positions and
no softmax, and models with few symbols or small patches use their width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from theodolite.advice.heads_law import HeadsLaw, heads_law
from theodolite.advice.shape import ModelShape
from theodolite.theory.bottleneck import ALBERT_PUBLISHED, T5_11B_PUBLISHED

Kind = Literal["vocabulary", "embedding-rank", "attention-width", "too-many-heads"]

LOST_TO_HEADS = 0.1  # of d − H with one head: heads narrower than about ten numbers


@dataclass(frozen=True)
class Bottleneck:
    """One size that limits another, and the share of the blocks' parameters beyond it; None where none is claimed."""

    kind: Kind
    beyond_cap_share: float | None
    why: str

    def to_json(self) -> dict[str, Any]:
        """`redundant_share` is the name of 0.2, kept for one release."""
        share = self.beyond_cap_share
        return {"kind": self.kind, "beyond_cap_share": share, "redundant_share": share, "why": self.why}


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
    capped = f"the cap on the separation rank is that of width {rank} (Theorem 7.3), so theory prefers depth"
    if rank == _patch(shape):
        why = (
            f"A patch has {rank} numbers, below the width {shape.width}: {capped}. Published for images is no share, "
            "only that ratios of depth to width are about ten times those of language."
        )
        return Bottleneck("embedding-rank", None, why)
    if rank == shape.vocab:
        why = (
            f"{rank} symbols span at most {rank} of {shape.width} dimensions: {capped}. That is no measure of waste: "
            "it knows no MLP and no positions, and models of few symbols are trained far wider (ByT5: 384 symbols, "
            "widths 1472 to 4672)."
        )
        return Bottleneck("vocabulary", None, why)
    why = f"The inputs have rank {rank}, below the width {shape.width}: {capped}."
    if shape.family == "albert":
        why += f" By training {ALBERT_PUBLISHED:.0%} of ALBERT were found redundant (Wies et al. 2021)."
    return Bottleneck("embedding-rank", None, why)


def _patch(shape: ModelShape) -> int | None:
    """Numbers of an image's patch: the rows of the matrix that maps it to the width, the bias taken off."""
    if shape.modality != "image" or shape.vocab is not None:
        return None
    return max(1, shape.parts.get("embedding", 0) // shape.width - 1)


def _attention_width(shape: ModelShape) -> Bottleneck | None:
    """By the law of the heads, not by H·d_a > d: narrow heads buy rank until they read all of S."""
    law = heads_law(shape)
    heads, groups = shape.heads, max(1, min(shape.key_value_heads, shape.heads))
    latent = shape.cached_numbers is not None  # keys and values are then made for each head of queries
    if law.kept == heads and (latent or law.kept_key_value == groups):
        return None
    share = None
    if not latent and shape.params_in_blocks:  # queries and outputs, keys and values, a head each
        beyond = (heads - law.kept + groups - law.kept_key_value) / (heads + groups)
        share = beyond * shape.parts.get("attention", 0) / shape.params_in_blocks
    low, high = T5_11B_PUBLISHED
    why = (
        f"{_beyond(shape, law, groups)} Counted, not trained: published for T5-11B are {low:.0%} to {high:.0%} "
        "(Wies et al. 2021), where this count gives 32%."
    )
    return Bottleneck("attention-width", share, why)


def _beyond(shape: ModelShape, law: HeadsLaw, groups: int) -> str:
    if groups == shape.heads and shape.cached_numbers is None:
        return (
            f"{law.enough} heads of width {shape.head_width} read all that matters of an input of width {shape.width}; "
            f"the cap does not grow with the other {shape.heads - law.kept} of {shape.heads}."
        )
    read = "the latent numbers" if shape.cached_numbers is not None else f"{groups} key-value heads"
    return (
        f"What a layer reads is bounded by {read}, and {law.kept} heads of queries of width {shape.head_width} fill "
        f"the width {shape.width}: the cap does not grow with the other {shape.heads - law.kept} of {shape.heads}."
    )


def _heads(shape: ModelShape) -> Bottleneck | None:
    """Heads cost no parameters, so nothing could go; but the lower bounds of Theorems 7.1 to 7.3 fall with d − H."""
    lost = (shape.heads - 1) / max(1, shape.width - 1)
    if lost < LOST_TO_HEADS or heads_law(shape).sees_all:
        return None
    why = (
        f"{shape.heads} heads at width {shape.width}: the theorems' lower bounds grow with d - H, which is "
        f"{percent(lost)} less than with one head, and the cap loses less than one layer's worth; fewer, wider heads "
        "cost no parameters."
    )
    return Bottleneck("too-many-heads", 0.0, why)
