"""How surely every two variables interact: in what a surrogate says of unseen rows and, for those that a sum of terms
puts apart, in what the network of that sum leaves over.

A surrogate misses more than a weak interaction carries. The network of the terms that are sure misses less, and knows
nothing of the pairs that it puts apart, so that all of theirs is in what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy import stats

from theodolite.graphs import CompositionalGraph
from theodolite.structure.data.source import Array
from theodolite.structure.fit.confirm import Confirmation
from theodolite.structure.fit.dependence import dependence, polynomials, products
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.fitting import Fitted, fit
from theodolite.structure.result import Found
from theodolite.structure.search.interactions import measure_interactions, sure_terms
from theodolite.structure.search.summands import summands_graph
from theodolite.structure.surrogate.surrogate import fit_surrogate

Pairs = dict[tuple[str, str], float]
EFFORT = Effort(folds=3, restarts=3, descent=200, polish=60, products=5e11, width=8, dense_width=None)
DEPTH = 2  # of its constituents: with one layer three variables leave four times as much
SUREST = 37.0  # z of the least p-value that is a number apart from 0


def pair_scores(x: Array, y: Array, variables: Sequence[str], generator: np.random.Generator) -> Pairs:
    """z of every pair of variables, about standard normal for one that does not interact: of their joint effect on rows
    that the surrogate has not seen (`effects.py` has the formula), and of what the sum of the sure terms leaves over,
    where its network misses less than the surrogate."""
    source = fit_surrogate(x, y, variables, generator)
    interactions = measure_interactions(source, generator)
    scores, terms = interactions.scores(), sure_terms(interactions)
    if len(terms) < 2:
        return scores
    fitted = fit(summands_graph(source.variables, terms, "sum"), x, y, generator, effort=EFFORT, depth=DEPTH)
    return scores if fitted.validation_error >= 1 - source.r2 else with_left_over(scores, fitted, x, y)


def pairs_of(found: Found, asked: Confirmation, x: Array, y: Array) -> Mapping[tuple[str, str], float]:
    """The scores of a graph that was found in a table; of one that is claimed, by what its network leaves over, too."""
    if asked.chosen is None or found.graph != asked.chosen.graph:
        return found.pairs
    own = next((trial.fitted for trial in asked.trials if trial.found.graph == found.graph), None)
    return found.pairs if own is None else with_left_over(found.pairs, own, x, y)


def with_left_over(scores: Mapping[tuple[str, str], float], fitted: Fitted, x: Array, y: Array) -> Pairs:
    """The scores; those of pairs that the network's graph puts into different terms of a sum together with what it
    leaves over on rows that it has not seen: a pair may act with a third variable alone, which that does not show, or
    more weakly than a surrogate tells. The smaller of the two p-values counts, for one of two (Šidák)."""
    apart = _apart(fitted.graph)
    if not apart:
        return dict(scores)
    assert fitted.held_out is not None
    left = np.asarray(y, dtype=np.float64) - fitted.held_out
    place = {name: number for number, name in enumerate(fitted.graph.variables)}
    bases = {name: polynomials(np.asarray(x)[:, place[name]]) for name in fitted.graph.used}

    def z(pair: tuple[str, str], score: float) -> float:
        a, b = pair
        least = min(float(stats.norm.sf(score)), dependence(left, products(bases[a], bases[b]))[0])
        return min(float(stats.norm.isf(-math.expm1(2 * math.log1p(-min(least, 1 - 1e-15))))), SUREST)

    return {pair: z(pair, score) if frozenset(pair) in apart else score for pair, score in scores.items()}


def _apart(graph: CompositionalGraph) -> set[frozenset[str]]:
    """Pairs of variables that no term of the last sum reads both."""
    if graph.output.kind != "sum":
        return set()
    terms = [graph.reach[name] for name in graph.output.inputs]
    pairs = {frozenset(pair) for pair in combinations(graph.used, 2)}
    return {pair for pair in pairs if not any(pair <= term for term in terms)}
