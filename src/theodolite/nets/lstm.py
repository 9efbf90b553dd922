"""Long short-term memory with its cell written out, so that it can be batched over an ensemble."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import positive, register


class LSTMLayer(nn.Module):
    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.into = nn.Linear(features, 4 * width)
        self.across = nn.Linear(width, 4 * width, bias=False)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token width"]:
        entering = self.into(x)
        hidden = cell = entering.new_zeros(x.shape[0], self.width)
        states = []
        for t in range(x.shape[1]):
            keep, admit, show, new = (entering[:, t] + self.across(hidden)).chunk(4, dim=-1)
            cell = torch.sigmoid(keep) * cell + torch.sigmoid(admit) * torch.tanh(new)
            hidden = torch.sigmoid(show) * torch.tanh(cell)
            states.append(hidden)
        return torch.stack(states, dim=1)


@register(
    name="lstm",
    summary="long short-term memory",
    kind="sequence",
    polynomial=False,
    defaults={"features": 4, "tokens": 8},
)
class LSTM(nn.Module):
    def __init__(
        self, features: int = 4, outputs: int = 1, tokens: int | None = None, depth: int = 1, width: int = 32
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, depth=depth, width=width)
        sizes = [features] + [width] * (depth - 1)
        self.layers = nn.Sequential(*(LSTMLayer(size, width) for size in sizes))
        self.read = nn.Linear(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        return self.read(self.layers(x))
