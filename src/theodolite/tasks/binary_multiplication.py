"""The product of two binary numbers."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from theodolite.tasks.contract import register
from theodolite.tasks.shared.positional import count_digits, multiply, unpack
from theodolite.tasks.shared.two_numbers import TwoNumbers

_COUNTED = 16  # digits of two numbers whose products are all looked at
_NODES = 12  # digits of the shorter number below which all its values are taken
_NEGLIGIBLE = 64  # places from the top, below which a digit is a fair coin in double precision


@register("binary-multiplication", "product of two binary numbers, least significant digit first")
class BinaryMultiplication(TwoNumbers):
    """The product of two binary numbers, the least significant digit first, and an end token.

    1 1 0 × 1 1 # # # # # # #   (length = 6; ids: digits, sign = 2, marker = 3: 3 · 3 = 9; answers: digits, end $ = 2)
    · · · · · · 1 0 0 1 $ · ·

    A context-sensitive task of Delétang et al. 2022; the law of the numbers is that of `TwoNumbers`.
    """

    def combined(self, first: Tensor, second: Tensor) -> Tensor:
        return multiply(first, second)

    def combined_integers(self, first: int, second: int) -> int:
        return first * second

    @staticmethod
    def expected(first: int, second: int) -> tuple[float, float]:
        """Counted up to 16 digits together. Beyond, nobody knows a formula for the upper digits of products, so
        they are taken as if the longer number were uniform on the reals: wrong by less than a hundredth of a digit."""
        if first + second <= _COUNTED:
            return _counted(first, second)
        # Place k < second of a product is a fair coin if the shorter number has a one there or below, of which the
        # chance is 1 − 2^−(k + 1), and 1 − 2^−first at most.
        lower = (second - (1 - 0.5**first) - (second - first) * 0.5**first) / 2
        neither_zero = (1 - 0.5**first) * (1 - 0.5**second)
        return (lower + _upper_ones(first)) / neither_zero, first + second - _missing_digits(min(first, _NODES))


@cache
def _counted(first: int, second: int) -> tuple[float, float]:
    products = torch.arange(1, 1 << first)[:, None] * torch.arange(1, 1 << second)
    ones, digits = (table[products].double().mean() for table in _tables())
    return float(ones), float(digits)


@cache
def _tables() -> tuple[Tensor, Tensor]:
    """Ones and digits of every number that is looked at."""
    digits = unpack(torch.arange(1 << _COUNTED), _COUNTED)
    return digits.sum(dim=-1), count_digits(digits)


def _fractions(bits: int) -> Tensor:
    """The shorter number over 2^bits: all values it takes from 1 on, or the middles of as many intervals as are taken
    of a longer one."""
    values = torch.arange(1 << bits, dtype=torch.float64)
    return values[1:] / (1 << bits) if bits < _NODES else (values + 0.5) / (1 << bits)


@cache
def _upper_ones(first: int) -> float:
    """In as many of the highest places as the shorter number has digits."""
    computed = min(first, _NEGLIGIBLE)
    return sum(_one_from_the_top(min(first, _NODES), place + 1) for place in range(computed)) + (first - computed) / 2


@cache
def _one_from_the_top(bits: int, place: int) -> float:
    """How likely the product of the shorter number, 0 among its values, and a uniform real has a one at this place,
    counted from 1 at the highest: on [0, x] the whole part is odd on a share of ⌊x/2⌋ + max(0, x mod 2 − 1) over x."""
    x = _fractions(bits) * 2.0**place
    odd = (x / 2).floor() + (x.remainder(2) - 1).clamp(min=0)
    return float((odd / x).sum()) / (1 << bits)


@cache
def _missing_digits(bits: int) -> float:
    """How many zeros such a product starts with: as many as there are powers of ½ above it."""
    powers = 0.5 ** torch.arange(1, _NEGLIGIBLE, dtype=torch.float64)
    return float((powers[:, None] / _fractions(bits)).clamp(max=1).mean(dim=1).sum())
