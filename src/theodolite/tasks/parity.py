"""Parity of a fixed subset of ±1 bits."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register


@register("parity", "product of a fixed subset of ±1 bits")
class Parity(Named):
    """The product of the first `relevant` of `bits` signs.

    +1 −1 −1 +1 +1 −1   (bits = 6, relevant = 3)
     └──┴──┴─→ +1
    """

    bits: int = 10
    relevant: int = 5

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, bits=self.bits)
        if not 1 <= self.relevant <= self.bits:
            raise BadInput(f"{self.relevant} relevant bits do not fit into {self.bits}: use 1 to {self.bits}")

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("vector", self.bits, 1, None, None, loss="hinge", chance=0.5, solved=0.99)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        shape = (members, batch, self.bits)
        signs = 2 * torch.randint(2, shape, generator=generator, device=generator.device, dtype=torch.float32) - 1
        targets = signs[..., : self.relevant].prod(dim=-1, keepdim=True)
        return Batch(signs, targets, torch.ones_like(targets, dtype=torch.bool))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        negative = sum(1 for sign in row[: self.relevant] if sign < 0)
        return [-1.0 if negative % 2 else 1.0]
