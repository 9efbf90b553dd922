"""Functions of a few sums over all variables, as φ(w·x) and φ(w·x, v·x) are: from the gradients of a surrogate.

If f = φ(Σ f_i(x_i)), redrawing x_k changes no ratio ∂_i f : ∂_j f. If f depends on r linear combinations alone, its
gradients lie in r dimensions: E[∇f ∇fᵀ] has rank r (Samarov 1993, Constantine 2015). Both are taken over slopes of
different members, which err differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import free_name
from theodolite.structure.search.nesting import Turns
from theodolite.structure.surrogate.surrogate import SurrogateSource

MOST = 2  # directions
BESIDE = 0.05  # of the mean squared slope: what may lie outside the directions, for what a surrogate errs
TURNED = 0.025  # squared sine: the mean turn that passes for none
POINTS = 200


def hidden_sums(
    source: SurrogateSource, turned: Turns, used: Sequence[int], generator: np.random.Generator
) -> list[CompositionalGraph]:
    """A function of one sum over the used variables, or of two, if slopes speak for it and it says more than that."""
    if len(used) < 3:
        return []
    found = []
    if mean_turn(turned, used) < TURNED:
        found.append(of_sums(source.variables, used, 1))
    elif len(used) > MOST + 1 and dimensions(source, used, generator) <= MOST:
        found.append(of_sums(source.variables, used, MOST))
    return found


def mean_turn(turned: Turns, used: Sequence[int]) -> float:
    """The mean squared sine over all i, j and k that are different."""
    sizes = turned.size[np.ix_(used, used, used)]
    count = len(used)
    return float(sizes.sum() / (count * (count - 1) * (count - 2)))


def dimensions(source: SurrogateSource, used: Sequence[int], generator: np.random.Generator) -> int:
    """How many directions the gradients need, but for a small share."""
    slopes = (source.member_gradients(source.points(POINTS, generator)) * source.scale)[:, :, list(used)]
    total, members = slopes.sum(0), len(slopes)
    own = np.einsum("mpi,mpj->ij", slopes, slopes)
    across = (np.einsum("pi,pj->ij", total, total) - own) / (members * (members - 1) * slopes.shape[1])
    values = np.linalg.eigvalsh(across)[::-1].clip(min=0.0)
    left = 1 - np.cumsum(values) / max(values.sum(), np.finfo(np.float64).tiny)
    return int(np.argmax(left <= BESIDE)) + 1


def of_sums(variables: Sequence[str], used: Sequence[int], count: int) -> CompositionalGraph:
    """A function of so many sums over the used variables.

    Examples:
        >>> [node.kind for node in of_sums("abc", [0, 1, 2], 1).nodes]
        ['sum', 'general']
    """
    taken, names = set(variables), []
    for wanted in (*(f"h{number + 1}" for number in range(count)), "y"):
        names.append(free_name(wanted, taken))
        taken.add(names[-1])
    *inner, root = names
    reads = tuple(variables[index] for index in used)
    nodes = (*(Node(name, reads, "sum") for name in inner), Node(root, tuple(inner)))
    return CompositionalGraph(tuple(variables), nodes)


def below_function(graph: CompositionalGraph) -> CompositionalGraph:
    """A function of what a graph says."""
    name = free_name("h1", (*graph.variables, *graph.node))
    inner = replace(graph.output, name=name)
    return CompositionalGraph(graph.variables, (*graph.nodes[:-1], inner, Node(graph.output.name, (name,))))
