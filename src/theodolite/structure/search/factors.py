"""Products, also of targets that change sign, which no logarithm turns into sums: f = g·h with g and h of different
variables. The matrix of the surrogate's values at all pairs of some x_S with some rows of the others then has rank 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from theodolite.structure.search.summands import Group
from theodolite.structure.surrogate.surrogate import SurrogateSource

ROWS = 24  # on each side of a matrix
BESIDE = (0.03, 0.1)  # of what a group changes: what may lie outside rank 1, for what a surrogate errs


def find_factors(source: SurrogateSource, used: Sequence[int], generator: np.random.Generator) -> list[list[Group]]:
    """The variables, and pairs, that enter as factors of their own, and what is left together: strictly read, and less
    so where that differs. Empty where there are none."""
    alone = _all_beside(source, used, 1, generator)
    found: list[list[Group]] = []
    for allowed in BESIDE:
        left, factors = _taken(alone, list(used), allowed)
        if len(left) > 3:
            left, pairs = _taken(_all_beside(source, left, 2, generator), left, allowed)
            factors += pairs
        terms = sorted([*factors, frozenset(left)], key=sorted)
        if factors and terms not in found:
            found.append(terms)
    return found


Shares = dict[tuple[int, ...], float]


def _taken(shares: Shares, left: list[int], allowed: float) -> tuple[list[int], list[Group]]:
    """Groups of disjoint variables, the surest first, as long as something is left."""
    found = []
    for group in sorted((group for group, share in shares.items() if share < allowed), key=shares.__getitem__):
        if set(group) < set(left):
            found.append(frozenset(group))
            left = [index for index in left if index not in group]
    return left, found


def _all_beside(source: SurrogateSource, used: Sequence[int], size: int, generator: np.random.Generator) -> Shares:
    return {group: _beside(source, group, generator) for group in combinations(used, size)} if size < len(used) else {}


def _beside(source: SurrogateSource, group: Sequence[int], generator: np.random.Generator) -> float:
    """The squares outside the first singular vectors, over those by which the group changes the values."""
    mine, others = source.points(ROWS, generator), source.points(ROWS, generator)
    points = np.repeat(others[None], ROWS, axis=0)
    points[:, :, list(group)] = mine[:, None, list(group)]
    values = source.values(points.reshape(-1, others.shape[1])).reshape(ROWS, ROWS)
    changed = float(np.sum((values - values.mean(0)) ** 2))
    return float(np.sum(np.linalg.svd(values, compute_uv=False)[1:] ** 2) / changed) if changed > 0 else 1.0
