"""Each closed part of a graph, one after another, made as tight as the function allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import canonical, equivalent
from theodolite.graphs.graph import free_name
from theodolite.structure.data.source import GradientSource
from theodolite.structure.search.modules import Block
from theodolite.structure.search.outline import Outline, Unit
from theodolite.structure.search.relations import Laboratory
from theodolite.structure.search.shrink import tightest

MOST_UNITS = 14  # of a part that is looked at


def polish(
    graph: CompositionalGraph, blocks: Sequence[Block], source: GradientSource, generator: np.random.Generator
) -> CompositionalGraph:
    """The graph with every part between a group that enters through one scalar and the next such groups below it
    replaced by the tightest that the slopes obey."""
    outline = Outline.of(blocks)
    place = {name: i for i, name in enumerate(graph.variables)}
    top = {frozenset(place[v] for v in graph.reach[node.name]): node.name for node in graph.nodes}
    closed = [block for block in blocks if not block.shared]
    for block in closed:
        inside = [b for b in closed if b.group < block.group]
        units = outline.largest(block.group, inside)
        if len(units) < 3 or len(units) > MOST_UNITS or block.group not in top:
            continue
        graph = _polished(graph, outline, block, units, source, generator)
        top = {frozenset(place[v] for v in graph.reach[node.name]): node.name for node in graph.nodes}
    return graph


def _polished(
    graph: CompositionalGraph,
    outline: Outline,
    block: Block,
    units: Sequence[Unit],
    source: GradientSource,
    generator: np.random.Generator,
) -> CompositionalGraph:
    part = _part(graph, block, units)
    if part is None:
        return graph
    local, names = part
    laboratory = Laboratory(source, generator, names)
    starts = [start for start in (local, _coarse(outline, block, names)) if not laboratory.failures(canonical(start))]
    if not starts:
        return graph
    best = tightest(max(starts, key=laboratory.worth), laboratory)
    return graph if equivalent(best, local) else _put_back(graph, local, best)


def _part(
    graph: CompositionalGraph, block: Block, units: Sequence[Unit]
) -> tuple[CompositionalGraph, dict[str, frozenset[int]]] | None:
    """The nodes of the block above its units, which are its variables; None where there is a sum or a product among
    them, of which other relations hold, or where the graph has no such part."""
    place = {name: i for i, name in enumerate(graph.variables)}
    by_reach: dict[frozenset[int], str] = {frozenset((i,)): name for name, i in place.items()}
    for node in graph.nodes:
        by_reach[frozenset(place[v] for v in graph.reach[node.name])] = node.name
    if any(unit not in by_reach for unit in (*units, block.group)):
        return None
    names = {by_reach[unit]: unit for unit in units}
    waiting, inner = [by_reach[block.group]], {}
    while waiting:
        name = waiting.pop()
        if name in names or name in inner:
            continue
        if name not in graph.node or graph.node[name].kind != "general":
            return None
        inner[name] = graph.node[name]
        waiting += graph.node[name].inputs
    nodes = tuple(node for node in graph.nodes if node.name in inner)
    return CompositionalGraph(tuple(names), nodes), names


def _coarse(outline: Outline, block: Block, names: dict[str, frozenset[int]]) -> CompositionalGraph:
    """Every block reads all that it may read."""
    unit_names = {unit: name for name, unit in names.items()}
    nodes: list[Node] = []
    made: dict[Unit, str] = {}

    def name(unit: Unit) -> str:
        if unit in unit_names:
            return unit_names[unit]
        if unit not in made:
            inputs = tuple(dict.fromkeys(name(below) for below in outline.inputs[unit]))
            made[unit] = free_name(f"b{len(made)}", names)
            nodes.append(Node(made[unit], inputs))
        return made[unit]

    name(block.group)
    return CompositionalGraph(tuple(names), tuple(nodes))


def _put_back(graph: CompositionalGraph, old: CompositionalGraph, new: CompositionalGraph) -> CompositionalGraph:
    kept = [node for node in graph.nodes if node.name not in old.node]
    taken = {*graph.variables, *(node.name for node in kept)}
    names: dict[str, str] = {}
    for node in new.nodes:
        names[node.name] = old.output.name if node == new.output else free_name(f"{node.name}_", taken)
        taken.add(names[node.name])
    inner = [Node(names[node.name], tuple(names.get(i, i) for i in node.inputs), node.kind) for node in new.nodes]
    return CompositionalGraph(graph.variables, (*kept, *inner))
