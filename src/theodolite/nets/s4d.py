"""S4D as its authors have it: the diagonal filter, GELU, a linear map to twice the width and GLU; norms come after."""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import positive, register_trained
from theodolite.nets.parts.norm import LayerNorm
from theodolite.nets.parts.residual import ResidualRecurrence
from theodolite.nets.parts.starts import STEPS, drawn_between
from theodolite.nets.state_space import filtered
from theodolite.nets.transformer import check_blocks


class S4DBlock(nn.Module):
    """norm(x + GLU(W gelu(filter(x) + D x))), the filter that of λ = −½ + iπn, n = 0 … `state`/2 − 1, in every channel
    and their conjugates (Gu et al. 2022, "S4D-Lin"); steps Δ log-uniform, C and D normal."""

    def __init__(self, width: int, state: int) -> None:
        super().__init__()
        modes = state // 2
        self.log_step = nn.Parameter(drawn_between(width, *(math.log(each) for each in STEPS)).unsqueeze(-1))
        self.weight = nn.Parameter(torch.randn(2, width, modes) / math.sqrt(2))  # normal complex numbers
        self.log_rate = nn.Parameter(torch.full((width, modes), math.log(0.5)))
        self.frequency = nn.Parameter((math.pi * torch.arange(modes)).repeat(width, 1))
        self.direct = nn.Parameter(torch.randn(width))
        self.both = nn.Linear(width, 2 * width)
        self.norm = LayerNorm(width)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        found = filtered(x, self.log_step, self.log_rate, self.frequency, self.weight) + self.direct * x
        return self.norm(x + nn.functional.glu(self.both(nn.functional.gelu(found)), dim=-1))


@register_trained("s4d", "S4D as published: diagonal state spaces, GLU, norms after the residual, no perceptron")
def s4d(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 2,
    width: int = 32,
    state: int = 16,
) -> ResidualRecurrence:
    """The model of the authors' example between a linear embedding and a linear readout at every token, which they
    take of the mean over tokens. Their `state` is 64.

    A layer carries `state`·width numbers: half as many complex modes in every channel.
    """
    positive(features=features, outputs=outputs, state=state)
    check_blocks(depth, width, 1, "serial")
    if state % 2:
        raise BadInput(f"state={state} cannot be split into pairs of conjugate modes: use an even number")
    unknown = "how fast a state decays depends on the weights; theory has no law for generic ones"
    block = partial(S4DBlock, width, state)
    return ResidualRecurrence(block, features, outputs, depth, width, unknown, nn.Identity())
