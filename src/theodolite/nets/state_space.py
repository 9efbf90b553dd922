"""Diagonal state-space layers: a fixed linear filter of complex modes, or one whose step, input and output are read
from the token."""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import positive, register_trained
from theodolite.nets.parts.residual import ResidualBlock, ResidualRecurrence
from theodolite.nets.parts.scan import causal_window, decaying_sum, diagonal_system
from theodolite.nets.transformer import check_blocks

_STEPS = (1e-3, 1e-1)  # the time between two tokens, spread over channels or heads at the start
_LEAST = 1e-6


class FixedSystem(nn.Module):
    """S4D (Gu et al. 2022) without its GLU: h' = λ h + x with complex modes λ of every channel, held constant over a
    step Δ.

    Zero-order hold: a = e^{Δλ}, and (a − 1)/λ times the weight c of a mode, which with its conjugate gives twice the
    real part. Modes start at −½ + iπn ("S4D-Lin"), Δ log-uniformly spread over the channels.
    """

    def __init__(self, width: int, state: int) -> None:
        super().__init__()
        low, high = (math.log(step) for step in _STEPS)
        modes = torch.arange(state, dtype=torch.get_default_dtype())
        self.log_step = nn.Parameter(torch.linspace(low, high, width).unsqueeze(-1))
        self.log_rate = nn.Parameter(torch.full((width, state), math.log(0.5)))
        self.frequency = nn.Parameter((math.pi * modes).repeat(width, 1))
        self.weight = nn.Parameter(torch.randn(2, width, state) / math.sqrt(state))
        self.direct = nn.Parameter(torch.ones(width))
        self.combine = nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        found = filtered(x, self.log_step, self.log_rate, self.frequency, self.weight)
        return self.combine(nn.functional.gelu(found + self.direct * x))


def filtered(
    x: Float[Tensor, "batch token width"],
    log_step: Float[Tensor, "width 1"],
    log_rate: Float[Tensor, "width state"],
    frequency: Float[Tensor, "width state"],
    weight: Float[Tensor, "2 width state"],
) -> Float[Tensor, "batch token width"]:
    """Every channel through its own modes λ = −e^`log_rate` + i·`frequency`, read by the complex `weight`."""
    step, rate = log_step.exp(), log_rate.exp()
    log_size, turn = -step * rate, step * frequency
    # (a − 1)/λ = (a − 1)·conj(λ)/|λ|²; Re(a − 1) = e^s − 1 − e^s (1 − cos), without loss where the step is small.
    size = log_size.exp()
    above, beside = torch.expm1(log_size) - 2 * size * (turn / 2).sin().square(), size * turn.sin()
    square = rate.square() + frequency.square()
    held = (beside * frequency - above * rate) / square
    held_beside = -(beside * rate + above * frequency) / square
    c, s = 2 * weight[0], 2 * weight[1]
    return diagonal_system(x, log_size, turn, c * held - s * held_beside, c * held_beside + s * held)


class SelectiveSystem(nn.Module):
    """The selective layer of Mamba-2 (Dao and Gu 2024), without its output gate and at `expand` 1: h ← e^{−Δ r} h +
    Δ B xᵀ, y = Cᵀ h.

    The step Δ of each head and the vectors B and C of `state` numbers, which the heads share, are read from the
    token; the rate r > 0 of each head, the same for all entries of its state, is learnt from 1 on (theirs: 1 to 16).
    """

    def __init__(self, width: int, heads: int, state: int, kernel: int) -> None:
        super().__init__()
        self.heads, self.sizes = heads, (width, state, state)
        self.project = nn.Linear(width, sum(self.sizes), bias=False)
        self.taps = nn.Parameter(torch.empty(sum(self.sizes), kernel))
        nn.init.uniform_(self.taps, -1 / math.sqrt(kernel), 1 / math.sqrt(kernel))  # as `torch.nn.Conv1d` starts
        low, high = (math.log(step) for step in _STEPS)
        self.step = nn.Linear(width, heads)
        with torch.no_grad():
            self.step.bias.copy_(torch.linspace(low, high, heads).exp().expm1().log())  # softplus gives it back
        self.log_rate = nn.Parameter(torch.zeros(heads))
        self.direct = nn.Parameter(torch.ones(width))
        self.norm = nn.Parameter(torch.ones(width))
        self.combine = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        mixed = nn.functional.silu(causal_window(self.project(x), self.taps))
        own, into, out = mixed.split(self.sizes, dim=-1)
        step = nn.functional.softplus(self.step(x)).transpose(1, 2)
        value = own.unflatten(-1, (self.heads, -1)).transpose(1, 2) * step.unsqueeze(-1)
        into, out = (each.unsqueeze(1).expand(-1, self.heads, -1, -1) for each in (into, out))
        found = decaying_sum(out, into, value, -self.log_rate.exp().unsqueeze(-1) * step)
        found = found.transpose(1, 2).flatten(-2) + self.direct * own
        found = found * torch.rsqrt(found.square().mean(dim=-1, keepdim=True) + _LEAST)
        return self.combine(found * self.norm)


@register_trained(
    "state-space",
    "diagonal state spaces in the Transformer's blocks, selective or fixed (as published: mamba-2, s4d)",
)
def state_space(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 2,
    width: int = 32,
    heads: int = 4,
    state: int = 16,
    selective: bool = True,
    kernel: int = 4,
) -> ResidualRecurrence:
    """Blocks like the Transformer's, perceptron included, with a diagonal linear recurrence in place of attention.

    `selective` layers carry `state`·width numbers and the last `kernel` − 1 tokens, fixed ones 2·`state`·width; `heads`
    and `kernel` belong to the selective ones. All eigenvalues of a selective layer lie in (0, 1).
    """
    positive(features=features, outputs=outputs, state=state, kernel=kernel)
    check_blocks(depth, width, heads if selective else 1, "serial")
    unknown = "how fast a state decays depends on the weights; theory has no law for generic ones"
    mix = partial(SelectiveSystem, width, heads, state, kernel) if selective else partial(FixedSystem, width, state)
    return ResidualRecurrence(lambda: ResidualBlock(width, mix()), features, outputs, depth, width, unknown)
