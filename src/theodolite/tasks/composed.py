"""Regression on a random smooth function whose compositional graph is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from theodolite.errors import BadInput
from theodolite.graphs.families import named_graph
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.constituents import BEND, ComposedFunction, Constituent

MOST_VARIABLES = 256


@register("composed", "a random smooth function with a given compositional graph")
class Composed(Named):
    """A random function with the named graph of x uniform in [−1, 1]^`variables`; `draw` numbers the functions.

    0.5  −1  0.25  1   (a binary tree of 4 variables: h(f(x1, x2), g(x3, x4)))
     └─f─┘    └─g──┘
       └───h───┘ → −0.69

    Every constituent is Σ w tanh(a·u + b) cos(c·u + d), scaled to mean 0 and variance 1. `smoothness` m > 0 makes them
    sums of ridge splines instead, whose derivatives of order m jump; 0 stands for infinitely smooth. `fan_in` is that
    of the graph `convolutional`, which is the binary tree when it is 2.
    """

    graph: str = "convolutional"
    variables: int = 8
    fan_in: int = 2
    smoothness: int = 0
    draw: int = 0

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, variables=self.variables)
        check_at_least(self.name, 2, fan_in=self.fan_in)
        check_at_least(self.name, 0, smoothness=self.smoothness, draw=self.draw)
        if self.variables > MOST_VARIABLES:
            raise BadInput(
                f"variables={self.variables} are too many for the task '{self.name}': use {MOST_VARIABLES} or less"
            )
        if self.fan_in != 2 and self.graph != "convolutional":
            raise BadInput(
                f"fan_in={self.fan_in} is for the graph 'convolutional', not for the '{self.graph}' of the task "
                f"'{self.name}': leave it out"
            )
        self.function  # noqa: B018  a graph that cannot be made is refused at once

    @property
    def function(self) -> ComposedFunction:
        return _function(self.graph, self.variables, self.fan_in, self.smoothness, self.draw)

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("vector", self.variables, 1, None, None, loss="square", chance=0.0, solved=0.99)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        shape = (members, batch, self.variables)
        points = 2 * torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float32) - 1
        targets = self.function(points.double()).float().unsqueeze(-1)
        return Batch(points, targets, torch.ones_like(targets, dtype=torch.bool))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        function = self.function
        known = dict(zip(function.variables, row, strict=True))

        def value(name: str) -> float:
            if name in known:
                return known[name] * math.sqrt(3)
            drawn = function.constituents[name]
            said = _said(drawn, [value(below) for below in function.elementary.node[name].inputs], self.smoothness)
            return (said - drawn.mean) / drawn.scale

        return [value(function.elementary.output.name) + function.lift]


@lru_cache(maxsize=32)
def _function(graph: str, variables: int, fan_in: int, smoothness: int, draw: int) -> ComposedFunction:
    generator = np.random.default_rng([draw, variables])
    return ComposedFunction(named_graph(graph, variables, fan_in), generator, smoothness or None)


def _said(drawn: Constituent, u: Sequence[float], smoothness: int) -> float:
    """The constituent before it is scaled, in the words of its definition."""
    p = {name: values.tolist() for name, values in drawn.parameters.items()}
    if drawn.formula == "sum":
        return math.fsum(w * x for w, x in zip(p["weight"], u, strict=True))
    if drawn.formula == "product":
        return math.prod(1 + w * x for w, x in zip(p["weight"], u, strict=True))
    dot = lambda a: math.fsum(s * x for s, x in zip(a, u, strict=True))
    found = 0.0
    for r, weight in enumerate(p["weight"]):
        bent = math.tanh(dot(p["slope"][r]) + p["shift"][r])
        if drawn.formula == "smooth":
            found += weight * bent * math.cos(dot(p["turn"][r]) + p["phase"][r])
        else:
            found += weight * (bent + BEND * max(0.0, bent - p["knot"][r]) ** smoothness)
    return found
