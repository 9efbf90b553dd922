"""Graphs that read a column which others predict and leave out one of these: data hardly tell which of them matters.

Whatever depends on such a column depends on the others, so a graph that reads these in its place says nothing false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import free_name

Sources = Mapping[str, tuple[str, ...]]  # of each column that others predict, these


def undetermined(graph: CompositionalGraph, sources: Sources) -> tuple[str, str] | None:
    """The first column that is read and predicted by others, and one of these that is not read."""
    used = set(graph.used)
    pairs = ((name, one) for name, others in sources.items() if name in used for one in others if one not in used)
    return next(pairs, None)


def with_sources(graph: CompositionalGraph, sources: Sources) -> CompositionalGraph:
    """The others in the place of every column that they predict: one constituent reads them together.

    Examples:
        >>> graph = CompositionalGraph(("a", "b", "c", "d"), (Node("y", ("c", "d"), "sum"),))
        >>> [(node.name, node.inputs, node.kind) for node in with_sources(graph, {"d": ("a", "b")}).nodes]
        [('of_d', ('a', 'b'), 'general'), ('y', ('c', 'of_d'), 'sum')]
    """
    nodes: list[Node] = []
    made: dict[str, str] = {}
    for node in graph.nodes:
        inputs: list[str] = []
        for name in node.inputs:
            if name not in sources:
                inputs.append(name)
            elif node.kind == "general" or len(sources[name]) == 1:
                inputs += sources[name]
            else:
                if name not in made:
                    made[name] = free_name(f"of_{name}", (*graph.variables, *graph.node))
                    nodes.append(Node(made[name], sources[name]))
                inputs.append(made[name])
        nodes.append(replace(node, inputs=tuple(dict.fromkeys(inputs))))
    return CompositionalGraph(graph.variables, tuple(nodes))
