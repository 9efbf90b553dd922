"""Majority of ±1 bits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register


@register("majority", "the more frequent of two signs")
class Majority(Named):
    """The sign of the sum of `bits` signs, + where they balance.

    +1 −1 −1 +1 −1   (bits = 5)
     └──┴──┴──┴──┴─→ −1
    """

    bits: int = 15

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, bits=self.bits)

    @property
    def spec(self) -> TaskSpec:
        # Ties go to +1, so half of their probability binom(n, n/2) / 2ⁿ is what + has more than 1/2.
        ties = 0.0 if self.bits % 2 else math.comb(self.bits, self.bits // 2) / 2**self.bits
        return TaskSpec("vector", self.bits, 1, None, None, loss="hinge", chance=0.5 + ties / 2, solved=0.99)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        shape = (members, batch, self.bits)
        signs = 2 * torch.randint(2, shape, generator=generator, device=generator.device, dtype=torch.float32) - 1
        targets = torch.where(signs.sum(dim=-1, keepdim=True) >= 0, 1.0, -1.0).float()
        return Batch(signs, targets, torch.ones_like(targets, dtype=torch.bool))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        ordered = sorted(row)
        return [ordered[len(ordered) // 2]]
