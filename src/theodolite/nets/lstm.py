"""Long short-term memory with its cell written out, so that it can be batched over an ensemble."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels.launch import usable
from theodolite.kernels.recurrence import over_time
from theodolite.nets.contract import register_trained
from theodolite.nets.parts.recurrent import Recurrent, runs_alone, start_uniformly


class LSTMLayer(nn.Module):
    """The gates stand in the order forget, input, output, candidate: the first three share one sigmoid."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.into = nn.Linear(features, 4 * width)
        self.across = nn.Linear(width, 4 * width, bias=False)
        start_uniformly(self, width)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token width"]:
        if usable(x):
            return over_time("lstm", x, self.into, self.across)
        hidden = cell = x.new_zeros(x.shape[0], self.width)
        if runs_alone(x):
            state, weights = (hidden[None], cell[None]), [self._as_torch(w) for w in self.parameters()]
            into, bias, across = weights
            return torch.lstm(x, state, [into, across, bias, torch.zeros_like(bias)], True, 1, 0.0, False, False, True)[
                0
            ]
        states = []
        for entering in self.into(x.transpose(0, 1)).unbind(0):  # tokens first: each is one block of memory
            gates, candidate = (entering + self.across(hidden)).split((3 * self.width, self.width), dim=-1)
            forget_gate, input_gate, output_gate = torch.sigmoid(gates).chunk(3, dim=-1)
            cell = forget_gate * cell + input_gate * torch.tanh(candidate)
            hidden = output_gate * torch.tanh(cell)
            states.append(hidden)
        return torch.stack(states, dim=1)

    def _as_torch(self, weight: Tensor) -> Tensor:
        """The gates in the order of `torch.nn.LSTM`: input, forget, candidate, output."""
        forget_gate, input_gate, output_gate, candidate = weight.chunk(4, dim=0)
        return torch.cat((input_gate, forget_gate, candidate, output_gate))


@register_trained("lstm", "long short-term memory", version=2)
def lstm(features: int = 4, outputs: int = 1, tokens: int | None = None, depth: int = 1, width: int = 32) -> Recurrent:
    """`depth` layers, each reading the states of the one below, and a linear readout of every token."""
    return Recurrent(LSTMLayer, features, outputs, depth, width)
