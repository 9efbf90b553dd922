"""What the advice needs to know of a model: its sizes, and its parameters by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Modality = Literal["language", "image", "bytes"]
Kind = Literal["Transformer", "hybrid", "recurrent", "convolutional", "other"]

# Parts that are not in the blocks: the published fit counts parameters without them.
OUTSIDE_BLOCKS = ("embedding", "positions", "head", "other")


@dataclass(frozen=True)
class Quantised:
    """Weights in the blocks stored in fewer bits, with what scales them."""

    method: str
    bits: float


@dataclass(frozen=True)
class ModelShape:
    """The shape of a model as a configuration states it.

    `depth` counts the blocks; an encoder–decoder has `decoder_depth` of them in its decoder, included in `depth`.
    `parts` are parameters by part, each tensor once: the names in `OUTSIDE_BLOCKS`, and `attention`, `mlp`, `router`,
    `norms` for the blocks. `active` are the parameters one token uses, which differ from all of them in a mixture of
    experts and in an encoder–decoder: there a token of the decoder uses them, and one of the encoder those in
    `encoder_token`. `exact` is false where a field had to be guessed; `notes` say which. Of what is no Transformer in
    all of its layers the parameters are known, and sizes that it does not have are 0.
    """

    name: str
    family: str
    modality: Modality
    depth: int
    width: int
    heads: int
    head_width: int
    key_value_heads: int
    mlp_width: int
    gated: bool
    vocab: int | None
    embedding_rank: int | None  # of a factored embedding; None where the table has the model's width
    tied: bool
    parts: Mapping[str, int]
    active: int
    decoder_depth: int = 0
    encoder_token: Mapping[str, int] = field(default_factory=dict)  # by part; empty where there is one stack
    distinct_layers: int | None = None  # fewer than `depth` where layers share their weights
    experts: int = 1
    active_experts: int = 1
    positions: int | None = None  # the longest input
    cached_numbers: int | None = None  # kept for a token by one layer; None: its keys and values
    headless: bool = False  # no map to the vocabulary: a tied table is only looked up
    kind: Kind = "Transformer"
    score_width: int | None = None  # of a head's queries and keys, where its values have another
    windows: Mapping[int, int] = field(default_factory=dict)  # tokens attended to → layers; the others attend to all
    caching_layers: int | None = None  # fewer than there are where some use the keys and values of others
    quantised: Quantised | None = None  # how the weights in the blocks are stored
    whole: int | None = None  # parameters of the whole model, where `parts` are of its language model
    exact: bool = True
    counted: str = ""  # the model class whose parameters these are
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def params(self) -> int:
        return sum(self.parts.values())

    @property
    def params_in_blocks(self) -> int:
        """N without embeddings."""
        return sum(count for part, count in self.parts.items() if part not in OUTSIDE_BLOCKS)

    @property
    def two_stacks(self) -> bool:
        return 0 < self.decoder_depth < self.depth

    @property
    def layers(self) -> str:
        """The depth as people read it: encoder + decoder where there are both."""
        return f"{self.depth - self.decoder_depth} + {self.decoder_depth}" if self.two_stacks else f"{self.depth}"

    @property
    def speaks(self) -> bool:
        """Whether theorems and fit speak of it: a Transformer of text or images whose sizes are known."""
        return self.kind == "Transformer" and min(self.depth, self.width, self.heads, self.head_width) > 0

    @property
    def one_dense_stack(self) -> bool:
        """A Transformer of one stack, without experts, whose layers have weights of their own."""
        return self.speaks and not self.two_stacks and self.experts == 1 and self.distinct_layers is None

    @property
    def attention_width(self) -> int:
        """H·d_a, the width attention works in."""
        return self.heads * self.head_width
