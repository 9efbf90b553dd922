"""Message passing between tokens that are the nodes of a graph.

Gilmer et al. 2017, "Neural message passing for quantum chemistry", with messages that depend on who sends them: a
node then receives one sum, and a complete graph costs as much per node as a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, choice, positive, register_trained
from theodolite.theory.sensitivity import InfluenceLaw, attention_law, convolution_law, no_law


@dataclass(frozen=True)
class Neighbours:
    """Whom every token hears: all others, those beside it, or those beside it on a circle; if causal, earlier ones."""

    graph: str
    causal: bool
    mean: bool

    def collect(
        self, messages: Float[Tensor, "batch token width"], present: Bool[Tensor, "batch token"] | None
    ) -> Float[Tensor, "batch token width"]:
        """The sum or the mean over the neighbours; nothing where there are none."""
        place = torch.arange(messages.shape[1], device=messages.device)[None, :, None]
        count = place[:, -1:] + 1 if present is None else present.sum(dim=1)[:, None, None]
        if present is not None:
            messages = messages.masked_fill(~present.unsqueeze(-1), 0)
        if self.graph == "complete":
            heard = messages.cumsum(dim=1) if self.causal else messages.sum(dim=1, keepdim=True)
            heard, size = heard - messages, place if self.causal else count - 1
        elif self.graph == "ring":
            heard, size = _beside(messages, count, place), torch.full_like(count, 2)
        else:
            padded = nn.functional.pad(messages, (0, 0, 1, 1))
            heard, size = padded[:, :-2], (place > 0).long()
            if not self.causal:
                heard, size = heard + padded[:, 2:], size + (place + 1 < count)
        return heard / size.clamp(min=1).to(heard.dtype) if self.mean else heard


def _beside(messages: Tensor, count: Tensor, place: Tensor) -> Tensor:
    """Both sides of every token, counted around the tokens that are present."""
    around = count.clamp(min=1)
    sides = [torch.take_along_dim(messages, (place + step) % around, dim=1) for step in (-1, 1)]
    return sides[0] + sides[1]


class Round(nn.Module):
    """h ← h + update(norm h, what the neighbours send), each neighbour sending gelu(W norm h + b)."""

    def __init__(self, width: int, neighbours: Neighbours) -> None:
        super().__init__()
        self.neighbours = neighbours
        self.norm = nn.LayerNorm(width)
        self.send = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.update = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(
        self, x: Float[Tensor, "batch token width"], present: Bool[Tensor, "batch token"] | None
    ) -> Float[Tensor, "batch token width"]:
        normed = self.norm(x)
        heard = self.neighbours.collect(self.send(normed), present)
        return x + self.update(torch.cat((normed, heard), dim=-1))


@register_trained("graph-network", "message passing between the tokens of a complete graph, a path or a ring")
class MessagePassing(nn.Module):
    """`depth` rounds, no positions: on a complete graph tokens are a set.

    On a ring the neighbours are counted around the end: of two tokens, the other is heard twice.
    """

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 32,
        graph: str = "complete",
        aggregation: str = "mean",
        causal: bool = False,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, depth=depth, width=width)
        choice("graph", graph, ("complete", "path", "ring"))
        choice("aggregation", aggregation, ("mean", "sum"))
        if causal and graph == "ring":
            raise BadInput("a ring leads from its end to its start and cannot be causal: use a path, or causal false")
        self.depth, self.graph, self.aggregation, self.causal = depth, graph, aggregation, causal
        neighbours = Neighbours(graph, causal, aggregation == "mean")
        self.embed = nn.Linear(features, width)
        self.rounds = nn.ModuleList(Round(width, neighbours) for _ in range(depth))
        self.read = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        x = self.embed(x)
        for round_ in self.rounds:
            x = round_(x, present)
        return self.read(x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        ordered = Symmetry(False, "a token hears earlier ones only" if self.causal else f"a {self.graph} is in order")
        everyone = Symmetry(True, "every token hears all others alike")
        complete = self.graph == "complete" and not self.causal
        if complete:
            rolled = everyone
        elif self.graph == "ring":
            rolled = Symmetry(True, "every token of the circle hears those beside it")
        else:
            rolled = Symmetry(False, "a path has ends" if self.graph == "path" else ordered.reason)
        return {
            "translation": rolled,
            "permutation": everyone if complete else ordered,
            "time-shift": self._time_shift(),
        }

    def _time_shift(self) -> Symmetry:
        summed = self.aggregation == "sum"
        if self.graph == "ring":
            return Symmetry(False, "zero tokens come between the two ends that the circle joins")
        if self.causal:
            if summed or self.graph == "path":
                return Symmetry(True, "zero tokens before the first hear nothing and say nothing")
            return Symmetry(False, "zero tokens take a share of the mean")
        if not summed:
            return Symmetry(False, "zero tokens take a share of the mean")
        if self.depth == 1:
            return Symmetry(True, "zero tokens say nothing in the first round")
        return Symmetry(False, "zero tokens pass on what they heard in the round before")

    def influence(self) -> InfluenceLaw:
        if self.graph != "complete":
            return convolution_law(self.depth, 2 if self.causal else 3, 1, self.causal, self.graph == "ring")
        if self.aggregation == "mean":
            return attention_law(self.depth, self.causal, softmax=False)
        return no_law("a sum over n tokens grows with n, and the next norm shrinks what one of them adds by as much")
