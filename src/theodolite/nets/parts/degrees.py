"""The degrees of a net's blocks, and how many square matrices a block of degree d is given."""

from __future__ import annotations

import math
from collections.abc import Sequence

from theodolite.errors import BadInput
from theodolite.nets.contract import choice, number_list, positive
from theodolite.theory.degree import COUNTS

Degrees = Sequence[int | float] | str
"""One degree per block: a list, or the text `3,2`. What is not whole is refused with a sentence, not by its type."""


def block_degrees(degree: int, depth: int, degrees: Degrees | None) -> tuple[int, ...]:
    """One degree per block, the first block first: `degrees`, or `depth` times `degree` where there are none."""
    if degrees is None:
        return (degree,) * depth
    found = number_list("degrees", degrees)
    for each in found:
        at_least_two(each)
    return tuple(int(each) for each in found)


def at_least_two(degree: int | float) -> None:
    """Refuse what is no degree of a polynomial block."""
    if isinstance(degree, float) and not degree.is_integer():
        raise BadInput(f"a block of degree {degree:g} is not polynomial: use a whole degree of at least 2")
    positive(degree=int(degree) if isinstance(degree, float) else degree)
    if degree < 2:
        raise BadInput(f"degree {degree:g} makes a linear net of separation rank at most 2: use a degree of at least 2")


def known_count(matrices: str) -> None:
    """Refuse a count of matrices per block that is none of the three."""
    choice("matrices", matrices, COUNTS)


def total_degree(degrees: Sequence[int]) -> int:
    """Degree of the whole: blocks are composed, so their degrees multiply."""
    return math.prod(degrees)
