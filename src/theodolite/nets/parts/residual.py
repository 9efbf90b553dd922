"""A pre-norm block around whatever mixes tokens: x + mix(norm x), then x + mlp(norm x)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn


class ResidualBlock(nn.Module):
    def __init__(self, width: int, mix: nn.Module) -> None:
        super().__init__()
        self.before_mix, self.mix = nn.LayerNorm(width), mix
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        x = x + self.mix(self.before_mix(x))
        return x + self.mlp(self.before_mlp(x))
