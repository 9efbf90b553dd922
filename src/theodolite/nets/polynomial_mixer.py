"""MLP-Mixer with products for activations: mixes tokens, then channels, each with P_d(x) = ∏_k (W_k x)."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.parts.degrees import Degrees, block_degrees, known_count, total_degree
from theodolite.nets.parts.projection import embedding, readout
from theodolite.nets.polynomial_mlp import ProductLayer
from theodolite.partition import Partition
from theodolite.theory.cap import homogeneous_cap


class MixerBlock(nn.Module):
    """∏_k (A_k X), then ∏_k (X B_k): `tokens` mixed in every channel, then `width` mixed in every token."""

    def __init__(self, tokens: int, width: int, token_degree: int, channel_degree: int, matrices: str) -> None:
        super().__init__()
        self.across_tokens = ProductLayer(tokens, tokens, token_degree, matrices)
        self.across_channels = ProductLayer(width, width, channel_degree, matrices)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        return self.across_channels(self.across_tokens(x.transpose(1, 2)).transpose(1, 2))


@register(
    name="polynomial-mixer",
    summary="MLP-Mixer with products: tokens mixed with degree d, channels with their own degree",
    kind="sequence",
    polynomial=True,
    defaults={"tokens": 8},
)
class PolynomialMixer(nn.Module):
    """`depth` blocks that mix tokens with `degree`, or one block per entry of `degrees`, and channels with their own.

    `matrices` says how many each of the two products of a block has, at degree d: d−1, d or d+1; with d−1 a channel
    degree of 1 leaves the channels alone.
    """

    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = None,
        tokens: int = 8,
        depth: int = 1,
        width: int = 4,
        degree: int = 2,
        channel_degree: int = 1,
        degrees: Degrees | None = None,
        matrices: str = "d",
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width, tokens=tokens, degree=degree, channel_degree=channel_degree)
        known_count(matrices)
        self.features, self.width, self.matrices = features or width, width, matrices
        self.degrees, self.channel_degree = block_degrees(degree, depth, degrees), channel_degree
        self.depth = len(self.degrees)
        self.embed = embedding(self.features, width)
        self.blocks = nn.Sequential(
            *(MixerBlock(tokens, width, each, channel_degree, matrices) for each in self.degrees)
        )
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        return self.read(self.blocks(self.embed(x)))

    def predict(self, partition: Partition, token: int) -> Prediction:
        total = total_degree(self.degrees) * self.channel_degree**self.depth
        size = min(self.features, self.width)
        return Prediction(total, homogeneous_cap(total, len(partition.a) * size, len(partition.b) * size))

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every token has weights of its own")
        return {"translation": own, "permutation": own}
