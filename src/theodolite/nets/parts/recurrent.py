"""What recurrent nets share: their layers and readout, how weights start, when torch's kernels can stand in for the
loop, the controller of those that have a memory, and what theory says of them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor

from theodolite.kernels.launch import usable
from theodolite.nets.contract import Symmetry, choice, positive
from theodolite.theory.sensitivity import InfluenceLaw, no_law


class Recurrent(nn.Module):
    """`depth` layers, each made by `layer(features, width)` and reading what the one below shows, and the readout.

    A token's output depends on no later token, so `present` is not needed.
    """

    def __init__(
        self, layer: Callable[[int, int], nn.Module], features: int, outputs: int, depth: int, width: int
    ) -> None:
        super().__init__()
        self.layers, self.read = stacked(layer, features, outputs, depth, width)

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        return read_out(self.read, self.layers(x))

    def symmetries(self) -> Mapping[str, Symmetry]:
        return recurrent_symmetries()

    def influence(self) -> InfluenceLaw:
        return recurrent_influence()


def stacked(
    layer: Callable[[int, int], nn.Module], features: int, outputs: int, depth: int, width: int
) -> tuple[nn.Sequential, nn.Linear]:
    """`depth` layers, each made by `layer(features, width)` and reading what the one below shows, and the readout."""
    positive(features=features, outputs=outputs, depth=depth, width=width)
    sizes = [features] + [width] * (depth - 1)
    return nn.Sequential(*(layer(size, width) for size in sizes)), nn.Linear(width, outputs)


def read_out(read: nn.Linear, shown: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token output"]:
    """Where kernels run, as one product for each member, without a copy of the states."""
    if not usable(shown):
        return read(shown)
    tokens_first = shown.stride(0) < shown.stride(1)  # how kernels leave them in memory
    shown = shown.transpose(0, 1) if tokens_first else shown
    outputs = read(shown.flatten(0, 1)).unflatten(0, shown.shape[:2])
    return outputs.transpose(0, 1) if tokens_first else outputs


def start_uniformly(layer: nn.Module, width: int) -> None:
    """Every weight and bias uniform in ±1/√width, as `torch.nn.RNN`, `torch.nn.LSTM` and `torch.nn.GRU` start."""
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -1 / math.sqrt(width), 1 / math.sqrt(width))


def start_by_inputs(weight: Tensor, inputs: int) -> None:
    """Normal with deviation 1/√inputs, cut at two deviations: how the nets of Delétang et al. 2022 start."""
    deviation = 1 / math.sqrt(inputs)
    nn.init.trunc_normal_(weight, std=deviation, a=-2 * deviation, b=2 * deviation)


def runs_alone(x: Tensor) -> bool:
    """Whether torch's kernels for whole sequences can be used: they are several times faster than a loop over tokens
    on a CPU, and cannot be batched over an ensemble."""
    return x.device.type == "cpu" and type(x) is Tensor and not is_functorch_wrapped_tensor(x)


class Controller(nn.Module):
    """h_t = f(W x_t + U (h_{t−1}, r_{t−1}) + b), where r was read of a memory; `heads` say what is done to that.

    `into` is applied to all tokens at once, before the loop.
    """

    def __init__(self, features: int, width: int, cell: int, heads: int, activation: str) -> None:
        super().__init__()
        choice("activation", activation, ("relu", "tanh"))
        self.activation = torch.relu if activation == "relu" else torch.tanh
        self.into = nn.Linear(features, width)
        self.across = nn.Linear(width + cell, width, bias=False)
        self.heads = nn.Linear(width, heads)
        start_by_inputs(self.into.weight, features + cell)
        start_by_inputs(self.across.weight[:, :width], width)
        start_by_inputs(self.across.weight[:, width:], features + cell)
        start_by_inputs(self.heads.weight, width)
        nn.init.zeros_(self.into.bias)
        nn.init.zeros_(self.heads.bias)

    def entering(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "token batch width"]:
        """Of all tokens, as one product for each member."""
        x = x.transpose(0, 1)
        return self.into(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    def forward(
        self,
        entering: Float[Tensor, "batch width"],
        hidden: Float[Tensor, "batch width"],
        read: Float[Tensor, "batch cell"],
    ) -> tuple[Float[Tensor, "batch width"], Float[Tensor, "batch head"]]:
        hidden = self.activation(entering + self.across(torch.cat((hidden, read), dim=-1)))
        return hidden, self.heads(hidden)


def recurrent_symmetries() -> Mapping[str, Symmetry]:
    """Of a recurrence from a zero state, which zero tokens leave at rest once its biases are 0."""
    ordered = Symmetry(False, "a recurrence reads its tokens in order")
    return {
        "translation": ordered,
        "permutation": ordered,
        "time-shift": Symmetry(True, "the same step at every token, from a zero state"),
    }


def recurrent_influence() -> InfluenceLaw:
    return no_law("how a recurrence forgets depends on its weights; theory has no law for generic ones")
