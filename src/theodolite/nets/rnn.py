"""The Elman network, its cell written out, so that it can be batched over an ensemble."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels.launch import usable
from theodolite.kernels.recurrence import over_time
from theodolite.nets.contract import choice, register_trained
from theodolite.nets.parts.recurrent import Recurrent, runs_alone, start_uniformly


class RNNLayer(nn.Module):
    """h_t = f(W x_t + U h_{t−1} + b), h_0 = 0, f = tanh or relu."""

    def __init__(self, features: int, width: int, activation: str = "tanh") -> None:
        super().__init__()
        choice("activation", activation, ("tanh", "relu"))
        self.width, self.bounded = width, activation == "tanh"
        self.into = nn.Linear(features, width)
        self.across = nn.Linear(width, width, bias=False)
        start_uniformly(self, width)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token width"]:
        if usable(x):
            return over_time("tanh" if self.bounded else "relu", x, self.into, self.across)
        hidden = x.new_zeros(x.shape[0], self.width)
        if runs_alone(x):
            into, across, bias = self.into.weight, self.across.weight, self.into.bias
            weights = [into, across, bias, torch.zeros_like(bias)]
            whole = torch.rnn_tanh if self.bounded else torch.rnn_relu
            return whole(x, hidden[None], weights, True, 1, 0.0, False, False, True)[0]
        activation = torch.tanh if self.bounded else torch.relu
        states = []
        for entering in self.into(x.transpose(0, 1)).unbind(0):
            hidden = activation(entering + self.across(hidden))
            states.append(hidden)
        return torch.stack(states, dim=1)


@register_trained("rnn", "Elman network: tanh or relu of the input and the state before")
def rnn(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 1,
    width: int = 32,
    activation: str = "tanh",
) -> Recurrent:
    """`depth` layers, each reading the states of the one below, and a linear readout of every token."""
    return Recurrent(partial(RNNLayer, activation=activation), features, outputs, depth, width)
