"""An order of nodes that follows from the structure alone, whatever they are called."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from theodolite.graphs.graph import CompositionalGraph, Node


def structural_order(graph: CompositionalGraph) -> list[str]:
    """Nodes in an order that follows from the structure alone: refine colours; where nodes still look alike, single out
    the one that leaves the least picture (any, if all leave the same: exchangeable, or too alike for this to see)."""
    colours = _refined(graph, looks(graph))
    while len(set(colours.values())) < len(colours):
        ranks = sorted(colours.values())
        alike = next(rank for rank, after in pairwise(ranks) if rank == after)
        single = [
            _refined(graph, {n: (c, int(n == name)) for n, c in colours.items()})
            for name in sorted(n for n, c in colours.items() if c == alike)
        ]
        colours = min(single, key=lambda singled: _picture(graph, singled))
    return sorted((node.name for node in graph.nodes), key=lambda name: colours[name])


def looks(graph: CompositionalGraph) -> dict[str, Any]:
    """What tells a node at sight: its level first, so that inputs come before their use."""
    found: dict[str, Any] = {name: (0, name) for name in graph.used}
    for node in graph.nodes:
        found[node.name] = (graph.level[node.name], node.kind, tuple(sorted(graph.reach[node.name])))
    return found


def _refined(graph: CompositionalGraph, seen: Mapping[str, Any]) -> dict[str, int]:
    """Colours, numbered in the order of looks, until what a node reads and what reads it tells no more apart."""
    readers = readers_of(graph.node)
    colours = _ranked(seen)
    while True:
        finer = _ranked(
            {
                name: (
                    colour,
                    tuple(sorted(colours[i] for i in (graph.node[name].inputs if name in graph.node else ()))),
                    tuple(sorted(colours[i] for i in readers.get(name, ()))),
                )
                for name, colour in colours.items()
            }
        )
        if len(set(finer.values())) == len(set(colours.values())):
            return colours
        colours = finer


def _ranked(seen: Mapping[str, Any]) -> dict[str, int]:
    distinct = sorted(set(seen.values()))
    ranks = {look: rank for rank, look in enumerate(distinct)}
    return {name: ranks[look] for name, look in seen.items()}


def _picture(graph: CompositionalGraph, colours: Mapping[str, int]) -> list[Any]:
    return sorted((colours[node.name], sorted(colours[i] for i in node.inputs)) for node in graph.nodes)


def isomorphic(a: CompositionalGraph, b: CompositionalGraph) -> bool:
    import networkx

    def drawn(graph: CompositionalGraph) -> networkx.DiGraph:
        net = graph.to_networkx()
        networkx.set_node_attributes(net, looks(graph), "look")
        return net

    return networkx.is_isomorphic(drawn(a), drawn(b), node_match=lambda one, other: one["look"] == other["look"])


def readers_of(nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in nodes}
    for name, node in nodes.items():
        for i in node.inputs:
            found.setdefault(i, []).append(name)
    return found
