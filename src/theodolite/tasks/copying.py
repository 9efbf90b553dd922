"""Copy a string after having read it whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, TaskSpec, tasks


@tasks.register("copy")
@dataclass(frozen=True)
class Copy:
    """Repeat `length` symbols after a marker; only the second half is scored.

    b a c # # #   (symbols = 3, length = 3; # is the marker)
    · · · b a c
    """

    symbols: int = 8
    shortest: int = 1
    longest: int = 40

    name: ClassVar[str] = "copy"
    summary: ClassVar[str] = "repeat a string after reading it"
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.symbols < 2 or not 1 <= self.shortest <= self.longest:
            raise BadInput(f"copying needs 2 symbols or more and lengths 1 ≤ shortest ≤ longest, not {self}")

    @property
    def spec(self) -> TaskSpec:
        vocab = self.symbols + 1
        return TaskSpec(
            kind="sequence",
            features=vocab,
            outputs=self.symbols,
            vocab=vocab,
            lengths=(self.shortest, self.longest),
            loss="cross-entropy",
            chance=1 / self.symbols,
            solved=0.99,
        )

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length = self.longest if length is None else length
        shape = (members, batch, length)
        string = torch.randint(self.symbols, shape, generator=generator, device=generator.device)
        inputs = F.pad(string, (0, length), value=self.symbols)
        targets = F.pad(string, (length, 0))
        mask = F.pad(torch.ones_like(string, dtype=torch.bool), (length, 0))
        return Batch(inputs, targets, mask)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        string = [symbol for symbol in row if symbol != self.symbols]
        return [0.0] * len(string) + string
