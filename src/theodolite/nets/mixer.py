"""MLP-Mixer: a perceptron across the tokens, the same for every channel, then one across the channels.

Tolstikhin et al. 2021, "MLP-Mixer: an all-MLP architecture for vision".
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, positive, register_trained
from theodolite.nets.parts.dense import Perceptron
from theodolite.nets.parts.norm import LayerNorm
from theodolite.theory.sensitivity import InfluenceLaw, no_law


class TokenMixing(nn.Module):
    """W₂ gelu(W₁ X + b₁) + b₂ on the first tokens of `tokens`, with `expansion` hidden units per token.

    Causal: the hidden units stand at the places of the tokens, and either matrix is lower triangular in the places.
    """

    def __init__(self, tokens: int, expansion: int, causal: bool) -> None:
        super().__init__()
        self.expansion, self.causal = expansion, causal
        self.into = nn.Linear(tokens, tokens * expansion)
        self.back = nn.Linear(tokens * expansion, tokens)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        tokens = x.shape[1]
        into, back = self.into.weight[:, :tokens], self.back.weight[:tokens]
        bias = self.into.bias
        if self.causal:
            units = tokens * self.expansion  # what stands at later places is seen by none of these tokens
            place = torch.arange(units, device=x.device) // self.expansion
            seen = place[:, None] >= torch.arange(tokens, device=x.device)
            into = into[:units].masked_fill(~seen, 0)
            own = place <= torch.arange(tokens, device=x.device)[:, None]
            back, bias = back[:, :units].masked_fill(~own, 0), bias[:units]
        hidden = nn.functional.gelu(into @ x + bias[:, None])
        return back @ hidden + self.back.bias[:tokens, None]


class MixerBlock(nn.Module):
    """x ← x + tokens mixed(norm x), then x ← x + channels mixed(norm x); absent tokens are zero where tokens mix."""

    def __init__(self, tokens: int, width: int, expansion: int, causal: bool) -> None:
        super().__init__()
        self.before_tokens = LayerNorm(width)
        self.across_tokens = TokenMixing(tokens, expansion, causal)
        self.before_channels = LayerNorm(width)
        self.across_channels = Perceptron(width)

    def forward(
        self, x: Float[Tensor, "batch token width"], absent: Bool[Tensor, "batch token 1"] | None
    ) -> Float[Tensor, "batch token width"]:
        normed = self.before_tokens(x)
        x = x + self.across_tokens(normed if absent is None else normed.masked_fill(absent, 0))
        return x + self.across_channels(self.before_channels(x))


@register_trained("mixer", "MLP-Mixer: perceptrons across the tokens and across the channels, in turn")
class Mixer(nn.Module):
    """Built for at most `tokens` tokens, of which any first ones may come; what `present` marks never matters.

    Called with `present`, what stands beyond `tokens` can be padding only: it is cut off and answered with zeros.
    """

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int = 8,
        depth: int = 2,
        width: int = 32,
        expansion: int = 2,
        causal: bool = False,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, tokens=tokens, depth=depth, width=width, expansion=expansion)
        self.tokens, self.causal = tokens, causal
        self.embed = nn.Linear(features, width)
        self.blocks = nn.ModuleList(MixerBlock(tokens, width, expansion, causal) for _ in range(depth))
        self.read = nn.Sequential(LayerNorm(width), nn.Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        beyond = x.shape[1] - self.tokens
        if beyond > 0:
            if present is None:
                raise BadInput(f"a mixer built for {self.tokens} tokens cannot read {x.shape[1]}: raise its 'tokens'")
            x, present = x[:, : self.tokens], present[:, : self.tokens]
        absent = None if present is None or self.causal else ~present.unsqueeze(-1)
        x = self.embed(x)
        for block in self.blocks:
            x = block(x, absent)
        return nn.functional.pad(self.read(x), (0, 0, 0, max(0, beyond)))

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every token has weights of its own")
        return {"translation": own, "permutation": own}

    def influence(self) -> InfluenceLaw:
        return no_law("every pair of tokens has weights of its own, and a longer input needs a larger net")
