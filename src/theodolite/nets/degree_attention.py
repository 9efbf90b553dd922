"""Attention of any degree: Eq. 2 of the degree paper, made well-shaped for every degree d ≥ 2.

Eq. 2 writes X ∏_{k<d} (W_k Xᵀ), whose shapes fit for few d. Here a *hop* carries a vector v to Σ_j ⟨W_1 v, W_2 x^j⟩ x^j
and raises its degree by 2 with two matrices. Odd degrees 2m+1 start from x^i and make m hops. Even degrees make
(d−2)/2 hops and end with a product, entry by entry, with W Σ_j x^j, one degree more for one matrix. That is d − 1
matrices per block, as in Eq. 2; a value matrix makes them d, the count of Eq. 4, and an output matrix d + 1. Degree 3
with d + 1 matrices is self-attention.
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.parts.degrees import Degrees, at_least_two, block_degrees, known_count, total_degree
from theodolite.nets.parts.projection import embedding, readout
from theodolite.partition import Partition
from theodolite.theory.cap import attention_cap
from theodolite.theory.gated_cap import gated_attention_cap


class DegreeBlock(nn.Module):
    def __init__(self, width: int, degree: int, attention_width: int, matrices: str) -> None:
        super().__init__()
        hops = (degree - 1) // 2
        self.queries = nn.ModuleList(nn.Linear(width, attention_width, bias=False) for _ in range(hops))
        self.keys = nn.ModuleList(nn.Linear(width, attention_width, bias=False) for _ in range(hops))
        self.gate = nn.Linear(width, width, bias=False) if degree % 2 == 0 else None
        self.value = nn.Identity() if matrices == "d-1" else nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False) if matrices == "d+1" else nn.Identity()

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
    """`depth` blocks of degree `degree`, or one block per entry of `degrees`, the first block first.

    `matrices` says how many a block of degree d has: d−1, d or d+1.
    """

    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = None,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 4,
        degree: int = 3,
        degrees: Degrees | None = None,
        matrices: str = "d",
        attention_width: int | None = None,
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width, attention_width=attention_width or width)
        at_least_two(degree)
        known_count(matrices)
        self.features, self.width, self.matrices = features or width, width, matrices
        self.degrees = block_degrees(degree, depth, degrees)
        self.depth = len(self.degrees)
        self.embed = embedding(self.features, width)
        self.blocks = nn.Sequential(
            *(DegreeBlock(width, each, attention_width or width, matrices) for each in self.degrees)
        )
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        return self.read(self.blocks(self.embed(x)))

    def predict(self, partition: Partition, token: int) -> Prediction:
        here, other = (partition.a, partition.b) if token in partition.a else (partition.b, partition.a)
        width, total = min(self.features, self.width), total_degree(self.degrees)
        if total % 2:  # all odd: y^i = F(S) x^i with F of degree (total − 1)/2, as one block of the total degree has it
            cap = attention_cap(1, width, len(here), len(other), block_degree=total)
        else:
            cap = gated_attention_cap(self.degrees, width, len(here), len(other))
        return Prediction(total, cap)

    def symmetries(self) -> Mapping[str, Symmetry]:
        over_set = Symmetry(True, "every token meets the sum over the set of tokens")
        resting = Symmetry(True, "without a softmax or biases, zero tokens add nothing to the sum")
        return {"translation": over_set, "permutation": over_set, "time-shift": resting}
