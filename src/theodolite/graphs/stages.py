"""How a graph is computed: constituents of one stage depend on earlier stages alone, and equal ones stand together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from theodolite.graphs.graph import CompositionalGraph, Kind, Node


@dataclass(frozen=True)
class Group:
    """Nodes of one stage, of one kind, that read equally many numbers: they are computed at once."""

    kind: Kind
    nodes: tuple[Node, ...]


def elementary(graph: CompositionalGraph) -> CompositionalGraph:
    """The same function, with the functions of one input that sums and products consist of as nodes of their own.

    A sum then is a weighted sum, a product one of affine functions. A `general` node that feeds only this sum or
    product holds the function of one input already; a variable, a shared node, a sum and a product do not.
    """
    uses = Counter(source for source, _ in graph.edges)
    taken = {*graph.variables, *graph.node}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = list(node.inputs)
        if node.kind != "general":
            for place, name in enumerate(inputs):
                source = graph.node.get(name)
                if source is None or source.kind != "general" or uses[name] > 1:
                    inputs[place] = _new(f"{node.name}.{name}", taken)
                    nodes.append(Node(inputs[place], (name,)))
        nodes.append(Node(node.name, tuple(inputs), node.kind))
    return CompositionalGraph(graph.variables, tuple(nodes))


def stages(
    graph: CompositionalGraph, size: Callable[[Node], object] = lambda node: len(node.inputs)
) -> list[list[Group]]:
    """The groups of every level, from the variables up; `size` is what nodes of one group have in common."""
    found: list[dict[tuple[Kind, object], list[Node]]] = [{} for _ in range(graph.depth)]
    for node in graph.nodes:
        found[graph.level[node.name] - 1].setdefault((node.kind, size(node)), []).append(node)
    return [[Group(kind, tuple(nodes)) for (kind, _), nodes in level.items()] for level in found]


def _new(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
