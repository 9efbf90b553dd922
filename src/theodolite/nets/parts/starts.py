"""Where the parameters of published recurrences start: steps, rates and causal windows as their authors draw them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

STEPS = (1e-3, 1e-1)  # the time between two tokens
_LEAST_STEP = 1e-4


def drawn_between(count: int, low: float, high: float) -> Tensor:
    return torch.empty(count).uniform_(low, high)


def drawn_steps(count: int) -> Tensor:
    """What softplus turns into steps that are spread evenly on a logarithmic scale."""
    step = drawn_between(count, *(math.log(each) for each in STEPS)).exp().clamp_min(_LEAST_STEP)
    return step + torch.log(-torch.expm1(-step))


def drawn_taps(channels: int, kernel: int, bias: bool = False) -> nn.Parameter:
    """Of a causal window, or its biases: as `torch.nn.Conv1d` starts with a channel in every group."""
    bound = 1 / math.sqrt(kernel)
    return nn.Parameter(torch.empty(channels, *(() if bias else (kernel,))).uniform_(-bound, bound))
