"""Graphs next to a graph: a node split, two joined, a variable dropped, a constituent made a sum or a product.

Which splits are worth a fit is asked of a surrogate: inputs whose slopes keep their ratio, whatever the node's other
inputs are, may be a module of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import Kind, free_name
from theodolite.graphs.ordering import readers_of
from theodolite.structure.data.source import Array

MOST_INPUTS = 8  # of a node whose subsets are all looked at


def splits(graph: CompositionalGraph, turned: Array) -> list[CompositionalGraph]:
    """Of every general node of three inputs or more, with some of them as a node of their own: first what turns the
    ratio of its slopes least. `turned[i, j, k]`: how much variable k turns that of i and j."""
    place = {name: index for index, name in enumerate(graph.variables)}
    found: list[tuple[float, CompositionalGraph]] = []
    for node in graph.nodes:
        if node.kind != "general" or not 3 <= len(node.inputs) <= MOST_INPUTS:
            continue
        below = [sorted(place[name] for name in graph.reach[i]) for i in node.inputs]
        between = _between(turned, below)
        everything = range(len(below))
        for size in range(2, len(below)):
            for part in combinations(everything, size):
                others = [c for c in everything if c not in part]
                turn = max(between[a, b, c] for a, b in combinations(part, 2) for c in others)
                found.append((turn, _with_module(graph, node, [node.inputs[a] for a in part])))
    found.sort(key=lambda item: item[0])
    return [made for _, made in found]


def joins(graph: CompositionalGraph) -> Iterator[CompositionalGraph]:
    """With a node's inputs read by its only reader instead of the node."""
    readers = readers_of(graph.node)
    for node in reversed(graph.nodes):
        if len(readers[node.name]) == 1:
            reader = graph.node[readers[node.name][0]]
            inputs = [i for name in reader.inputs for i in (node.inputs if name == node.name else (name,))]
            kind = reader.kind if reader.kind == node.kind else "general"
            wider = Node(reader.name, tuple(dict.fromkeys(inputs)), kind)
            yield _with(graph, [wider if n == reader else n for n in graph.nodes if n != node])


def other_kinds(graph: CompositionalGraph) -> Iterator[CompositionalGraph]:
    """With the output, or a general node of three inputs or more, as a product, a sum, or neither. (What two inputs do
    is also told by a general node; of an output it decides how well its network extends what it has learnt.)"""
    kinds: tuple[Kind, ...] = ("product", "sum", "general")
    for node in reversed(graph.nodes):
        if len(node.inputs) < 2 or (node != graph.output and (len(node.inputs) < 3 or node.kind != "general")):
            continue
        for kind in kinds:
            if kind != node.kind and "general" in (kind, node.kind):
                yield _with(graph, [replace(n, kind=kind) if n == node else n for n in graph.nodes])


def without(graph: CompositionalGraph, dropped: Collection[str]) -> CompositionalGraph | None:
    """Without some variables, and the nodes that only they feed; None where nothing is left."""
    gone, nodes = set(dropped), []
    for node in graph.nodes:
        inputs = tuple(name for name in node.inputs if name not in gone)
        if inputs:
            nodes.append(Node(node.name, inputs, node.kind if len(inputs) > 1 else "general"))
        else:
            gone.add(node.name)
    return None if graph.output.name in gone else CompositionalGraph(graph.variables, tuple(nodes))


def _between(turned: Array, below: list[list[int]]) -> Array:
    """The same for groups of variables: the mean, since one poorly seen variable is not to hide a module."""
    count = len(below)
    found = np.zeros((count, count, count))
    for a, b, c in np.ndindex(count, count, count):
        if len({a, b, c}) == 3:
            found[a, b, c] = turned[np.ix_(below[a], below[b], below[c])].mean()
    return found


def _with_module(graph: CompositionalGraph, node: Node, inside: Collection[str]) -> CompositionalGraph:
    name = free_name(f"{node.name}_", (*graph.variables, *graph.node))
    rest = tuple(i for i in node.inputs if i not in inside)
    return _with(
        graph,
        [
            made
            for n in graph.nodes
            for made in ((Node(name, tuple(inside)), Node(n.name, (name, *rest))) if n == node else (n,))
        ],
    )


def _with(graph: CompositionalGraph, nodes: list[Node]) -> CompositionalGraph:
    return CompositionalGraph(graph.variables, tuple(nodes))
