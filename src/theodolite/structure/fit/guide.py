"""Targets for the inner nodes of a graph: what a module must know shows where everything outside it is held still.

A network of a deep graph, trained on its output alone, is often caught in a poor minimum. Let F be the function and v a
module: a node such that whatever it reads reaches the output through it alone. The slice t(x) = F(x on what v reads, a
fixed row elsewhere) is then a function of the one number that v says. So v can be trained by itself: a small network
on top of it, a head, is asked for slices at several fixed rows at once, so that one which is blind to some of what v
says (an even function of it, say) does no harm.

F is a black box, or a dense network fitted to the same rows. To judge a network by rows that it has not seen, its guide
must not have seen them either: there is a guide for every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from theodolite.graphs import CompositionalGraph

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
REFERENCES = 16  # rows tried, to hold the other variables at
LOOKED = 64  # rows on which these are compared
SLICES = 2  # that a head tells, at most
LEAST = 1e-6  # of the function's variance: a slice that varies less teaches nothing


@dataclass(frozen=True)
class Guide:
    """A function of points (point, variable) for every fold, or one for all; `error` is its mean squared error over the
    variance of the target, which a slice must exceed to be believed."""

    functions: tuple[Function, ...]
    error: float = 0.0

    def of(self, folds: Sequence[int]) -> Guide:
        """The guide of these folds alone."""
        return self if len(self.functions) == 1 else Guide(tuple(self.functions[f] for f in folds), self.error)


def modules(graph: CompositionalGraph) -> tuple[str, ...]:
    """The nodes, inputs first, below the output, of whose variables none reaches the output on another path."""
    everything = graph.reach[graph.output.name]
    return tuple(
        node.name
        for node in graph.nodes
        if graph.reach[node.name] != everything and not (_without(graph, node.name) & graph.reach[node.name])
    )


def slices(
    graph: CompositionalGraph, name: str, guide: Guide, folds: int, rows: Array, generator: np.random.Generator
) -> list[Array] | None:
    """Standardised targets (fold, row) of a module at up to SLICES references; None where none of them varies in every
    fold. References are rows drawn at random, the same for all folds."""
    columns = [place for place, variable in enumerate(graph.variables) if variable in graph.reach[name]]
    references, looked = (
        rows[generator.choice(len(rows), min(count, len(rows)), replace=False)] for count in (REFERENCES, LOOKED)
    )
    least = [max(LEAST, guide.error) * float(np.var(function(looked))) for function in guide.functions]
    found = []
    for reference in _telling(guide.functions[0], looked, references, columns, least[0]):
        values = np.stack([function(_held(rows, reference, columns)) for function in guide.functions])
        if (values.var(1) > least).all():
            values = (values - values.mean(1, keepdims=True)) / values.std(1, keepdims=True)
            found.append(np.broadcast_to(values, (folds, len(rows))))
    return found or None


def _telling(function: Function, looked: Array, references: Array, columns: Sequence[int], least: float) -> list[Array]:
    """The reference whose slice varies most, then the one that varies most beside it."""
    held = np.concatenate([_held(looked, reference, columns) for reference in references])
    values = function(held).reshape(len(references), -1).T
    triangle, order = qr(values - values.mean(0), mode="r", pivoting=True)  # pyright: ignore[reportAssignmentType]
    varied = np.diag(triangle) ** 2 / len(looked)
    return [references[order[slot]] for slot in range(min(SLICES, len(varied))) if varied[slot] > least]


def _held(rows: Array, reference: Array, columns: Sequence[int]) -> Array:
    """The rows in these columns, the reference in all others."""
    held = np.repeat(reference[None], len(rows), axis=0)
    held[:, columns] = rows[:, columns]
    return held


def _without(graph: CompositionalGraph, name: str) -> frozenset[str]:
    """The variables that reach the output on a path that does not lead through this node."""
    reach: dict[str, frozenset[str]] = {variable: frozenset({variable}) for variable in graph.variables}
    for node in graph.nodes:
        own = frozenset[str]().union(*(reach[source] for source in node.inputs))
        reach[node.name] = frozenset() if node.name == name else own
    return reach[graph.output.name]
