"""The softmax Transformer: pre-norm blocks of attention and a two-layer perceptron, no positions, no mask."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import positive, register


class TransformerBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.combine = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        x = x + self.attend(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))

    def attend(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        projected = self.project(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = projected.unbind(0)
        weights = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]), dim=-1)
        return self.combine((weights @ value).transpose(1, 2).flatten(-2))


@register(
    name="transformer",
    summary="softmax Transformer, pre-norm, no positions",
    kind="sequence",
    polynomial=False,
    defaults={"features": 4, "tokens": 8},
)
class Transformer(nn.Module):
    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 32,
        heads: int = 4,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, depth=depth, width=width, heads=heads)
        if width % heads:
            raise BadInput(f"{heads} heads do not divide width {width}: choose a divisor of it")
        self.embed = nn.Linear(features, width)
        self.blocks = nn.Sequential(*(TransformerBlock(width, heads) for _ in range(depth)))
        self.read = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs))

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        return self.read(self.blocks(self.embed(x)))
