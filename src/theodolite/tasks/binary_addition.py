"""The sum of two binary numbers."""

from __future__ import annotations

from torch import Tensor

from theodolite.tasks.contract import register
from theodolite.tasks.shared.positional import add
from theodolite.tasks.shared.two_numbers import TwoNumbers, in_all_together


@register("binary-addition", "sum of two binary numbers, least significant digit first")
class BinaryAddition(TwoNumbers):
    """The sum of two binary numbers, the least significant digit first, and an end token.

    1 1 0 + 1 1 # # # # # # #   (length = 6; ids: digits, sign = 2, marker = 3: 3 + 3 = 6; answers: digits, end $ = 2)
    · · · · · · 0 1 1 $ · · ·

    A context-sensitive task of Delétang et al. 2022; the law of the numbers is that of `TwoNumbers`.
    """

    def combined(self, first: Tensor, second: Tensor) -> Tensor:
        return add(first, second, base=2)

    def combined_integers(self, first: int, second: int) -> int:
        return first + second

    @staticmethod
    def expected(first: int, second: int) -> tuple[float, float]:
        """Counted over pairs of numbers from 0 on, `first` ≤ `second` digits; then those with a 0 are taken away.

        Below the highest place every digit of a sum is a fair coin, as the second number's is. The highest is the
        carry: (2^first)(2^first − 1)/2 pairs reach 2^second. A sum has as many digits as there are powers of two up
        to it, and the pairs below 2^k are a triangle up to k = `first`, and 2^first columns beyond.
        """
        p, q = 1 << first, 1 << second
        carried = p * (p - 1) // 2
        triangles = ((p * p - 1) // 3 + p - 1) // 2
        columns = p * (2 * q - p) - (second - first + 1) * carried
        (ones, digits), (more_ones, more_digits) = in_all_together(first), in_all_together(second)
        ones = p * q * second // 2 + carried - ones - more_ones
        digits = p * q * (second + 1) - triangles - columns - digits - more_digits
        pairs = (p - 1) * (q - 1)
        return ones / pairs, digits / pairs
