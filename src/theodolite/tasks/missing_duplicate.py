"""Find the one symbol that is hidden in a string written twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec


@register("missing-duplicate", "the symbol hidden in a string that is written twice")
class MissingDuplicate(Named):
    """A string written twice with one symbol hidden; said at the marker is which.

    b a a b ? a _ #   (symbols = 2, length = 7; ids: symbols, hidden = 2, blank = 3, marker = 4)
    · · · · · · · a

    `length` symbols are read: half as many, rounded down, drawn alike and written twice, and a blank where `length`
    is odd. Which of the two writings hides a symbol, and where, is drawn alike too. At length 1, where there is nothing
    to write twice, one symbol is read and is the answer. The set-up of Delétang et al. 2022, who count it as
    context-sensitive; but the hidden symbol is the one that is left an odd number of times.
    """

    symbols: int = 2
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, symbols=self.symbols)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        plain = string_spec(self.symbols, self.shortest, self.longest)
        return replace(plain, features=self.symbols + 3, vocab=self.symbols + 3)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, device = check_length(self, length), generator.device
        hidden, blank, marker = range(self.symbols, self.symbols + 3)
        shape = (members, batch, max(1, length // 2))
        string = torch.randint(self.symbols, shape, generator=generator, device=device)
        if length == 1:
            return read_then_answer(string, string, marker)
        twice = torch.cat([string, string], dim=-1)
        place = torch.randint(twice.shape[-1], (members, batch, 1), generator=generator, device=device)
        answer = twice.gather(-1, place)
        shown = F.pad(twice.scatter(-1, place, hidden), (0, length % 2), value=blank)
        return read_then_answer(shown, answer, marker)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        shown = [token for token in row if token <= self.symbols]
        if len(shown) == 1:
            (answer,) = shown
        else:
            first, second = shown[: len(shown) // 2], shown[len(shown) // 2 :]
            (answer,) = (min(one, two) for one, two in zip(first, second, strict=True) if one != two)
        return [0.0] * (len(row) - 1) + [answer]
