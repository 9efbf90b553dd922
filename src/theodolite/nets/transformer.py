"""The Transformer: pre-norm blocks of attention and a two-layer perceptron, in series or side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.kernels import attention as fused
from theodolite.kernels import launch
from theodolite.nets.contract import Symmetry, choice, positive, register_trained
from theodolite.nets.parts.attention_weights import Weighing, softmax, weighing
from theodolite.nets.parts.dense import Linear, Perceptron
from theodolite.nets.parts.norm import LayerNorm
from theodolite.nets.parts.positions import Places, Turns, rotate
from theodolite.theory.sensitivity import InfluenceLaw, attention_law, no_law


def attention(
    query: Float[Tensor, "batch head query attention_width"],
    key: Float[Tensor, "batch head key attention_width"],
    value: Float[Tensor, "batch head key attention_width"],
    bias: Float[Tensor, "*any query key"] | None = None,
    weigh: Weighing = softmax,
) -> Float[Tensor, "batch head query attention_width"]:
    """softmax(Q Kᵀ / √d + bias) V, or another map from logits to weights; a bias of −∞ hides a key, and its weight
    and gradient are exactly 0."""
    if weigh is softmax and launch.usable(query, key, value) and fused.takes(query, key, value, bias):
        return fused.attend(query, key, value, bias)
    scores = logits(query, key)
    return weigh(scores if bias is None else scores + bias) @ value


def logits(
    query: Float[Tensor, "batch head query attention_width"], key: Float[Tensor, "batch head key attention_width"]
) -> Float[Tensor, "batch head query key"]:
    return (query / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)


class TransformerBlock(nn.Module):
    """Serial: attention, then the perceptron, each with its own norm. Parallel: both read one norm, both are added.

    `mix` brings the values to the queries; what hides keys from it is handed through. `hidden`: of the perceptron.
    `head_width`: numbers of a head, all heads together as wide as the network unless given.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        parallel: bool = False,
        mix: Callable[..., Tensor] = attention,
        hidden: int | None = None,
        head_width: int | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.mix = heads, mix
        attended = width if head_width is None else heads * head_width
        self.before_attention = LayerNorm(width)
        self.project = Linear(width, 3 * attended)
        self.combine = Linear(attended, width)
        self.before_mlp = None if parallel else LayerNorm(width)
        self.mlp = Perceptron(width, hidden)

    def forward(
        self,
        x: Float[Tensor, "batch token width"],
        hidden: Tensor | None = None,
        turns: Turns | None = None,
    ) -> Float[Tensor, "batch token width"]:
        normed = self.before_attention(x)
        if self.before_mlp is None:
            return x + self.attend(normed, hidden, turns) + self.mlp(normed)
        x = x + self.attend(normed, hidden, turns)
        return x + self.mlp(self.before_mlp(x))

    def attend(
        self, x: Float[Tensor, "batch token width"], hidden: Tensor | None, turns: Turns | None
    ) -> Float[Tensor, "batch token width"]:
        return self.combine(self.mix(*self.split(x, turns), hidden).transpose(1, 2).flatten(-2))

    def split(self, x: Float[Tensor, "batch token width"], turns: Turns | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of every head, each (batch, head, token, attention width)."""
        projected = self.project(x).unflatten(-1, (3 * self.heads, -1))
        if turns is None:
            query, key, value = (part.transpose(1, 2) for part in projected.chunk(3, dim=2))
            return query, key, value
        both, value = projected.split((2 * self.heads, self.heads), dim=2)
        query, key = rotate(both, turns).transpose(1, 2).chunk(2, dim=1)
        return query, key, value.transpose(1, 2)


def hidden_keys(
    like: Float[Tensor, "batch token width"], present: Bool[Tensor, "batch token"] | None, causal: bool
) -> Float[Tensor, "*any token token"] | None:
    """0 where a token sees another and −∞ where it does not; every token sees itself, so that no row is empty.

    Padding stands on the right, so a causal mask hides it from every real token already.
    """
    if present is None and not causal:
        return None
    place = torch.arange(like.shape[1], device=like.device)
    if causal or present is None:
        seen = place[:, None] >= place
    else:
        seen = present[:, None, None, :] | (place[:, None] == place)
    return torch.zeros(seen.shape, dtype=like.dtype, device=like.device).masked_fill(~seen, -math.inf)


def check_blocks(depth: int, width: int, heads: int, block: str) -> None:
    """Refuse what no stack of blocks can have."""
    positive(depth=depth, width=width, heads=heads)
    choice("block", block, ("serial", "parallel"))
    if width % heads:
        raise BadInput(f"{heads} heads do not divide width {width}: choose a divisor of it")


@register_trained(
    "transformer",
    "softmax Transformer, pre-norm, serial or parallel blocks, with or without positions and a causal mask",
    version=2,
)
class Transformer(nn.Module):
    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 32,
        heads: int = 4,
        block: str = "serial",
        positions: str = "rotary",
        causal: bool = True,
        attention: str = "softmax",
        threshold: float = 0.1,
        offset_range: int = 1000,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs)
        check_blocks(depth, width, heads, block)
        self.depth, self.causal, self.attention = depth, causal, attention
        self.places = Places(positions, width, heads, offset_range)
        self.embed = Linear(features, width)
        mix = mixing(attention, threshold)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, block == "parallel", mix) for _ in range(depth))
        self.read = nn.Sequential(LayerNorm(width), Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        x = self.embed(x)
        table = self.places.table(x)
        x = x if table is None else x + table
        bias, turns = self.places.bias(x, hidden_keys(x, present, self.causal)), self.places.turns(x)
        for block in self.blocks:
            x = block(x, bias, turns)
        return self.read(x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        return attention_symmetries(self.places.kind, self.causal)

    def influence(self) -> InfluenceLaw:
        return weighed_law(self.depth, self.causal, self.attention, self.places.kind)


def mixing(kind: str, threshold: float) -> Callable[..., Tensor]:
    """Attention whose weights are of this kind."""
    weigh = weighing(kind, threshold)
    return attention if weigh is softmax else partial(attention, weigh=weigh)


def weighed_law(depth: int, causal: bool, kind: str, positions: str) -> InfluenceLaw:
    """Of attention with weights and positions of these kinds."""
    if kind != "softmax":
        return no_law(f"{kind} weights can be exactly 0, and with them the influence of a symbol")
    if positions == "alibi":
        return no_law("alibi logits fall without bound with distance, and weights exponentially")
    return attention_law(depth, causal)


def attention_symmetries(positions: str, causal: bool) -> Mapping[str, Symmetry]:
    """Of attention that weighs tokens by what they hold, softmax or linear."""
    if positions != "none":
        permuted = Symmetry(False, f"{positions} positions tell the places apart")
    elif causal:
        permuted = Symmetry(False, "the causal mask orders the tokens")
    else:
        permuted = Symmetry(True, "attention without positions or a mask sums over a set of tokens")
    return {
        "translation": permuted,
        "permutation": permuted,
        "time-shift": Symmetry(False, "weights sum to 1 over all tokens, so zero tokens take a share of them"),
    }


def _variant(name: str, summary: str, **changed: Any) -> None:
    """An entry of the same class with other defaults."""
    register_trained(name, summary, **changed)(Transformer)


_variant(
    "thresholded-transformer",
    "Transformer whose small attention weights are set to 0, the others scaled up",
    attention="thresholded",
)
_variant("sparsemax-transformer", "Transformer whose attention weights are sparsemax", attention="sparsemax")
_variant("entmax-transformer", "Transformer whose attention weights are 1.5-entmax", attention="entmax")
_variant("alibi-transformer", "softmax Transformer whose logits fall with distance (ALiBi)", positions="alibi")
_variant(
    "random-offset-transformer",
    "softmax Transformer with sinusoidal positions that start at a random place while training",
    positions="random-offset",
)
