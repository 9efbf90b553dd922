"""Attention of any degree: Eq. 2 of the degree paper, made well-shaped for every degree d ≥ 2.

A *hop* carries a vector v to Σ_j ⟨W_1 v, W_2 x^j⟩ x^j and raises its degree by 2 with two matrices. Odd degrees
2m+1 start from x^i and make m hops. Even degrees make (d−2)/2 hops and end with a product, entry by entry, with
W Σ_j x^j, one degree more for one matrix. That is d − 1 matrices per block, as in Eq. 2; `value` adds one before the
block's output (d matrices, the count of Eq. 4), `output` one more (d + 1). Degree 3 with both is self-attention.
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.projection import embedding, readout
from theodolite.partition import Partition
from theodolite.theory.cap import attention_cap, homogeneous_cap


class DegreeBlock(nn.Module):
    def __init__(self, width: int, degree: int, attention_width: int, value: bool, output: bool) -> None:
        super().__init__()
        hops = (degree - 1) // 2
        self.queries = nn.ModuleList(nn.Linear(width, attention_width, bias=False) for _ in range(hops))
        self.keys = nn.ModuleList(nn.Linear(width, attention_width, bias=False) for _ in range(hops))
        self.gate = nn.Linear(width, width, bias=False) if degree % 2 == 0 else None
        self.value = nn.Linear(width, width, bias=False) if value else nn.Identity()
        self.output = nn.Linear(width, width, bias=False) if output else nn.Identity()

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        carried = x
        for query, key in zip(self.queries, self.keys, strict=True):
            carried = query(carried) @ (key(x).transpose(-1, -2) @ x)
        if self.gate is not None:
            carried = carried * self.gate(x.sum(dim=-2, keepdim=True))
        return self.output(self.value(carried))


@register(
    name="degree-attention",
    summary="attention of degree d per layer (Eq. 2 of the degree paper), any d from 2",
    kind="sequence",
    polynomial=True,
    defaults={"tokens": 8},
)
class DegreeAttention(nn.Module):
    """`depth` blocks of degree `degree`; matrices per block: degree − 1, plus `value`, plus `output`."""

    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = None,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 4,
        degree: int = 3,
        attention_width: int | None = None,
        value: bool = True,
        output: bool = False,
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width, attention_width=attention_width or width)
        at_least_two(degree)
        self.features = features or width
        self.depth, self.width, self.degree = depth, width, degree
        self.embed = embedding(self.features, width)
        self.blocks = nn.Sequential(
            *(DegreeBlock(width, degree, attention_width or width, value, output) for _ in range(depth))
        )
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        return self.read(self.blocks(self.embed(x)))

    def predict(self, partition: Partition, token: int) -> Prediction:
        here, other = (partition.a, partition.b) if token in partition.a else (partition.b, partition.a)
        width, total = min(self.features, self.width), self.degree**self.depth
        if self.degree % 2:
            cap = attention_cap(
                self.depth, self.width, len(here), len(other), embedding_rank=width, block_degree=self.degree
            )
        else:
            cap = homogeneous_cap(total, len(here) * width, len(other) * width)
        return Prediction(total, cap)

    def symmetries(self) -> Mapping[str, Symmetry]:
        over_set = Symmetry(True, "every token meets the sum over the set of tokens")
        resting = Symmetry(True, "without a softmax or biases, zero tokens add nothing to the sum")
        return {"translation": over_set, "permutation": over_set, "time-shift": resting}


def at_least_two(degree: int) -> None:
    positive(degree=degree)
    if degree < 2:
        raise BadInput(f"degree {degree} makes a linear net of separation rank at most 2: use a degree of at least 2")
