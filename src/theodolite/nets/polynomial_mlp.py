"""A fully connected network of degree d per layer: P_d(x) = ∏_k (W_k x)."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.parts.degrees import Degrees, at_least_two, block_degrees, known_count, total_degree
from theodolite.nets.parts.projection import embedding, readout
from theodolite.partition import Partition
from theodolite.theory.cap import homogeneous_cap


class ProductLayer(nn.Module):
    """∏_{k≤d} (W_k x), entry by entry (Comment 3.1 of the degree paper): d matrices.

    With "d-1" of them x itself is one of the factors (Eq. 2); with "d+1" one more stands before the product.
    """

    def __init__(self, features: int, width: int, degree: int, matrices: str = "d") -> None:
        super().__init__()
        self.itself = matrices == "d-1"
        self.number = degree - self.itself
        self.factors = nn.Linear(features, width * self.number, bias=False) if self.number else None
        self.combine = nn.Linear(width, width, bias=False) if matrices == "d+1" else nn.Identity()

    def forward(self, x: Float[Tensor, "... feature"]) -> Float[Tensor, "... width"]:
        if self.factors is None:
            return x
        product = self.factors(x).unflatten(-1, (self.number, -1)).prod(dim=-2)
        return self.combine(x * product if self.itself else product)


@register(
    name="polynomial-mlp",
    summary="fully connected layers of degree d: products of d linear maps",
    kind="vector",
    polynomial=True,
    version=2,  # the input is embedded, so that every layer is square
    defaults={"features": 8},
)
class PolynomialMLP(nn.Module):
    """`depth` layers of degree `degree`, or one per entry of `degrees`, all width × width behind an embedding.

    Without `embed` the first layer reads the features themselves, through matrices of their size. `matrices` says how
    many a layer of degree d has: d−1, d or d+1.
    """

    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = None,
        depth: int = 2,
        width: int = 4,
        degree: int = 2,
        degrees: Degrees | None = None,
        matrices: str = "d",
        embed: bool = True,
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width)
        at_least_two(degree)
        known_count(matrices)
        self.features, self.width = features or width, width
        self.degrees = block_degrees(degree, depth, degrees)
        self.depth, self.matrices = len(self.degrees), matrices
        if not embed and matrices == "d-1" and self.features != width:
            raise BadInput(
                f"with d-1 matrices a layer multiplies with its own input, so {self.features} features cannot enter a "
                f"width of {width} directly: leave embed on, or use matrices d"
            )
        self.embed = embedding(self.features, width) if embed else nn.Identity()
        self.inner = min(self.features, width) if embed else self.features
        sizes = [width if embed else self.features] + [width] * (self.depth - 1)
        self.layers = nn.Sequential(
            *(ProductLayer(size, width, each, matrices) for size, each in zip(sizes, self.degrees, strict=True))
        )
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        return self.read(self.layers(self.embed(x)))

    def predict(self, partition: Partition, token: int) -> Prediction:
        """y = f(E_A x_A + E_B x_B), E of rank `inner`: each side enters through no more numbers than that."""
        total = total_degree(self.degrees)
        sides = (min(len(side), self.inner) for side in (partition.a, partition.b))
        return Prediction(total, homogeneous_cap(total, *sides))

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every entry has weights of its own")
        return {"translation": own, "permutation": own}
