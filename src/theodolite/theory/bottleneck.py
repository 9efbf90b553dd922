"""How much of a Transformer's parameters lies in attention beyond the cap (Section 7.3.2, and the law of the heads)."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.theory.domain import whole
from theodolite.theory.heads import heads_that_see_all


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
    """Parameters of attention beyond the cap, as a share of all parameters of the blocks (no embeddings).

    Not those beyond H·d_a = d: narrow heads buy rank until they read all of S (docs/exact-rank.md).
    """
    inner = shape.heads * shape.attention_width
    attention = shape.attentions * 4 * shape.width * inner
    mlp = (shape.encoder_layers + shape.decoder_layers) * 2 * shape.width * shape.mlp_width
    kept, _ = heads_kept(shape.width, shape.heads, shape.attention_width)
    return attention * (1 - kept / shape.heads) / (attention + mlp)


def heads_kept(
    width: int, heads: int, attention_width: int, key_value_heads: int | None = None, latent: int | None = None
) -> tuple[int, int]:
    """Heads of queries, and of keys and values, that have the cap of all of them.

    Keys and values until they read all of S, or all that `latent` numbers of a token show of it; queries until they
    fill the width, at least one to a group.
    """
    inner = min(width, whole("attention_width", attention_width))
    kept = min(heads if key_value_heads is None else min(heads, key_value_heads), heads_that_see_all(width, inner))
    if latent is not None:
        kept = min(kept, -(-latent * (latent + 1) // 2 // inner**2))
    return min(heads, max(kept, -(-width // inner))), kept
