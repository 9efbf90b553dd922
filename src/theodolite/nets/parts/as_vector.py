"""A sequence net that reads a vector: one entry a token, the answer at the last one."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn


class AsVector(nn.Module):
    """The entries of a vector one after the other, as tokens of one feature; what `net` says at the last is the answer.

    A net that pools its tokens has one answer already. One that reads `ids` gets 1 for what is above 0, and 0.
    """

    def __init__(self, net: nn.Module, ids: bool = False) -> None:
        super().__init__()
        self.net, self.ids = net, ids

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        answers = self.net((x > 0).long() if self.ids else x.unsqueeze(-1))
        return answers[:, -1] if answers.dim() == 3 else answers
