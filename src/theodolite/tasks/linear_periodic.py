"""A periodic function of one direction."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import torch

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register


@register("linear-periodic", "cosine along one direction of a Gaussian input")
class LinearPeriodic(Named):
    """cos(2π · frequency · ⟨u, x⟩) for x ~ N(0, I) and the unit vector u of equal entries.

    0.3 −1.2 0.8 0.5   (dimensions = 4, frequency = 0.5; ⟨u, x⟩ = 0.2)
     └────┴───┴───┴─→ cos(0.2 π) = 0.81
    """

    dimensions: int = 10
    frequency: float = 0.5

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, dimensions=self.dimensions)
        if not 0 < self.frequency < math.inf:
            raise BadInput(f"frequency={self.frequency} makes no wave in the task '{self.name}': use one above 0")

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("vector", self.dimensions, 1, None, None, loss="square", chance=0.0, solved=0.99)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        shape = (members, batch, self.dimensions)
        points = torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float32)
        # In double precision: at a high frequency the phase is a large number of which the last digits matter.
        along = points.sum(dim=-1, keepdim=True, dtype=torch.float64)
        targets = (along * (2 * math.pi * self.frequency / math.sqrt(self.dimensions))).cos().float()
        return Batch(points, targets, torch.ones_like(targets, dtype=torch.bool))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        wave = 1 + 0j
        for x in row:
            wave *= cmath.exp(2j * math.pi * self.frequency * x / math.sqrt(len(row)))
        return [wave.real]
