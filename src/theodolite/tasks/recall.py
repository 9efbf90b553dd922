"""Multi-query associative recall: look up what stood beside each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, TaskSpec, check_at_least, check_length, check_training_lengths, tasks
from theodolite.tasks.permutation import permutations


@tasks.register("recall")
@dataclass(frozen=True)
class Recall:
    """`length` pairs of a key and a value, then every key once more, in random order; its value is the answer.

    c 2 a 0 b 2 a b c   (keys = 3, values = 3, length = 3; keys are ids 0 to 2, values 3 to 5)
    · · · · · · 0 2 2

    Keys differ, values are independent. After Arora et al. 2023, "Zoology".
    """

    keys: int = 64
    values: int = 64
    shortest: int = 1
    longest: int = 16

    name: ClassVar[str] = "recall"
    summary: ClassVar[str] = "the value that stood beside each key"
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, keys=self.keys)
        check_at_least(self.name, 2, values=self.values)
        check_training_lengths(self.name, self.shortest, self.longest)
        if self.longest > self.keys:
            raise BadInput(
                f"longest={self.longest} pairs need as many different keys in the task '{self.name}', "
                f"which has {self.keys}: use {self.keys} or less, or more keys"
            )

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec(
            kind="sequence",
            features=self.keys + self.values,
            outputs=self.values,
            vocab=self.keys + self.values,
            lengths=(self.shortest, self.longest),
            loss="cross-entropy",
            chance=1 / self.values,
            solved=0.99,
            limit=self.keys,
        )

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, device = check_length(self, length), generator.device
        keys = permutations((members, batch), self.keys, generator)[..., :length]
        values = torch.randint(self.values, (members, batch, length), generator=generator, device=device)
        asked = permutations((members, batch), length, generator)

        shape = (members, batch, 3 * length)
        inputs = torch.empty(shape, dtype=torch.int64, device=device)
        inputs[..., 0 : 2 * length : 2] = keys
        inputs[..., 1 : 2 * length : 2] = values + self.keys
        inputs[..., 2 * length :] = keys.gather(-1, asked)
        targets = torch.zeros(shape, dtype=torch.int64, device=device)
        targets[..., 2 * length :] = values.gather(-1, asked)
        mask = torch.zeros(shape, dtype=torch.bool, device=device)
        mask[..., 2 * length :] = True
        return Batch(inputs, targets, mask)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        pairs = 2 * (len(row) // 3)
        beside = {row[place]: row[place + 1] - self.keys for place in range(0, pairs, 2)}
        return [0.0] * pairs + [beside[key] for key in row[pairs:]]
