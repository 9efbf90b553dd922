"""The tent map as a recurrence: the same two ReLUs over and over, whatever the number of folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.tasks.contract import Task
from theodolite.tasks.sawtooth import Sawtooth
from theodolite.theory.sawtooth import RECURRENT_PARAMETERS
from theodolite.witness.contract import Witness, constructs
from theodolite.witness.pieces import Affine, exact_affine


class RecurrentTent(nn.Module):
    """y ← out · relu(into · y), `folds` times, from the input on; nothing else enters."""

    def __init__(self, folds: int) -> None:
        super().__init__()
        self.folds = folds
        self.into, self.out = (nn.Linear(*sizes, device="meta").to_empty(device="cpu") for sizes in ((1, 2), (2, 1)))
        for parameter, values in (
            (self.into.weight, [[1.0], [1.0]]),
            (self.into.bias, [0.0, -0.5]),
            (self.out.weight, [[2.0, -4.0]]),
            (self.out.bias, [0.0]),
        ):
            parameter.data = torch.tensor(values, dtype=torch.float64)

    def forward(self, x: Float[Tensor, "batch 1"]) -> Float[Tensor, "batch 1"]:
        for _ in range(self.folds):
            x = self.out(torch.relu(self.into(x)))
        return x

    def unrolled(self) -> list[Affine]:
        """The same as a feed-forward network: between two folds the maps out and in are one."""
        first, last = exact_affine(self.into), exact_affine(self.out)
        (row,), (constant,) = last
        weights, biases = first
        joined = (
            [[w * v for v in row] for (w,) in weights],
            [w * constant + b for (w,), b in zip(weights, biases, strict=True)],
        )
        return [first, *[joined] * (self.folds - 1), last]


@constructs("recurrent-tent")
def recurrent_tent(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    if not isinstance(task, Sawtooth) or shape:
        return None
    return Witness(
        name="the tent map, the same two ReLUs at every step",
        module=RecurrentTent(vars(task)["folds"]),
        source="Telgarsky 2015; constant size as a recurrence",
        units=2,
        depth=1,
        predicted={"parameters": RECURRENT_PARAMETERS, "units": 2, "depth": 1},
    )
