"""The ordinary multilayer perceptron."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import Symmetry, positive, register


@register(
    name="mlp",
    summary="multilayer perceptron with ReLU and biases",
    kind="vector",
    polynomial=False,
    defaults={"features": 8},
)
class MLP(nn.Module):
    """`depth` hidden layers of `width` units."""

    def __init__(self, features: int = 8, outputs: int = 1, depth: int = 2, width: int = 64) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, depth=depth, width=width)
        sizes = [features] + [width] * depth
        hidden = (layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU()))
        self.layers = nn.Sequential(*hidden, nn.Linear(width, outputs))

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        return self.layers(x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every entry has weights of its own")
        return {"translation": own, "permutation": own}
