"""What recurrent layers share: how their weights start, when torch's kernels can stand in for the loop, symmetries."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor

from theodolite.nets.contract import Symmetry


def start_uniformly(layer: nn.Module, width: int) -> None:
    """Every weight and bias uniform in ±1/√width, as `torch.nn.RNN` and `torch.nn.LSTM` start."""
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -1 / math.sqrt(width), 1 / math.sqrt(width))


def runs_alone(x: Tensor) -> bool:
    """Whether torch's kernels for whole sequences can be used: they are several times faster than a loop over tokens
    on a CPU, and cannot be batched over an ensemble."""
    return x.device.type == "cpu" and type(x) is Tensor and not is_functorch_wrapped_tensor(x)


def recurrent_symmetries() -> Mapping[str, Symmetry]:
    """Of a recurrence from a zero state, which zero tokens leave at rest once its biases are 0."""
    ordered = Symmetry(False, "a recurrence reads its tokens in order")
    return {
        "translation": ordered,
        "permutation": ordered,
        "time-shift": Symmetry(True, "the same step at every token, from a zero state"),
    }
