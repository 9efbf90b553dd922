"""How often each edge comes back when the graph is looked for in half of the rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from theodolite.graphs import CompositionalGraph
from theodolite.structure.progress import Progress
from theodolite.structure.search.interactions import propose

Array = NDArray[np.float64]
Edge: TypeAlias = tuple[str, str]


def edge_stability(
    graph: CompositionalGraph,
    x: Array,
    y: Array,
    generator: np.random.Generator,
    resamples: int,
    progress: Progress | None = None,
) -> dict[Edge, float]:
    """Of every edge the share of half-samples whose first candidate has it too: an edge between the same variables,
    those below its input and those below its node,
    unless this is the output. Halves without replacement, because a row that is there twice would
    be seen and held out at once (Meinshausen and Bühlmann 2010); each has half the rows, so that shares are low rather
    than high."""
    found = []
    for number in range(resamples):
        if progress is not None:
            progress(number, resamples, "looking again in half of the rows")
        rows = generator.choice(len(y), len(y) // 2, replace=False)
        varies = [place for place in range(x.shape[1]) if np.ptp(x[rows, place]) > 0]
        names = [graph.variables[place] for place in varies]
        candidates = propose(x[rows][:, varies], y[rows], names, generator, quick=True) if len(varies) > 1 else []
        found.append(_edges(candidates[0].graph) if candidates else set())
    own = {edge: _below(graph, edge) for edge in graph.edges}
    return {edge: float(np.mean([below in one for one in found])) for edge, below in own.items()} if found else {}


def _edges(graph: CompositionalGraph) -> set[tuple[frozenset[str], frozenset[str]]]:
    return {_below(graph, edge) for edge in graph.edges}


def _below(graph: CompositionalGraph, edge: Edge) -> tuple[frozenset[str], frozenset[str]]:
    """Of the output its inputs alone count, whatever else it reads."""
    source, name = edge
    return graph.reach[source], frozenset() if name == graph.output.name else graph.reach[name]
