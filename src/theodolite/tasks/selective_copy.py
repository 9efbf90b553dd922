"""Copying what is not blank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.permutation import permutations
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec


@register("selective-copy", "the symbols of a string again, without the blanks between them")
class SelectiveCopy(Named):
    """`length` symbols among `blanks` times as many blanks; then the symbols alone, in order, one at each marker.

    _ b _ _ a c _ _ _ # # #   (symbols = 3, blanks = 2, length = 3; _ is the blank, # the marker)
    · · · · · · · · · b a c

    Symbols are the first ids, then the marker, then the blank; every placing is equally likely. After Gu and Dao 2023,
    "Mamba", and Poli et al. 2024, where the number of symbols is fixed and that of blanks grows with the length.
    """

    symbols: int = 8
    blanks: int = 3
    shortest: int = 1
    longest: int = 16

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, symbols=self.symbols)
        check_at_least(self.name, 1, blanks=self.blanks)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        tokens = self.symbols + 2
        return replace(string_spec(self.symbols, self.shortest, self.longest), features=tokens, vocab=tokens)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, rows = check_length(self, length), (members, batch)
        symbols = torch.randint(self.symbols, (*rows, length), generator=generator, device=generator.device)
        copied = permutations(rows, length * (1 + self.blanks), generator) < length
        number = (copied.cumsum(dim=-1) - 1).clamp(min=0)
        string = torch.where(copied, symbols.gather(-1, number), self.symbols + 1)
        return read_then_answer(string, symbols, marker=self.symbols)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        symbols = [token for token in row if token < self.symbols]
        return [0.0] * (len(row) - len(symbols)) + symbols
