"""The gated delta rule: a matrix per head that every token decays, corrects along its key, and reads."""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import positive, register_trained
from theodolite.nets.parts.residual import ResidualBlock, ResidualRecurrence
from theodolite.nets.parts.scan import causal_window, delta_rule
from theodolite.nets.transformer import check_blocks

_LEAST = 1e-6
_DECAYS = (1e-3, 1e-1)  # −log α at the start, from the first head to the last: memories of 1,000 to 10 tokens


class DeltaRule(nn.Module):
    """S ← α (S − β k kᵀS) + β k vᵀ, `products` times per token with keys, values and β of their own; α once.

    One step's matrix α (1 − β k kᵀ), ‖k‖ = 1, has the eigenvalue α (1 − β) along k: in (−1, 1) if `negative` (β in
    (0, 2)), which turns a state around as parity needs; in (0, 1) otherwise. n steps are a product of n reflections.
    """

    def __init__(self, width: int, heads: int, products: int, gated: bool, negative: bool, kernel: int) -> None:
        super().__init__()
        self.heads, self.products, self.most = heads, products, 2.0 if negative else 1.0
        self.sizes = (width, products * width, products * width)
        self.project = nn.Linear(width, sum(self.sizes), bias=False)
        self.taps = nn.Parameter(torch.empty(sum(self.sizes), kernel))
        nn.init.uniform_(self.taps, -1 / math.sqrt(kernel), 1 / math.sqrt(kernel))  # as `torch.nn.Conv1d` starts
        self.rate = nn.Linear(width, products * heads)
        self.decay = nn.Linear(width, heads) if gated else None
        self.norm = nn.Parameter(torch.ones(width))
        self.combine = nn.Linear(width, width, bias=False)
        if self.decay is not None:
            low, high = (math.log(decay) for decay in _DECAYS)
            with torch.no_grad():
                self.decay.bias.copy_(torch.linspace(low, high, heads).exp().expm1().log())  # softplus gives it back

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        mixed = nn.functional.silu(causal_window(self.project(x), self.taps))
        query, key, value = (self._split(part) for part in mixed.split(self.sizes, dim=-1))
        rate = self.most * torch.sigmoid(self.rate(x)).unflatten(-1, (self.products, self.heads))
        rate = rate.flatten(1, 2).transpose(1, 2)
        decay = None if self.decay is None else -nn.functional.softplus(self.decay(x)).transpose(1, 2)
        found = delta_rule(unit(query), unit(key), value, rate, decay)
        found = found * torch.rsqrt(found.square().mean(dim=-1, keepdim=True) + _LEAST)
        return self.combine(found.transpose(1, 2).flatten(-2) * self.norm)

    def _split(self, x: Float[Tensor, "batch token many"]) -> Float[Tensor, "batch head step attention_width"]:
        width = self.sizes[0]
        return x.unflatten(-1, (-1, width)).flatten(1, 2).unflatten(-1, (self.heads, -1)).transpose(1, 2)


def unit(x: Tensor) -> Tensor:
    """To length 1; a zero vector stays one, so that nothing is written by what says nothing."""
    return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + _LEAST)


@register_trained(
    "delta-net",
    "the gated delta rule in the Transformer's blocks: eigenvalues in (−1, 1), one or more reflections a token "
    "(as published: gated-delta-net)",
)
def delta_net(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 2,
    width: int = 32,
    heads: int = 4,
    products: int = 1,
    gated: bool = True,
    negative: bool = True,
    kernel: int = 4,
) -> ResidualRecurrence:
    """Gated DeltaNet (Yang et al. 2024) without its output gate and its learnt rate A of the decay, in blocks like the
    Transformer's; β up to 2 (Grazzi et al. 2024), several steps per token (DeltaProduct, Siems et al. 2025).

    Carries heads·a² numbers per layer, a = width / heads, and the last `kernel` − 1 tokens.
    """
    positive(features=features, outputs=outputs, products=products, kernel=kernel)
    check_blocks(depth, width, heads, "serial")
    unknown = "how fast a state decays and what overwrites it depends on the weights and on the tokens"
    mix = partial(DeltaRule, width, heads, products, gated, negative, kernel)
    return ResidualRecurrence(lambda: ResidualBlock(width, mix()), features, outputs, depth, width, unknown)
