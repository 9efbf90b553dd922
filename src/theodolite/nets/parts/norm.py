"""Layer norm, by a kernel where many members run one operation after another."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels.launch import traced, usable
from theodolite.kernels.norm import layer_norm


class LayerNorm(nn.LayerNorm):
    """As torch's, whose kernel takes a block of threads for every row however short. A compiler fuses the plain
    operations with what stands around them, so a step that is traced for one has those."""

    def forward(self, input: Float[Tensor, "*row width"]) -> Float[Tensor, "*row width"]:
        if usable(input, self.weight) and not traced():
            return layer_norm(input, self.weight, self.bias, self.eps)
        return super().forward(input)
