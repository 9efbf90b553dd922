"""Holding a whole string, so that any of its symbols can be told."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.recall import then_ask
from theodolite.tasks.shared.permutation import permutations
from theodolite.tasks.shared.strings import check_training_lengths, token_spec


@register("compression", "the symbol at each place of a string, asked in random order")
class Compression(Named):
    """A string of `length` symbols, then the numbers of its places in random order: at each, the symbol there.

    b a c 2 0 1   (symbols = 3, length = 3; places are counted from 0, their ids follow those of the symbols)
    · · · c b a

    When the questions begin, whatever a net carries from token to token must hold all of the string. After Poli et al.
    2024, "Mechanistic design and scaling of hybrid architectures", where the last token alone is handed to a decoder
    that is given the places: that binds every net, whereas here attention may look back instead. `positions` is how
    many places have an id, so the longest string there is.
    """

    symbols: int = 16
    positions: int = 64
    shortest: int = 1
    longest: int = 32

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, symbols=self.symbols)
        check_at_least(self.name, 1, positions=self.positions)
        check_training_lengths(self.name, self.shortest, self.longest)
        if self.longest > self.positions:
            raise BadInput(
                f"longest={self.longest} is above positions={self.positions} in the task '{self.name}': "
                f"use {self.positions} or less, or more positions"
            )

    @property
    def spec(self) -> TaskSpec:
        vocab, lengths = self.symbols + self.positions, (self.shortest, self.longest)
        return token_spec(vocab, self.symbols, lengths, chance=1 / self.symbols, limit=self.positions)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, rows = check_length(self, length), (members, batch)
        string = torch.randint(self.symbols, (*rows, length), generator=generator, device=generator.device)
        places = permutations(rows, length, generator)
        return then_ask(string, places + self.symbols, string.gather(-1, places))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        length = len(row) // 2
        return [0.0] * length + [row[int(place) - self.symbols] for place in row[length:]]
