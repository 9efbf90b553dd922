"""Mamba-2 as its authors have it: the selective layer with its output gate at `expand` 2, and no perceptron."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import positive, register_trained
from theodolite.nets.parts.residual import ResidualRecurrence
from theodolite.nets.parts.scan import causal_window, decaying_sum
from theodolite.nets.parts.starts import drawn_between, drawn_steps, drawn_taps
from theodolite.nets.transformer import check_blocks

_EXPAND = 2
_RATES = (1.0, 16.0)  # from which the decay of a head is drawn
_LEAST = 1e-5


class MambaMixer(nn.Module):
    """h ← e^{−Δ r} h + Δ B xᵀ, y = Cᵀ h + D x, out = W norm(y ⊙ silu(z)) (Dao and Gu 2024, Section 7.1).

    One projection of the token gives z, x, B, C and Δ; x, B and C pass a causal window with a bias, and SiLU. Every
    head has a rate r and a D of its own; B and C are shared by the heads.
    """

    def __init__(self, width: int, heads: int, state: int, kernel: int) -> None:
        super().__init__()
        inner = _EXPAND * width
        self.heads, self.sizes = heads, (inner, state, state)
        windowed = sum(self.sizes)
        self.project = nn.Linear(width, inner + windowed + heads, bias=False)
        self.taps, self.bias = drawn_taps(windowed, kernel), drawn_taps(windowed, kernel, bias=True)
        self.step_bias = nn.Parameter(drawn_steps(heads))
        self.log_rate = nn.Parameter(drawn_between(heads, *_RATES).log())
        self.direct = nn.Parameter(torch.ones(heads, 1))
        self.norm = nn.RMSNorm(inner, eps=_LEAST)
        self.combine = nn.Linear(inner, width, bias=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        gate, mixed, step = self.project(x).split((self.sizes[0], sum(self.sizes), self.heads), dim=-1)
        mixed = nn.functional.silu(causal_window(mixed, self.taps) + self.bias)
        own, into, out = mixed.split(self.sizes, dim=-1)
        step = nn.functional.softplus(step + self.step_bias).transpose(1, 2)
        value = own.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        into, out = (each.unsqueeze(1).expand(-1, self.heads, -1, -1) for each in (into, out))
        found = decaying_sum(out, into, value * step.unsqueeze(-1), -self.log_rate.exp().unsqueeze(-1) * step)
        found = (found + self.direct.unsqueeze(-1) * value).transpose(1, 2).flatten(-2)
        return self.combine(self.norm(found * nn.functional.silu(gate)))


class MambaBlock(nn.Module):
    """x + mix(norm x), and nothing else."""

    def __init__(self, width: int, mix: nn.Module) -> None:
        super().__init__()
        self.before_mix, self.mix = nn.RMSNorm(width, eps=_LEAST), mix

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        return x + self.mix(self.before_mix(x))


@register_trained("mamba-2", "Mamba-2 as published: expand 2, an output gate, rates from 1 to 16, no perceptron")
def mamba_2(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 2,
    width: int = 32,
    heads: int = 4,
    state: int = 16,
    kernel: int = 4,
) -> ResidualRecurrence:
    """Blocks of Mamba-2 alone (Dao and Gu 2024), between a linear embedding and a linear readout. The authors' heads
    are 64 wide and their `state` is 128.

    A layer carries 2·`state`·width numbers and the last `kernel` − 1 tokens. All its eigenvalues lie in (0, 1).
    """
    positive(features=features, outputs=outputs, state=state, kernel=kernel)
    check_blocks(depth, width, heads, "serial")
    unknown = "how fast a state decays depends on the weights; theory has no law for generic ones"
    mix = partial(MambaMixer, width, heads, state, kernel)
    norm = nn.RMSNorm(width, eps=_LEAST)
    return ResidualRecurrence(lambda: MambaBlock(width, mix()), features, outputs, depth, width, unknown, norm)
