"""The decoder of language models: causal Transformer blocks whose perceptron and embedding have sizes of their own."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, positive, register_trained
from theodolite.nets.parts.dense import Linear
from theodolite.nets.parts.norm import LayerNorm
from theodolite.nets.parts.positions import Places
from theodolite.nets.transformer import TransformerBlock, attention_symmetries, check_blocks, hidden_keys
from theodolite.theory.sensitivity import InfluenceLaw, attention_law


@register_trained("decoder", "causal softmax Transformer whose perceptron's width and embedding's rank can be set")
class Decoder(nn.Module):
    """Pre-norm serial blocks with rotary positions. `hidden`: units of the perceptron, 4 width unless given, so that
    shapes of equal size exist at every depth. `rank`: of the embedding, full unless given. `head_width`: numbers of a
    head, width / heads unless given, so that attention can be wider or narrower than the network."""

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 32,
        heads: int = 4,
        hidden: int | None = None,
        rank: int | None = None,
        head_width: int | None = None,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs)
        given = {"hidden": hidden, "rank": rank, "head_width": head_width}
        positive(**{name: size for name, size in given.items() if size is not None})
        check_blocks(depth, width, heads if head_width is None else 1, "serial")
        positive(heads=heads)
        if head_width is not None and head_width % 2:
            raise BadInput(f"rotary positions turn pairs of numbers: head_width is even, not {head_width}")
        self.depth = depth
        self.places = Places("rotary", width if head_width is None else heads * head_width, heads, 1)
        self.embed = (
            Linear(features, width)
            if rank is None
            else nn.Sequential(nn.Linear(features, rank, bias=False), nn.Linear(rank, width))
        )
        self.blocks = nn.ModuleList(
            TransformerBlock(width, heads, hidden=hidden, head_width=head_width) for _ in range(depth)
        )
        self.read = nn.Sequential(LayerNorm(width), Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        x = self.embed(x)
        hidden, turns = hidden_keys(x, None, causal=True), self.places.turns(x)
        for block in self.blocks:
            x = block(x, hidden, turns)
        return self.read(x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        return attention_symmetries("rotary", causal=True)

    def influence(self) -> InfluenceLaw:
        return attention_law(self.depth, causal=True)
