"""Write a string back in another order after having read it whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec


@dataclass(frozen=True)
class Rearrangement(Named, ABC):
    """A string of `length` symbols, each drawn alike, then as many markers as the answer is long; only they are scored.

    Every symbol of the alphabet stands as often in all answers together as any other.
    """

    symbols: int = 8
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, symbols=self.symbols)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return string_spec(self.symbols, self.shortest, self.longest)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape = (members, batch, check_length(self, length))
        string = torch.randint(self.symbols, shape, generator=generator, device=generator.device)
        return read_then_answer(string, self.rearranged(string), marker=self.symbols)

    @abstractmethod
    def rearranged(self, string: Tensor) -> Tensor:
        """The answer to each string, (…, symbol of the string) to (…, symbol of the answer)."""

    @abstractmethod
    def solve(self, row: Sequence[float]) -> Sequence[float]:
        """As in the contract of a task."""


@register("copy", "repeat a string after reading it")
class Copy(Rearrangement):
    """Repeat `length` symbols after a marker; only the second half is scored.

    b a c # # #   (symbols = 3, length = 3; # is the marker)
    · · · b a c
    """

    def rearranged(self, string: Tensor) -> Tensor:
        return string

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        string = [symbol for symbol in row if symbol != self.symbols]
        return [0.0] * len(string) + string


@register("reverse", "write a string backwards after reading it")
class Reverse(Rearrangement):
    """Write `length` symbols backwards after a marker; only the second half is scored.

    b a c # # #   (symbols = 3, length = 3; # is the marker)
    · · · c a b
    """

    def rearranged(self, string: Tensor) -> Tensor:
        return string.flip(-1)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        string = list(row[: row.index(self.symbols)])
        answer = []
        for _ in row[len(string) :]:
            answer.append(string.pop())
        return [0.0] * (len(row) - len(answer)) + answer


@register("duplicate", "write a string twice after reading it")
class Duplicate(Rearrangement):
    """Write `length` symbols twice after having read them.

    b a # # # #   (symbols = 2, length = 2; # is the marker)
    · · b a b a

    The set-up of Delétang et al. 2022, where it is a context-sensitive task on binary strings.
    """

    symbols: int = 2

    def rearranged(self, string: Tensor) -> Tensor:
        return torch.cat([string, string], dim=-1)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        length = len(row) // 3
        return [0.0] * length + [row[place % length] for place in range(2 * length)]


@register("odds-first", "write the symbols at odd places, then those at even ones")
class OddsFirst(Rearrangement):
    """Write the symbols at odd places, the first, the third and so on, then those at even ones.

    b b a b a # # # # #   (symbols = 2, length = 5; # is the marker)
    · · · · · b a a b b

    A context-sensitive task on binary strings in Delétang et al. 2022. Places count from 1, as in that paper's text;
    its published code counts them from 0.
    """

    symbols: int = 2

    def rearranged(self, string: Tensor) -> Tensor:
        return torch.cat([string[..., 0::2], string[..., 1::2]], dim=-1)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        odd, even = [], []
        for place, symbol in enumerate(row[: row.index(self.symbols)], start=1):
            (odd if place % 2 == 1 else even).append(symbol)
        return [0.0] * (len(odd) + len(even)) + odd + even


@register("bucket-sort", "write the symbols of a string in alphabetical order")
class BucketSort(Rearrangement):
    """Write the symbols in alphabetical order.

    b a c a # # # #   (symbols = 3, length = 4; # is the marker)
    · · · · a a b c

    The set-up of Delétang et al. 2022, where it is a context-sensitive task on five symbols.
    """

    symbols: int = 5

    def rearranged(self, string: Tensor) -> Tensor:
        # Place i holds the symbol before which at most i of the string's come: counting is faster than comparing.
        counts = torch.zeros((*string.shape[:-1], self.symbols), dtype=torch.int64, device=string.device)
        counts.scatter_add_(-1, string, torch.ones_like(string))
        places = torch.arange(string.shape[-1], device=string.device).expand_as(string).contiguous()
        return torch.searchsorted(counts.cumsum(dim=-1), places, right=True)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        string = row[: row.index(self.symbols)]
        return [0.0] * len(string) + sorted(string)
