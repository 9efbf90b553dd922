"""From a graph that is certainly wide enough to the tightest that the function obeys, by local moves of shared inputs.

A function obeys all relations of its own graph (`relations`), and as a rule no others. So of the graphs that say
nothing wrong the right one says most; where several say the same, as far as can be seen, the plainest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import canonical, structure_key
from theodolite.graphs.graph import free_name
from theodolite.structure.search.relations import Laboratory

SEEN = 4  # relations that must be tighter before a graph of more edges is preferred
MOST_GRAPHS = 2500  # looked at in one part
WIDEST = 3  # inputs that enter two others together, at most
Nodes = dict[str, tuple[str, ...]]
Spot = tuple[str, str]  # (input, node) to join on the way between, or ("", node) to enter the node itself


def tightest(graph: CompositionalGraph, laboratory: Laboratory) -> CompositionalGraph:
    """The graph from this one on, which must break no relation, of which most hold and none is broken."""
    search = _Search(canonical(graph), laboratory)
    while search.step(_near) or search.step(_far):
        pass
    return search.graph


@dataclass
class _Search:
    graph: CompositionalGraph
    laboratory: Laboratory

    def __post_init__(self) -> None:
        self.worth = self.laboratory.worth(self.graph)
        self.seen = {structure_key(self.graph)}

    def step(self, moves: Callable[[CompositionalGraph], Iterator[Nodes]]) -> bool:
        """To the first graph that is better."""
        for nodes in moves(self.graph):
            if len(self.seen) > MOST_GRAPHS:
                return False
            candidate = _graph(self.graph, nodes, self.seen)
            if candidate is None or self.laboratory.failures(candidate):
                continue
            worth = self.laboratory.worth(candidate)
            more = worth - self.worth
            if more > SEEN * self.laboratory.weight or (more >= 0 and _plainer(candidate, self.graph)):
                self.graph, self.worth = candidate, worth
                return True
        return False


def _plainer(a: CompositionalGraph, b: CompositionalGraph) -> bool:
    return (len(a.edges), len(a.nodes)) < (len(b.edges), len(b.nodes))


def _graph(graph: CompositionalGraph, nodes: Nodes, seen: set) -> CompositionalGraph | None:
    """In its shortest form; None where it is no graph of all the variables, or was seen before."""
    if _has_cycle(nodes):
        return None
    fed = {name for inputs in nodes.values() for name in inputs}
    if sum(name not in fed for name in nodes) != 1 or not fed.issuperset(graph.variables):
        return None
    found = canonical(CompositionalGraph(graph.variables, tuple(Node(name, inputs) for name, inputs in nodes.items())))
    if len(found.variables) < len(graph.variables):
        return None
    key = structure_key(found)
    if key in seen:
        return None
    seen.add(key)
    return found


def _has_cycle(nodes: Nodes) -> bool:
    waiting = dict(nodes)
    while waiting:
        ready = [name for name, inputs in waiting.items() if not any(i in waiting for i in inputs)]
        if not ready:
            return True
        for name in ready:
            del waiting[name]
    return False


def _nodes(graph: CompositionalGraph) -> Nodes:
    return {node.name: node.inputs for node in graph.nodes}


def _spots(graph: CompositionalGraph) -> list[Spot]:
    return [*(("", node.name) for node in graph.nodes), *graph.edges, (graph.output.name, "")]


def _without(nodes: Nodes, source: str, node: str) -> Nodes | None:
    left = tuple(name for name in nodes[node] if name != source)
    return {**nodes, node: left} if left else None


def _with(nodes: Nodes, source: str, spot: Spot) -> Nodes | None:
    below, node = spot
    if not below:
        return None if source in nodes[node] or source == node else {**nodes, node: (*nodes[node], source)}
    joined = free_name("j", nodes)
    if not node:
        return None if source == below else {**nodes, joined: (below, source)}
    if below == source or below not in nodes[node]:
        return None
    inputs = tuple(joined if name == below else name for name in nodes[node])
    return {**nodes, joined: (below, source), node: inputs}


def _removed(graph: CompositionalGraph) -> Iterator[Nodes]:
    for source, node in graph.edges:
        found = _without(_nodes(graph), source, node)
        if found is not None:
            yield found


def _grouped(graph: CompositionalGraph) -> Iterator[Nodes]:
    """Some inputs of a node as a node of their own; one or two of them may stay inputs too."""
    for node in graph.nodes:
        joined = free_name("j", graph.node)
        for count in range(2, len(node.inputs) + 1):
            for part in combinations(node.inputs, count):
                rest = tuple(name for name in node.inputs if name not in part)
                for stay in range(0 if rest else 1, min(3, count - 1)):
                    for stays in combinations(part, stay):
                        yield {**_nodes(graph), joined: part, node.name: (joined, *rest, *stays)}


def _merged(graph: CompositionalGraph) -> Iterator[Nodes]:
    """Two nodes of the same inputs are one."""
    for first, second in combinations(graph.nodes, 2):
        if set(first.inputs) == set(second.inputs):
            nodes = {name: inputs for name, inputs in _nodes(graph).items() if name != second.name}
            yield {
                name: tuple(dict.fromkeys(first.name if i == second.name else i for i in inputs))
                for name, inputs in nodes.items()
            }


def _near(graph: CompositionalGraph) -> Iterator[Nodes]:
    yield from _removed(graph)
    yield from _merged(graph)
    yield from _grouped(graph)
    yield from _spread(graph)
    yield from _shared_by_two(graph)


def _far(graph: CompositionalGraph) -> Iterator[Nodes]:
    """One use of what is used several times, anywhere else."""
    sources = [source for source, _ in graph.edges]
    for source, node in graph.edges:
        if sources.count(source) < 2:
            continue
        left = _without(_nodes(graph), source, node)
        if left is None:
            continue
        for spot in _spots(graph):
            found = _with(left, source, spot) if spot != ("", node) and spot != (source, node) else None
            if found is not None:
                yield found


def _spread(graph: CompositionalGraph) -> Iterator[Nodes]:
    """An input of a node that enters one or two others of its inputs, or one of them and once more above the node."""
    readers: dict[str, list[str]] = {}
    for source, node in graph.edges:
        readers.setdefault(source, []).append(node)
    for source, node in graph.edges:
        left = _without(_nodes(graph), source, node)
        if left is None:
            continue
        below: list[Spot] = [(name, node) for name in left[node]]
        below += [("", name) for name in left[node] if name in left]
        above: list[Spot] = [(node, reader) for reader in readers.get(node, [""])]
        for spot in below:
            found = _with(left, source, spot)
            if found is not None:
                yield found
        for first, second in combinations((*below, *above), 2):
            found = _with(left, source, first)
            found = _with(found, source, second) if found is not None else None
            if found is not None:
                yield found


def _shared_by_two(graph: CompositionalGraph) -> Iterator[Nodes]:
    """Some inputs of a node enter two others of its inputs together, one of which may stay an input too."""
    for node in graph.nodes:
        for first, second in combinations(node.inputs, 2):
            others = [name for name in node.inputs if name not in (first, second)]
            for count in range(2, min(WIDEST, len(others)) + 1):
                for part in combinations(others, count):
                    names = free_name("j", graph.node), free_name("k", graph.node)
                    rest = tuple(name for name in others if name not in part)
                    made = {names[0]: (first, *part), names[1]: (second, *part)}
                    for stays in ((), (first,), (second,)):
                        yield {**_nodes(graph), **made, node.name: (*names, *rest, *stays)}
