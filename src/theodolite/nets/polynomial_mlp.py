"""A fully connected network of degree d per layer: P_d(x) = ∏_k (W_k x)."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.degree_attention import at_least_two
from theodolite.nets.projection import readout
from theodolite.partition import Partition
from theodolite.theory.cap import homogeneous_cap


class ProductLayer(nn.Module):
    """∏_k (W_k x), entry by entry (Comment 3.1 of the degree paper)."""

    def __init__(self, features: int, width: int, degree: int) -> None:
        super().__init__()
        self.degree = degree
        self.factors = nn.Linear(features, width * degree, bias=False)

    def forward(self, x: Float[Tensor, "... feature"]) -> Float[Tensor, "... width"]:
        return self.factors(x).unflatten(-1, (self.degree, -1)).prod(dim=-2)


@register(
    name="polynomial-mlp",
    summary="fully connected layers of degree d: products of d linear maps",
    kind="vector",
    polynomial=True,
    defaults={"features": 8},
)
class PolynomialMLP(nn.Module):
    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = None,
        depth: int = 2,
        width: int = 4,
        degree: int = 2,
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width)
        at_least_two(degree)
        self.features, self.depth, self.degree = features or width, depth, degree
        sizes = [self.features] + [width] * (depth - 1)
        self.layers = nn.Sequential(*(ProductLayer(size, width, degree) for size in sizes))
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        return self.read(self.layers(x))

    def predict(self, partition: Partition, token: int) -> Prediction:
        total = self.degree**self.depth
        return Prediction(total, homogeneous_cap(total, len(partition.a), len(partition.b)))

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every entry has weights of its own")
        return {"translation": own, "permutation": own}
