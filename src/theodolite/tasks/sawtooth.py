"""The tent map, folded over and over: few parameters for a deep net, very many for a shallow one."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register

# Uniform draws are multiples of 2⁻²⁴: at 16 folds every one of the 2¹⁶ pieces still holds 256 of them.
_MOST_FOLDS = 16


@register("sawtooth", "the tent map folded several times, on one real input")
class Sawtooth(Named):
    """The tent map x ↦ 1 − |1 − 2x| applied `folds` times to x uniform on [0, 1]: 2^folds linear pieces.

    0   ⅛   ¼   ⅜   ½   ⅝   ¾   ⅞   1   (folds = 2, read as nine inputs)
    0   ½   1   ½   0   ½   1   ½   0

    Telgarsky 2015, "Representation Benefits of Deep Feedforward Networks".
    """

    folds: int = 3

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, folds=self.folds)
        if self.folds > _MOST_FOLDS:
            raise BadInput(f"folds={self.folds} is finer than the draws of '{self.name}': use 1 to {_MOST_FOLDS}")

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("vector", 1, 1, None, None, loss="square", chance=0.0, solved=0.99)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        shape = (members, batch, 1)
        points = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float32)
        # A triangle wave of period 2 in 2^folds · x; every step is exact in float32.
        targets = 1.0 - ((points * 2.0**self.folds).remainder(2.0) - 1.0).abs()
        return Batch(points, targets, torch.ones_like(targets, dtype=torch.bool))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        (y,) = row
        for _ in range(self.folds):
            y = 2 * y if y < 0.5 else 2 - 2 * y
        return [y]
