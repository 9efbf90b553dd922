"""Finite groups of permutations: their elements, their multiplication table, and products of every prefix."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from theodolite.errors import BadInput

Permutation = tuple[int, ...]

MOST_ELEMENTS = 1024
MOST_POINTS = 6


@dataclass(frozen=True)
class Group:
    """`elements` in lexicographic order, so the identity is the first; `letters` are two that generate the group.

    For Sn these are (0 1) and the cycle of all points; for An (0 1 2) and the longest cycle of even sign; for Zn, and
    wherever those two are the same, the identity and one generator.
    """

    name: str
    elements: tuple[Permutation, ...]
    letters: tuple[int, int]

    @property
    def order(self) -> int:
        return len(self.elements)

    @cached_property
    def table(self) -> np.ndarray:
        """(order, order) int64: which element the product of two is."""
        points = np.array(self.elements)
        if self.name.startswith("Z"):
            table = np.add.outer(points[:, 0], points[:, 0]) % self.order
        else:
            # Read as digits, permutations of up to six points are numbers in the same order.
            weights = points.shape[1] ** np.arange(points.shape[1])[::-1]
            products = points[:, points].swapaxes(0, 1)  # [i, j] is j after i
            table = np.searchsorted(points @ weights, products @ weights)
        return table.astype(np.int64)


def multiply(first: Permutation, then: Permutation) -> Permutation:
    """The permutation that applies one and then the other."""
    return tuple(then[point] for point in first)


@lru_cache(maxsize=32)
def permutation_group(name: str) -> Group:
    """The cyclic group Zn, the symmetric group Sn or the alternating group An by its name."""
    found = re.fullmatch(r"([ZSA])([1-9]\d{0,3})", name)
    kind, size = (found[1], int(found[2])) if found else ("", 0)
    if not (2 <= size <= MOST_ELEMENTS if kind == "Z" else (3 if kind == "A" else 2) <= size <= MOST_POINTS):
        raise BadInput(
            f"'{name}' names no group known here: use Z2 to Z{MOST_ELEMENTS} (cyclic), S2 to S{MOST_POINTS} "
            f"(symmetric) or A3 to A{MOST_POINTS} (alternating)"
        )
    identity = tuple(range(size))
    if kind == "Z":
        elements = tuple(identity[step:] + identity[:step] for step in range(size))
        return Group(name, elements, (0, 1))
    if kind == "S":
        elements = tuple(permutations(identity))
        letters = [_cycle(size, (0, 1)), _cycle(size, identity)]
    else:
        elements = tuple(p for p in permutations(identity) if _even(p))
        letters = [_cycle(size, (0, 1, 2)), _cycle(size, identity if size % 2 else identity[1:])]
    if letters[0] == letters[1]:
        letters[0] = identity
    return Group(name, elements, (elements.index(letters[0]), elements.index(letters[1])))


def prefix_products(table: Tensor, elements: Tensor) -> Tensor:
    """(…, token) → (…, token): the product of all elements up to each, by a scan of log2(tokens) look-ups."""
    order, reach = table.shape[0], 1
    flat = table.flatten()
    while reach < elements.shape[-1]:
        joined = flat[elements[..., :-reach] * order + elements[..., reach:]]
        elements = torch.cat([elements[..., :reach], joined], dim=-1)
        reach *= 2
    return elements


def _cycle(size: int, points: Iterable[int]) -> Permutation:
    """Each of these points goes to the next, the last to the first."""
    listed = list(points)
    image = list(range(size))
    for point, after in zip(listed, listed[1:] + listed[:1], strict=True):
        image[point] = after
    return tuple(image)


def _even(permutation: Permutation) -> bool:
    inversions = sum(a > b for i, a in enumerate(permutation) for b in permutation[i + 1 :])
    return inversions % 2 == 0
