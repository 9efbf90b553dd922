"""Gated DeltaNet as its authors have it: a learnt rate of decay, an output gate, values twice as wide as keys."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import positive, register_trained
from theodolite.nets.delta_net import unit
from theodolite.nets.parts.residual import ResidualRecurrence
from theodolite.nets.parts.scan import causal_window, delta_rule
from theodolite.nets.parts.starts import drawn_between, drawn_steps, drawn_taps
from theodolite.nets.transformer import check_blocks

_KEYS = 0.75  # of the width, all heads together
_VALUES = 2  # times as wide as keys
_RATES = (0.0, 16.0)  # from which the A of a head is drawn
_LEAST = 1e-5


class GatedDeltaRule(nn.Module):
    """S ← α (S − β k kᵀS) + β k vᵀ, α = e^{−A softplus(w·x + b)}, β = σ(u·x), out = W (norm(qᵀS) ⊙ silu(G x)) (Yang,
    Kautz and Hatamizadeh 2024, Section 3.4); queries, keys and values pass a causal window and SiLU, ‖q‖ = ‖k‖ = 1."""

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__()
        key = max(1, round(_KEYS * width / heads))
        value = _VALUES * key
        self.heads, self.sizes, self.scale = heads, (heads * key, heads * key, heads * value), key**-0.5
        self.project = nn.Linear(width, sum(self.sizes), bias=False)
        self.taps = drawn_taps(sum(self.sizes), kernel)
        self.rate, self.decay = (nn.Linear(width, heads, bias=False) for _ in range(2))
        self.decay_bias = nn.Parameter(drawn_steps(heads))
        self.log_decay = nn.Parameter(drawn_between(heads, *_RATES).log())
        self.gate = nn.Linear(width, heads * value, bias=False)
        self.norm = nn.RMSNorm(value, eps=_LEAST)  # one for all heads
        self.combine = nn.Linear(heads * value, width, bias=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        mixed = nn.functional.silu(causal_window(self.project(x), self.taps))
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in mixed.split(self.sizes, dim=-1)
        )
        rate = torch.sigmoid(self.rate(x)).transpose(1, 2)
        fading = nn.functional.softplus(self.decay(x) + self.decay_bias).transpose(1, 2)
        decay = -self.log_decay.exp().unsqueeze(-1) * fading
        found = delta_rule(self.scale * unit(query), unit(key), value, rate, decay)
        found = self.norm(found.transpose(1, 2)).flatten(-2)
        return self.combine(found * nn.functional.silu(self.gate(x)))


class GatedDeltaBlock(nn.Module):
    """x + mix(norm x), then x + W (silu(U norm x) ⊙ V norm x), 8/3 of the width wide."""

    def __init__(self, width: int, mix: nn.Module) -> None:
        super().__init__()
        hidden = int(width * 8 / 3)
        self.before_mix, self.mix = nn.RMSNorm(width, eps=_LEAST), mix
        self.before_mlp = nn.RMSNorm(width, eps=_LEAST)
        self.both, self.down = nn.Linear(width, 2 * hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        x = x + self.mix(self.before_mix(x))
        gate, up = self.both(self.before_mlp(x)).chunk(2, dim=-1)
        return x + self.down(nn.functional.silu(gate) * up)


@register_trained(
    "gated-delta-net", "Gated DeltaNet as published: a learnt rate of decay, an output gate, wide values, SwiGLU"
)
def gated_delta_net(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 2,
    width: int = 32,
    heads: int = 4,
    kernel: int = 4,
) -> ResidualRecurrence:
    """Gated DeltaNet (Yang, Kautz and Hatamizadeh 2024) between a linear embedding and a linear readout. Keys of all
    heads have ¾ of the width together, rounded; the authors' are 256 wide, and so many more.

    A layer carries heads·2a² numbers, a the width of a key, and the last `kernel` − 1 tokens. Its eigenvalues lie in
    (0, 1).
    """
    positive(features=features, outputs=outputs, kernel=kernel)
    check_blocks(depth, width, heads, "serial")
    unknown = "how fast a state decays and what overwrites it depends on the weights and on the tokens"
    mix = partial(GatedDeltaRule, width, heads, kernel)
    norm = nn.RMSNorm(width, eps=_LEAST)
    return ResidualRecurrence(lambda: GatedDeltaBlock(width, mix()), features, outputs, depth, width, unknown, norm)
