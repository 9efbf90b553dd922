"""The word problem of a finite group: the product of all elements read so far."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from theodolite.errors import BadInput
from theodolite.registry import unknown
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_length, register
from theodolite.tasks.shared.groups import multiply, permutation_group, prefix_products
from theodolite.tasks.shared.strings import check_training_lengths, token_spec
from theodolite.tasks.shared.tables import on_device


@register("word-problem", "the product of all elements of a group read so far")
class WordProblem(Named):
    """After every element of a group, the product of all elements so far.

    1 3 5 3   (group = S3; 0 to 5 are the orders 012 021 102 120 201 210 of three things)
    1 2 3 4

    `group` is Z2, Z3, … (cyclic), S2, …, S6 (symmetric) or A3, …, A6 (alternating). Its elements are numbered in
    lexicographic order, 0 the identity, and the first read is the first applied. With generators = all, every element
    is a letter; with two, the letters are a pair that generates the group, so that Z2 is the running parity. Word
    problems of solvable groups lie in ACC⁰; A5, the least that is not solvable, is complete for NC¹ (Barrington 1989).
    After Merrill, Petty and Sabharwal 2024, "The Illusion of State in State-Space Models".
    """

    group: str = "A5"
    generators: str = "all"
    shortest: int = 1
    longest: int = 20

    def __post_init__(self) -> None:
        permutation_group(self.group)
        if self.generators not in ("all", "two"):
            raise BadInput(f"for the task '{self.name}': {unknown('generators', self.generators, ('all', 'two'))}")
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        order = permutation_group(self.group).order
        letters = order if self.generators == "all" else 2
        chance = 1 / order if self.generators == "all" else _chance(self.group, self.shortest, self.longest)
        return token_spec(letters, order, (self.shortest, self.longest), chance=chance)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape, device = (members, batch, check_length(self, length)), generator.device
        group = permutation_group(self.group)
        if self.generators == "all":
            letters = elements = torch.randint(group.order, shape, generator=generator, device=device)
        else:
            first, second = group.letters
            letters = torch.randint(2, shape, generator=generator, device=device)
            elements = first + (second - first) * letters
        products = prefix_products(on_device(group.table, device), elements)
        return Batch(letters, products, torch.ones(shape, dtype=torch.bool, device=device))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        elements, letters = permutation_group(self.group).elements, permutation_group(self.group).letters
        product, targets = elements[0], []
        for token in row:
            letter = int(token) if self.generators == "all" else letters[int(token)]
            product = multiply(product, elements[letter])
            targets.append(float(elements.index(product)))
        return targets


@lru_cache(maxsize=256)
def _chance(name: str, shortest: int, longest: int) -> float:
    """Share of positions where the most frequent product stands: the exact law of the walk of two letters."""
    group = permutation_group(name)
    one, other = (group.table[:, letter] for letter in group.letters)
    law, met, shares = np.eye(group.order)[0], np.zeros(group.order), np.zeros(group.order)
    for length in range(1, longest + 1):
        moved = np.zeros(group.order)
        moved[one] += law / 2  # multiplication by a letter is one-to-one, so no place is named twice
        moved[other] += law / 2
        law = moved
        met += law
        if length >= shortest:
            shares += met / length
    return float(shares.max()) / (longest - shortest + 1)
