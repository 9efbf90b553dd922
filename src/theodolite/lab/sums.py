"""Sums without rounding: in whatever order and parts numbers are added, the same figure comes out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

_ENDS = (float, int, type(None))  # what the least and the most may be
_FINEST = 2200  # binary places: twice those of the smallest number there is, and some


class Sum:
    """Of numbers, as a whole multiple of 2^-places; how many, the least and the most of them.

    Examples:
        >>> found = Sum()
        >>> for value in (0.1, 1e17, 0.2, -1e17):
        ...     found.add(value)
        >>> found.total, found.mean, found.most
        (0.30000000000000004, 0.07500000000000001, 1e+17)
    """

    __slots__ = ("count", "least", "most", "places", "whole")

    def __init__(self) -> None:
        self.count = self.whole = self.places = 0
        self.least: float | None = None
        self.most: float | None = None

    def add(self, value: float) -> None:
        whole, below = value.as_integer_ratio()
        self._add(whole, below.bit_length() - 1)
        self.count += 1
        if self.least is None or value < self.least:
            self.least = value
        if self.most is None or value > self.most:
            self.most = value

    def add_square(self, value: float) -> None:
        """Of the square; least and most are then of no use."""
        whole, below = value.as_integer_ratio()
        self._add(whole * whole, 2 * (below.bit_length() - 1))
        self.count += 1

    def join(self, other: Sum) -> None:
        self._add(other.whole, other.places)
        self.count += other.count
        if self.least is None or (other.least is not None and other.least < self.least):
            self.least = other.least
        if self.most is None or (other.most is not None and other.most > self.most):
            self.most = other.most

    @property
    def total(self) -> float:
        """Rounded once."""
        return self.whole / (1 << self.places)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def to_json(self) -> list[Any]:
        return [self.count, f"{self.whole:x}", self.places, self.least, self.most]

    @classmethod
    def from_json(cls, given: Any) -> Sum:
        """ValueError for what is none."""
        made = cls()
        made.count, whole, made.places, made.least, made.most = given
        counts = type(made.count) is int is type(made.places) and made.count >= 0 <= made.places <= _FINEST
        if not counts or type(whole) is not str or type(made.least) not in _ENDS or type(made.most) not in _ENDS:
            raise ValueError("not a sum")
        made.whole = int(whole, 16)
        return made

    def _add(self, whole: int, places: int) -> None:
        if places > self.places:
            self.whole <<= places - self.places
            self.places = places
        self.whole += whole << (self.places - places)


class Spread:
    """Numbers with their mean and how far they lie from it."""

    __slots__ = ("squares", "values")

    def __init__(self) -> None:
        self.values, self.squares = Sum(), Sum()

    def add(self, value: float) -> None:
        self.values.add(value)
        self.squares.add_square(value)

    def join(self, other: Spread) -> None:
        self.values.join(other.values)
        self.squares.join(other.squares)

    @property
    def deviation(self) -> float:
        """The standard deviation of a sample, rounded at the end; 0 for one number."""
        n, sum_, squares = self.values.count, self.values, self.squares
        if n < 2:
            return 0.0
        above = (squares.whole * n << (2 * sum_.places)) - (sum_.whole**2 << squares.places)
        return math.sqrt(above / (n * (n - 1) << (squares.places + 2 * sum_.places)))

    def to_json(self) -> list[Any]:
        return [self.values.to_json(), self.squares.to_json()]

    @classmethod
    def from_json(cls, given: Any) -> Spread:
        made = cls()
        values, squares = given
        made.values, made.squares = Sum.from_json(values), Sum.from_json(squares)
        if made.values.count != made.squares.count:
            raise ValueError("not a spread")
        return made


def joined(sums: Iterable[Sum]) -> Sum:
    result = Sum()
    for one in sums:
        result.join(one)
    return result


def spread_of(spreads: Iterable[Spread]) -> Spread:
    result = Spread()
    for one in spreads:
        result.join(one)
    return result
