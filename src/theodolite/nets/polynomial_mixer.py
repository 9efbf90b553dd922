"""MLP-Mixer with products for activations: mixes tokens, then channels, each with P_d(x) = ∏_k (W_k x)."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.polynomial_mlp import ProductLayer
from theodolite.nets.projection import embedding, readout
from theodolite.partition import Partition
from theodolite.theory.cap import homogeneous_cap


class MixerBlock(nn.Module):
    """∏_k (A_k X), then ∏_k (X B_k): `tokens` mixed in every channel, then `width` mixed in every token."""

    def __init__(self, tokens: int, width: int, token_degree: int, channel_degree: int) -> None:
        super().__init__()
        self.across_tokens = ProductLayer(tokens, tokens, token_degree)
        self.across_channels = ProductLayer(width, width, channel_degree)

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
    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = None,
        tokens: int = 8,
        depth: int = 1,
        width: int = 4,
        degree: int = 2,
        channel_degree: int = 1,
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width, tokens=tokens, degree=degree, channel_degree=channel_degree)
        self.features, self.depth = features or width, depth
        self.width, self.block_degree = width, degree * channel_degree
        self.embed = embedding(self.features, width)
        self.blocks = nn.Sequential(*(MixerBlock(tokens, width, degree, channel_degree) for _ in range(depth)))
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        return self.read(self.blocks(self.embed(x)))

    def predict(self, partition: Partition, token: int) -> Prediction:
        total, size = self.block_degree**self.depth, min(self.features, self.width)
        return Prediction(total, homogeneous_cap(total, len(partition.a) * size, len(partition.b) * size))

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every token has weights of its own")
        return {"translation": own, "permutation": own}
