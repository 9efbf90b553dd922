"""Two binary numbers with a sign between them: what the tasks that combine them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.tasks.contract import Batch, TaskSpec, check_length
from theodolite.tasks.shared.positional import count_digits, draw_positive, to_digits, to_number
from theodolite.tasks.shared.strings import Lengths, token_spec

SIGN, MARKER = 2, 3  # tokens that follow the two digits
END = 2  # an answer that follows the two digits


@dataclass(frozen=True)
class TwoNumbers(Lengths, ABC):
    """`length` tokens are read: a number, a sign, a number, both with the least significant digit first.

    The set-up of Delétang et al. 2022. How many of the `length` − 1 digits the first number has is uniform; a number of
    d digits is uniform on 1 … 2^d − 1, so that its last digits may be zeros. The answer leaves such zeros out and ends
    with an end token; nothing after it is scored. Lengths 1 and 2 have no room for two numbers: the only one is the
    answer.
    """

    @property
    def spec(self) -> TaskSpec:
        chance = _best_constant(type(self), self.shortest, self.longest)
        return token_spec(4, 3, (self.shortest, self.longest), chance=chance)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, device = check_length(self, length), generator.device
        if length <= 2:
            string = draw_positive(torch.full((members, batch), length, device=device), length, generator)
            result = F.pad(string, (0, 1))
        else:
            bits = torch.randint(1, length - 1, (members, batch), generator=generator, device=device)
            first = draw_positive(bits, length + 1, generator)
            second = draw_positive(length - 1 - bits, length + 1, generator)
            string = _around_a_sign(first, bits[..., None], second)[..., :length]
            result = self.combined(first, second)
        return _read_then_answer_up_to_the_end(string, result)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        length = row.index(MARKER)
        if SIGN in row:
            sign = row.index(SIGN)
            result = self.combined_integers(to_number(row[:sign], 2), to_number(row[sign + 1 : length], 2))
        else:
            result = to_number(row[:length], 2)
        answer = [*to_digits(result, 2), END]
        return [0.0] * length + [float(token) for token in answer] + [0.0] * (len(row) - length - len(answer))

    @abstractmethod
    def combined(self, first: Tensor, second: Tensor) -> Tensor:
        """The result in as many places as each number is written in, which are enough for it."""

    @abstractmethod
    def combined_integers(self, first: int, second: int) -> int:
        """The same for Python integers."""

    @staticmethod
    @abstractmethod
    def expected(first: int, second: int) -> tuple[float, float]:
        """How many ones, and how many digits, the result of numbers of so many digits has on average."""


def _around_a_sign(first: Tensor, bits: Tensor, second: Tensor) -> Tensor:
    """The first `bits` digits of one number, the sign, the digits of the other; cut to the width of both."""
    places = torch.arange(first.shape[-1], device=first.device)
    shifted = second.gather(-1, (places - bits - 1).clamp(min=0))
    return torch.where(places < bits, first, shifted).masked_fill_(places == bits, SIGN)


def _read_then_answer_up_to_the_end(string: Tensor, result: Tensor) -> Batch:
    length = string.shape[-1]
    places = torch.arange(-length, result.shape[-1], device=string.device)  # of the answer, whose first is 0
    digits = count_digits(result)[..., None]
    inputs = F.pad(string, (0, result.shape[-1]), value=MARKER)
    targets = F.pad(result, (length, 0)).masked_fill_(places == digits, END)
    return Batch(inputs, targets, (places >= 0) & (places <= digits))


@lru_cache(maxsize=256)
def _best_constant(task: type[TwoNumbers], shortest: int, longest: int) -> float:
    """The share of scored positions at which the most frequent of zero, one and end stands, averaged over lengths."""
    shares = [0.0, 0.0, 0.0]
    for length in range(shortest, longest + 1):
        ones, digits = _alone(length) if length <= 2 else _mean_over_splits(task, length)
        for token, count in enumerate((digits - ones, ones, 1.0)):
            shares[token] += count / (digits + 1)
    return max(shares) / (longest - shortest + 1)


def _alone(bits: int) -> tuple[float, float]:
    numbers = (1 << bits) - 1
    ones, digits = in_all_together(bits)
    return ones / numbers, digits / numbers


def in_all_together(bits: int) -> tuple[int, int]:
    """Ones and digits of all numbers below 2^bits; 0 has none."""
    return bits << (bits - 1), ((bits - 1) << bits) + 1


def _mean_over_splits(task: type[TwoNumbers], length: int) -> tuple[float, float]:
    both = length - 1
    found = [task.expected(shorter, both - shorter) for shorter in range(1, both // 2 + 1)]
    found += found[: (both - 1) // 2]  # the other way round; halves are there once
    return sum(ones for ones, _ in found) / len(found), sum(digits for _, digits in found) / len(found)
