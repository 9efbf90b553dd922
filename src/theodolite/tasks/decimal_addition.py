"""The sum of two numbers, digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.positional import add, to_number
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, token_spec


@register("decimal-addition", "sum of two decimal numbers, least significant digit first")
class DecimalAddition(Named):
    """The sum of two numbers in base `base`, the least significant digit first, its last carry as a digit of its own.

    3 9 + 8 6 # # #   (base = 10, length = 5; ids: digits, sign = 10, marker = 11: 93 + 68 = 161)
    · · · · · 1 6 1

    `length` tokens are read: a number, a sign, and a number of as many digits, or one more where `length` is even;
    at lengths 1 and 2 the first number has no digit and is 0. All digits are uniform. After Dehghani et al. 2019,
    "Universal Transformers", whose two numbers are of independent lengths.
    """

    base: int = 10
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, base=self.base)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        chance = _share_of_zeros(self.base, self.shortest, self.longest)
        return token_spec(self.base + 2, self.base, (self.shortest, self.longest), chance=chance)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length = check_length(self, length)
        sign, marker = self.base, self.base + 1
        string = torch.randint(self.base, (members, batch, length), generator=generator, device=generator.device)
        at = (length - 1) // 2
        string[..., at] = sign
        carry_too = length // 2 + 1
        first = F.pad(string[..., :at], (0, carry_too - at))
        second = F.pad(string[..., at + 1 :], (0, 1))
        return read_then_answer(string, add(first, second, self.base), marker)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        length, sign = row.index(self.base + 1), row.index(self.base)
        rest = to_number(row[:sign], self.base) + to_number(row[sign + 1 : length], self.base)
        answer = []
        for _ in row[length:]:
            rest, digit = divmod(rest, self.base)
            answer.append(float(digit))
        return [0.0] * length + answer


@lru_cache(maxsize=256)
def _share_of_zeros(base: int, shortest: int, longest: int) -> float:
    """The best constant answer is 0: no digit is more frequent below the carry, and a carry is a 1 less than half
    the time. Two numbers of d digits add up to base^d or more in (base^d − 1) of 2 base^d cases; where the second has
    one more digit, that must be the highest for the carry to pass."""
    shares = []
    for length in range(shortest, longest + 1):
        digits = (length - 1) // 2
        carry = (1 - float(base) ** -digits) / 2
        if length % 2 == 0:
            carry /= base
        shares.append((length // 2 / base + 1 - carry) / (length // 2 + 1))
    return sum(shares) / len(shares)
