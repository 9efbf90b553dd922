"""Brackets of bounded depth in two layers of soft attention: which of them may close next, after every bracket.

After Yao, Peng, Papadimitriou & Narasimhan 2021, "Self-attention networks can process bounded hierarchical languages".

1. Uniform causal attention over a marker and the brackets so far gives (d, 1)/(i + 1), with d brackets open. Layer
   norm on (v, −v) removes the common factor: the direction (d, 1)/√(d² + 1) is the same wherever d brackets are open.
2. Two directions agree most if their depths do, so the product of a token's direction with that of every *opening*
   token picks those of its own depth; a share of the place, j/N, picks the latest of them, which is the innermost
   open bracket. Its type is the answer, unless the direction says that nothing is open.

Softmax picks sharply when its logits differ by much. `recency` and `sharpness` are those factors: exact answers need
`recency` ~ N and `sharpness` ~ N·depth⁴; held fixed, the logits are bounded and Hahn's argument applies.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput

_APART = 4.0  # two openings of one depth lie 2 places apart at least, so that the latest outweighs all others together


class DyckAttention(nn.Module):
    """One-hot brackets (batch, token, 2·types), openings first, to scores (batch, token, types + 1), as `dyck` asks."""

    def __init__(self, types: int, depth: int, recency: float, sharpness: float) -> None:
        super().__init__()
        for name, value in {"types": types, "depth": depth}.items():
            if value < 1:
                raise BadInput(f"brackets need {name} of at least 1, not {value}")
        self.types, self.depth = types, depth
        self.recency, self.sharpness = (
            nn.Parameter(torch.tensor(float(factor), dtype=torch.float64)) for factor in (recency, sharpness)
        )

    @classmethod
    def exact(cls, types: int, depth: int, tokens: int) -> DyckAttention:
        """Sharp enough for every string of up to `tokens` brackets that never opens more than `depth` at once."""
        nearest = _direction(depth) @ _direction(depth - 1)  # the two depths that are hardest to tell apart
        recency = _APART * (tokens + 1)
        return cls(types, depth, recency, (recency + math.log(tokens + 1) + _APART) / (1 - float(nearest)))

    def forward(self, x: Float[Tensor, "batch token vocab"]) -> Float[Tensor, "batch token output"]:
        opens, closes = x[..., : self.types], x[..., self.types :]
        direction = self.directions(opens.sum(dim=-1) - closes.sum(dim=-1))
        place = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device) / (x.shape[1] + 1)
        opening = opens.sum(dim=-1)
        # The key of an opening holds its direction, that of any other token none: a product of 0, or below 1.
        key = direction * opening.unsqueeze(-1)
        scores = self.sharpness * (direction @ key.transpose(1, 2)) + self.recency * place
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        kind = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1) @ opens
        # Nothing open: the direction is (0, 1). One open: (1, 1)/√2, and the second entry only falls from there.
        empty = 10 * (direction[..., 1:] - 0.85)
        return torch.cat((kind, empty), dim=-1)

    def directions(self, change: Float[Tensor, "batch token"]) -> Float[Tensor, "batch token 2"]:
        """From +1 and −1 for brackets that open and close: uniform causal attention with a marker, then layer norm."""
        tokens = change.shape[1]
        weights = torch.ones(tokens, tokens, dtype=change.dtype, device=change.device).tril()
        shares = weights / (torch.arange(2, tokens + 2, dtype=change.dtype, device=change.device)).unsqueeze(-1)
        mean = torch.stack((change @ shares.T, shares[:, 0].expand_as(change)), dim=-1)
        mirrored = torch.cat((mean, -mean), dim=-1)
        return F.layer_norm(mirrored, (4,), eps=0.0)[..., :2] / math.sqrt(2)


def _direction(depth: int) -> Tensor:
    return F.normalize(torch.tensor([float(depth), 1.0], dtype=torch.float64), dim=0)
