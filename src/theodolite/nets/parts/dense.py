"""Linear layers and two-layer perceptrons, by kernels where many members run one operation after another.

A compiler fuses the plain operations with what stands around them, so a step that is traced for one has those.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels import dense
from theodolite.kernels.launch import traced, usable


class Linear(nn.Linear):
    """As torch's; the bias is added where the product is made."""

    def forward(self, input: Float[Tensor, "*row feature"]) -> Float[Tensor, "*row output"]:
        if _fused(input, self.weight):
            return dense.linear(input, self.weight, self.bias)
        return super().forward(input)


class Perceptron(nn.Sequential):
    """width → hidden, 4 width unless given → width with GELU between; of what is between, only what enters GELU is
    written to memory."""

    def __init__(self, width: int, hidden: int | None = None) -> None:
        hidden = 4 * width if hidden is None else hidden
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, input: Float[Tensor, "*row width"]) -> Float[Tensor, "*row width"]:
        wide, narrow = self[0], self[2]
        assert isinstance(wide, nn.Linear)
        assert isinstance(narrow, nn.Linear)
        if _fused(input, wide.weight, narrow.weight):
            return dense.perceptron(input, wide.weight, wide.bias, narrow.weight, narrow.bias)
        return super().forward(input)


def _fused(x: Tensor, *weights: Tensor) -> bool:
    return usable(x, *weights) and not traced() and x.dim() > 1 and dense.takes(x, *weights)
