"""The gated recurrent unit with its cell written out, so that it can be batched over an ensemble."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels.launch import usable
from theodolite.kernels.recurrence import over_time
from theodolite.nets.contract import register_trained
from theodolite.nets.parts.recurrent import Recurrent, runs_alone, start_uniformly


class GRULayer(nn.Module):
    """h_t = z h_{t−1} + (1 − z) tanh(W x_t + b + r U h_{t−1}); gates in torch's order: reset r, update z, candidate."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.into = nn.Linear(features, 3 * width)
        self.across = nn.Linear(width, 3 * width, bias=False)
        start_uniformly(self, width)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token width"]:
        if usable(x):
            return over_time("gru", x, self.into, self.across)
        hidden = x.new_zeros(x.shape[0], self.width)
        if runs_alone(x):
            into, across, bias = self.into.weight, self.across.weight, self.into.bias
            weights = [into, across, bias, torch.zeros_like(bias)]
            return torch.gru(x, hidden[None], weights, True, 1, 0.0, False, False, True)[0]
        sizes, states = (2 * self.width, self.width), []
        for entering in self.into(x.transpose(0, 1)).unbind(0):
            gates, candidate = entering.split(sizes, dim=-1)
            gates_of_state, candidate_of_state = self.across(hidden).split(sizes, dim=-1)
            reset, update = torch.sigmoid(gates + gates_of_state).chunk(2, dim=-1)
            hidden = torch.lerp(torch.tanh(torch.addcmul(candidate, reset, candidate_of_state)), hidden, update)
            states.append(hidden)
        return torch.stack(states, dim=1)


@register_trained("gru", "gated recurrent unit")
def gru(features: int = 4, outputs: int = 1, tokens: int | None = None, depth: int = 1, width: int = 32) -> Recurrent:
    """`depth` layers, each reading the states of the one below, and a linear readout of every token."""
    return Recurrent(GRULayer, features, outputs, depth, width)
