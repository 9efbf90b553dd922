"""How much of a Transformer's parameters lies in attention wider than the network (Section 7.3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.theory.domain import whole


@dataclass(frozen=True)
class TransformerShape:
    """An encoder, a decoder or both; a decoder layer of an encoder–decoder has a second attention."""

    width: int
    heads: int
    attention_width: int
    mlp_width: int
    encoder_layers: int
    decoder_layers: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "heads", "attention_width", "mlp_width"):
            whole(name, getattr(self, name))
        whole("encoder_layers", self.encoder_layers, least=0)
        whole("decoder_layers", self.decoder_layers, least=0)

    @property
    def attentions(self) -> int:
        crossed = 2 if self.encoder_layers else 1
        return self.encoder_layers + crossed * self.decoder_layers


# Raffel et al. 2020: width 1024, 128 heads of width 128, feed-forward 65,536, 24 + 24 layers.
T5_11B = TransformerShape(1024, 128, 128, 65536, 24, 24)
# Redundancies as Wies et al. 2021 give them.
T5_11B_PUBLISHED = (0.45, 0.50)
ALBERT_PUBLISHED = 0.25


def excess_share(shape: TransformerShape) -> float:
    """Parameters of attention beyond H·d_a = d, as a share of all parameters of the blocks (no embeddings)."""
    inner = shape.heads * shape.attention_width
    attention = shape.attentions * 4 * shape.width * inner
    mlp = (shape.encoder_layers + shape.decoder_layers) * 2 * shape.width * shape.mlp_width
    return excess_of(attention, attention + mlp, inner, shape.width)


def excess_of(attention: int, blocks: int, inner: int, width: int) -> float:
    """The same share from counts: what goes of `blocks` parameters when attention shrinks from `inner` to `width`."""
    return attention * max(0.0, 1 - width / inner) / blocks


def width_share(width: int, rank: int) -> float:
    """1 − (r/d)²: what goes of the blocks' parameters when the width shrinks from d to r at the same depth.

    A network of width d on an embedding of rank r < d has the cap of width r (docs/cap.md), and every matrix of a
    block has both its sides in proportion to the width.
    """
    return max(0.0, 1 - (whole("embedding_rank", rank) / whole("width", width)) ** 2)
