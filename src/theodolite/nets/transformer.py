"""The softmax Transformer: pre-norm blocks of attention and a two-layer perceptron, in series or side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, choice, positive, register
from theodolite.nets.positions import rotate, rotation, sinusoidal
from theodolite.theory.sensitivity import InfluenceLaw, attention_law

Turns = tuple[Tensor, Tensor]


def attention(
    query: Float[Tensor, "batch head query attention_width"],
    key: Float[Tensor, "batch head key attention_width"],
    value: Float[Tensor, "batch head key attention_width"],
    bias: Float[Tensor, "*any query key"] | None = None,
) -> Float[Tensor, "batch head query attention_width"]:
    """softmax(Q Kᵀ / √d + bias) V; a bias of −∞ hides a key, and its weight and gradient are exactly 0."""
    scores = logits(query, key)
    return torch.softmax(scores if bias is None else scores + bias, dim=-1) @ value


def logits(
    query: Float[Tensor, "batch head query attention_width"], key: Float[Tensor, "batch head key attention_width"]
) -> Float[Tensor, "batch head query key"]:
    return (query / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)


class TransformerBlock(nn.Module):
    """Serial: attention, then the perceptron, each with its own norm. Parallel: both read one norm, both are added.

    `mix` brings the values to the queries; what hides keys from it is handed through.
    """

    def __init__(self, width: int, heads: int, parallel: bool = False, mix: Callable[..., Tensor] = attention) -> None:
        super().__init__()
        self.heads, self.mix = heads, mix
        self.before_attention = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.combine = nn.Linear(width, width)
        self.before_mlp = None if parallel else nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

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


@register(
    name="transformer",
    summary="softmax Transformer, pre-norm, serial or parallel blocks, with or without positions and a causal mask",
    kind="sequence",
    polynomial=False,
    version=2,
    defaults={"features": 4, "tokens": 8},
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
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs)
        check_blocks(depth, width, heads, block)
        choice("positions", positions, ("none", "sinusoidal", "rotary"))
        if positions == "rotary" and width < 2 * heads:
            raise BadInput(f"rotary positions turn pairs of numbers and {heads} heads of width {width} have one each")
        self.width, self.attention_width, self.depth = width, width // heads, depth
        self.positions, self.causal = positions, causal
        self.embed = nn.Linear(features, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, block == "parallel") for _ in range(depth))
        self.read = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        x = self.embed(x)
        tokens = x.shape[1]
        if self.positions == "sinusoidal":
            x = x + sinusoidal(tokens, self.width, x)
        turns = rotation(tokens, self.attention_width, x) if self.positions == "rotary" else None
        bias = hidden_keys(x, present, self.causal)
        for block in self.blocks:
            x = block(x, bias, turns)
        return self.read(x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        return attention_symmetries(self.positions, self.causal)

    def influence(self) -> InfluenceLaw:
        return attention_law(self.depth, self.causal)


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
