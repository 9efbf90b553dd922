"""Message passing on a graph: every node takes up the sum of what its neighbours say, by the same rule everywhere."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput


class GraphLayer(nn.Module):
    """h_i ← tanh(W h_i + V Σ_j A_ij h_j + b), `depth` times with weights of their own.

    It commutes with every renumbering P of the nodes that renumbers the edges too, f(P h, P A Pᵀ) = P f(h, A), since
    the rule is the same at every node and a sum has no order.
    """

    def __init__(self, width: int, depth: int = 2) -> None:
        super().__init__()
        if width < 1 or depth < 1:
            raise BadInput(f"message passing needs a width and a depth of at least 1, not {width} and {depth}")
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.heard = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))

    def forward(
        self, h: Float[Tensor, "batch node width"], edges: Float[Tensor, "batch node node"]
    ) -> Float[Tensor, "batch node width"]:
        for own, heard in zip(self.own, self.heard, strict=True):
            h = torch.tanh(own(h) + edges @ heard(h))
        return h
