"""The Universal Transformer (Dehghani et al. 2019): one block applied again and again, to each token while it asks.

Halting is Graves' (2016) adaptive computation time. Before every step a token's state gives a probability to halt. A
token takes its last step when these probabilities would sum to 1 − ε; its answer is the mean of its states, weighted
by the probabilities, where the last has what is left to 1. From then on its state stays and is still seen by others.

Where a token halts at its first step, its weight is the constant 1 and the halting unit has no gradient: it never halts
later again. As published (bias 1) training arrives there at once, because the first step is the first to be useful. The
patient start begins with all steps, and its unit is slow: it takes the mean over the width instead of the sum, so that
the block learns to use its steps before the unit can decide against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, choice, positive, register_trained
from theodolite.nets.parts.auxiliary import with_cost
from theodolite.nets.parts.norm import LayerNorm
from theodolite.nets.parts.positions import Places, sinusoidal
from theodolite.nets.transformer import (
    TransformerBlock,
    attention_symmetries,
    check_blocks,
    hidden_keys,
    mixing,
    weighed_law,
)
from theodolite.theory.sensitivity import InfluenceLaw, no_law

_EPSILON = 0.01
_STARTS = ("patient", "published")
_PATIENT, _PUBLISHED = -4.0, 1.0  # the halting unit's logit at the start: probabilities of .018 and .73 at every step


@dataclass(frozen=True)
class Thought:
    """`answer`: the mean of a token's states; `steps` it took; `left`: the weight of its last one, with a gradient."""

    answer: Float[Tensor, "batch token width"]
    steps: Float[Tensor, "batch token 1"]
    left: Float[Tensor, "batch token 1"]


@register_trained(
    "universal-transformer",
    "one Transformer block applied up to `depth` times, each token halting by itself",
    version=2,
)
class UniversalTransformer(nn.Module):
    """`depth` is the largest number of steps; without `halting` every token takes them all. `start`: of the halting
    unit, patient or as published.

    While training, `ponder` times the mean over tokens of steps + remainder is added to the loss (`with_cost`).
    All steps are computed whatever halts, so that the shape of the computation does not depend on the data.
    """

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 4,
        width: int = 32,
        heads: int = 4,
        block: str = "serial",
        positions: str = "random-offset",
        causal: bool = True,
        attention: str = "softmax",
        threshold: float = 0.1,
        offset_range: int = 1000,
        halting: bool = True,
        ponder: float = 0.01,
        start: str = "patient",
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs)
        check_blocks(depth, width, heads, block)
        if ponder < 0:
            raise BadInput(f"ponder must be a cost of 0 or more for every step, not {ponder!r}")
        self.depth, self.width, self.causal, self.attention = depth, width, causal, attention
        choice("start", start, _STARTS)
        self.ponder, self.start = ponder, start
        self.places = Places(positions, width, heads, offset_range)
        self.embed = nn.Linear(features, width)
        self.block = TransformerBlock(width, heads, block == "parallel", mixing(attention, threshold))
        self.halt = nn.Linear(width, 1) if halting and depth > 1 else None  # there is always a first step
        if self.halt is not None:
            nn.init.constant_(self.halt.bias, _PUBLISHED if start == "published" else 0.0)
        self.read = nn.Sequential(LayerNorm(width), nn.Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        found = self._think(x, present)
        output = self.read(found.answer)
        if not self.training or self.halt is None or self.ponder == 0:
            return output
        asked = found.steps + found.left
        if present is None:
            return with_cost(output, self.ponder * asked.mean())
        real = present.unsqueeze(-1).to(asked.dtype)
        return with_cost(output, self.ponder * (asked * real).sum() / real.sum().clamp(min=1))

    def symmetries(self) -> Mapping[str, Symmetry]:
        return attention_symmetries(self.places.kind, self.causal)

    def influence(self) -> InfluenceLaw:
        if self.halt is not None:
            return no_law("a symbol can change how many steps a token takes, and then by more than its share")
        return weighed_law(self.depth, self.causal, self.attention, self.places.kind)

    def steps_taken(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token"]:
        """How many steps every token takes."""
        return self._think(x, present).steps.squeeze(-1)

    def _think(self, x: Tensor, present: Tensor | None) -> Thought:
        state = self.embed(x)
        turns, bias = self.places.turns(state), self.places.bias(state, hidden_keys(state, present, self.causal))
        where, when = self.places.table(state), sinusoidal(self.depth + 1, self.width, state)[1:]
        steps = torch.zeros_like(state[..., :1])
        left, running, answer = torch.ones_like(steps), torch.ones_like(steps), torch.zeros_like(state)
        for step in range(self.depth):
            placed = state + when[step] if where is None else state + (where + when[step])
            new = self.block(placed, bias, turns)
            if self.halt is None:
                state, steps = new, steps + 1
                continue
            if step == self.depth - 1:
                return Thought(answer + running * left * new, steps + running, left)
            wish = torch.sigmoid(self._logit(self.halt(placed)))
            ends = left - wish <= _EPSILON
            answer = answer + running * torch.where(ends, left, wish) * new
            steps = steps + running
            state = torch.where(running > 0, new, state)
            left = torch.where(ends | (running == 0), left, left - wish)
            running = running.masked_fill(ends, 0)
        return Thought(state, steps, left)

    def _logit(self, said: Tensor) -> Tensor:
        """Adam moves every weight by the rate, so a sum over the width moves `width` times as fast as a mean."""
        return said if self.start == "published" else _PATIENT + said / self.width
