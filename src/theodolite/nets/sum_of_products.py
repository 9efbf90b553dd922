"""A function of known separation rank: a sum of products of linear forms, one factor per token."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.partition import Partition


@register(
    name="sum-of-products",
    summary="a target of known rank: Σ over terms of products of one linear form per token",
    kind="sequence",
    polynomial=True,
    defaults={"tokens": 4},
)
class SumOfProducts(nn.Module):
    """y = Σ_r ∏_j ⟨w_{r,j}, x^j⟩; its rank is the number of terms, as long as either side has room for that many."""

    def __init__(self, features: int = 2, outputs: int = 1, tokens: int = 4, terms: int = 3) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, tokens=tokens, terms=terms)
        self.features, self.terms = features, terms
        self.forms = nn.Parameter(torch.randn(tokens, features, outputs * terms))

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch output"]:
        factors = torch.einsum("bnf,nfk->bnk", x, self.forms).prod(dim=1)
        return factors.unflatten(-1, (-1, self.terms)).sum(dim=-1)

    def predict(self, partition: Partition, token: int) -> Prediction:
        room = self.features ** min(len(partition.a), len(partition.b))
        cap = min(self.terms, room)
        return Prediction(partition.sites, cap, cap, cap, "the number of terms, by construction")

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every token has weights of its own")
        return {"translation": own, "permutation": own}
