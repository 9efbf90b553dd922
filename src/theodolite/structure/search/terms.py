"""A sum of terms that share variables: g(1, 2) + h(2, 3) + k(1, 3). Every ratio of slopes is entangled there, but mixed
differences over variables of no common term vanish."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from theodolite.structure.data.source import GradientSource
from theodolite.structure.surrogate.evidence import Evidence

MOST_TERMS = 64  # beyond that the function is called dense
MOST_ORDER = 6  # of a mixed difference: 2^(order - 1) gradients at each point
POINTS = 24


def additive_terms(
    evidence: Evidence,
    source: GradientSource,
    generator: np.random.Generator,
    members: Sequence[int],
    level: float,
    floor: float = 0.0,
) -> list[frozenset[int]] | None:
    """The largest sets of members that work together, where there is more than one such set."""
    import networkx

    interacting = evidence.interacting(level, floor)
    graph = networkx.Graph()
    graph.add_nodes_from(members)
    graph.add_edges_from((i, j) for i, j in combinations(members, 2) if interacting[i, j])
    waiting = []
    for clique in networkx.find_cliques(graph):
        waiting.append(frozenset(clique))
        if len(waiting) > MOST_TERMS:
            return None
    found: set[frozenset[int]] = set()
    while waiting:
        term = max(waiting, key=lambda t: (len(t), sorted(t)))
        waiting.remove(term)
        if any(term <= other for other in found):
            continue
        if 2 < len(term) <= MOST_ORDER and not _work_together(source, generator, sorted(term), level):
            waiting.extend(frozenset(some) for some in combinations(sorted(term), len(term) - 1))
        else:
            found.add(term)
        if len(found) > MOST_TERMS:
            return None
    return sorted(found, key=sorted) if len(found) > 1 else None


def _work_together(source: GradientSource, generator: np.random.Generator, term: list[int], level: float) -> bool:
    """Whether the mixed difference of f over all of the term is not zero: ∂_i f under finite changes of the others."""
    here, there = source.points(POINTS, generator), source.points(POINTS, generator)
    first, *others = term
    total, variance = np.zeros(POINTS), np.zeros(POINTS)
    for moved in product((False, True), repeat=len(others)):
        points = here.copy()
        columns = [variable for variable, yes in zip(others, moved, strict=True) if yes]
        points[:, columns] = there[:, columns]
        slopes = source.gradients(points)
        total += (-1) ** len(columns) * slopes.value[:, first]
        variance += slopes.error[:, first] ** 2
    ratios = np.sort(np.abs(total) / np.sqrt(np.maximum(variance, np.finfo(float).tiny)))
    return bool(ratios[-2] > _bar(level))


def _bar(level: float) -> float:
    from scipy import stats

    return float(stats.norm.isf(stats.beta.ppf(level, 2, POINTS - 1) / 2))
