"""The square root of a binary number, rounded down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch

from theodolite.tasks.contract import Batch, TaskSpec, check_length, register
from theodolite.tasks.shared.positional import draw_positive, square_root
from theodolite.tasks.shared.strings import Lengths, read_then_answer, string_spec


@register("square-root", "square root of a binary number, rounded down")
class SquareRoot(Lengths):
    """The square root of a number of `length` binary digits, rounded down; the most significant digit comes first.

    1 0 0 1 0 1 # # #   (length = 6; # is the marker: √37 = 6.08…)
    · · · · · · 1 1 0

    Numbers are uniform on 1 … 2^length − 1, roots have half as many digits, rounded up. The set-up of Delétang et al.
    2022, a context-sensitive task.
    """

    @property
    def spec(self) -> TaskSpec:
        ones = _share_of_ones(self.shortest, self.longest)
        return replace(string_spec(2, self.shortest, self.longest), chance=max(ones, 1 - ones))

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length = check_length(self, length)
        bits = torch.full((members, batch), length, device=generator.device)
        number = draw_positive(bits, length, generator)
        return read_then_answer(number.flip(-1), square_root(number).flip(-1), marker=2)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        length = row.index(2)
        root = math.isqrt(int("".join(str(int(digit)) for digit in row[:length]), base=2))
        return [0.0] * length + [float(digit) for digit in f"{root:b}".zfill(len(row) - length)]


@lru_cache(maxsize=256)
def _share_of_ones(shortest: int, longest: int) -> float:
    """Among the digits of the roots, averaged over the lengths."""
    shares = [_ones(length) / ((length + 1) // 2) for length in range(shortest, longest + 1)]
    return sum(shares) / len(shares)


def _ones(length: int) -> float:
    """How many ones a root has on average.

    Roots from a to b − 1 are those of the b² − a² numbers from a² on. Digit k is a one in every other run of 2^k
    roots: (2c + 1)·2^k ≤ root < (2c + 2)·2^k. Summed over the runs that are complete; a last one may be cut short.
    """
    numbers = 1 << length
    found = 0
    for digit in range((length + 1) // 2):
        runs = math.isqrt(numbers) >> (digit + 1)
        found += 4**digit * runs * (2 * runs + 1)
        found += max(0, numbers - ((2 * runs + 1) << digit) ** 2)
    return found / (numbers - 1)
