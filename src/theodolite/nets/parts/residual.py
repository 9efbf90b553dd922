"""A pre-norm block around whatever mixes tokens, and the net of such blocks around a recurrence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.nets.contract import Symmetry
from theodolite.nets.parts.dense import Linear, Perceptron
from theodolite.nets.parts.norm import LayerNorm
from theodolite.nets.parts.recurrent import recurrent_symmetries
from theodolite.theory.sensitivity import InfluenceLaw, no_law


class ResidualBlock(nn.Module):
    """x + mix(norm x), then x + mlp(norm x)."""

    def __init__(self, width: int, mix: nn.Module) -> None:
        super().__init__()
        self.before_mix, self.mix = LayerNorm(width), mix
        self.before_mlp = LayerNorm(width)
        self.mlp = Perceptron(width)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        x = x + self.mix(self.before_mix(x))
        return x + self.mlp(self.before_mlp(x))


class ResidualRecurrence(nn.Module):
    """`depth` blocks that `block` makes, each around a recurrence, and a last norm. A token's output depends on no
    later token, so `present` is not needed; `unknown` says why theory has no law for how a symbol's influence fades."""

    def __init__(
        self,
        block: Callable[[], nn.Module],
        features: int,
        outputs: int,
        depth: int,
        width: int,
        unknown: str,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.unknown = unknown
        self.embed = Linear(features, width)
        self.blocks = nn.Sequential(*(block() for _ in range(depth)))
        self.read = nn.Sequential(norm or LayerNorm(width), Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        return self.read(self.blocks(self.embed(x)))

    def symmetries(self) -> Mapping[str, Symmetry]:
        return recurrent_symmetries()

    def influence(self) -> InfluenceLaw:
        return no_law(self.unknown)
