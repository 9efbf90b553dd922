"""Copy a string after having read it whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from theodolite.tasks.contract import Batch, TaskSpec, check_at_least, check_length, check_training_lengths, tasks
from theodolite.tasks.strings import read_then_answer, string_spec


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
        check_at_least(self.name, 2, symbols=self.symbols)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return string_spec(self.symbols, self.shortest, self.longest)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape = (members, batch, check_length(self, length))
        string = torch.randint(self.symbols, shape, generator=generator, device=generator.device)
        return read_then_answer(string, string, marker=self.symbols)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        string = [symbol for symbol in row if symbol != self.symbols]
        return [0.0] * len(string) + string
