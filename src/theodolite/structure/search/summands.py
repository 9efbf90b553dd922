"""From interactions that hold on unseen rows to sums and products of terms, and to the graphs of these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations, islice

import networkx

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import Kind, free_name

Group = frozenset[int]
MOST = 2  # terms that a variable stands in, on average: more are no structure


def find_summands(
    used: Sequence[int], pairs: Collection[tuple[int, int]], together: Callable[[tuple[int, ...]], bool] | None = None
) -> list[Group] | None:
    """The largest sets of variables in which every pair interacts, and every three where `together` is asked of triples
    (i < j < k): three may interact two by two only. None where they overlap too much to be a structure."""
    graph = networkx.Graph()
    graph.add_nodes_from(used)
    graph.add_edges_from(pairs)
    limit = MOST * len(used)
    found: list[Group] | None = [frozenset(clique) for clique in islice(networkx.find_cliques(graph), limit + 1)]
    if together is not None:
        found = _split(found, together, 8 * limit)
    if found is None:
        return None
    terms = sorted(_largest(found), key=sorted)
    return terms if sum(map(len, terms)) <= limit else None


def summands_graph(
    variables: Sequence[str], terms: Sequence[Group], kind: Kind, modules: Collection[Group] = ()
) -> CompositionalGraph:
    """A sum or product of one node a term; a variable alone enters it directly. Inside a term every module, a group
    that lies in no other term and is nested in or disjoint from the others, is a node of its own."""
    names = _Names(variables)
    nodes: list[Node] = []

    def build(group: Group, name: str) -> str:
        inside = _largest(module for module in modules if module < group and len(module) > 1)
        parts = [*inside, *(frozenset((index,)) for index in group.difference(*inside))]
        inputs = []
        for part in sorted(parts, key=sorted):
            inputs.append(variables[min(part)] if len(part) == 1 else build(part, names.next()))
        nodes.append(Node(name, tuple(inputs)))
        return name

    root = names.free("y")
    if len(terms) == 1:
        build(terms[0], root)
    else:
        inputs = [variables[min(term)] if len(term) == 1 else build(term, names.next()) for term in terms]
        nodes.append(Node(root, tuple(inputs), kind))
    return CompositionalGraph(tuple(variables), tuple(nodes))


def summands_confidence(
    graph: CompositionalGraph, single: Mapping[str, float], pairs: Mapping[tuple[str, str], float]
) -> dict[tuple[str, str], float]:
    """Of an input of a sum or product: the confidence that it matters, by the surest of its variables. Of an input of
    another constituent: that it interacts with each of the others, by the surest pair of variables below the two. (Of
    two inputs that are functions of one and the same variable there is no pair: that this one matters.)"""
    of = {frozenset(pair): value for pair, value in pairs.items()}
    of |= {frozenset((variable,)): value for variable, value in single.items()}
    found = {}
    for node in graph.nodes:
        for name in node.inputs:
            mine = graph.reach[name]
            if node.kind != "general" or len(node.inputs) == 1:
                found[name, node.name] = max(single[variable] for variable in mine)
                continue
            others = [graph.reach[other] for other in node.inputs if other != name]
            found[name, node.name] = min(max(of[pair] for pair in _across(mine, theirs)) for theirs in others)
    return found


def _across(mine: Collection[str], theirs: Collection[str]) -> set[frozenset[str]]:
    """Every pair of a variable here and a different one there, or the one variable that both are."""
    every = {frozenset((a, b)) for a in mine for b in theirs}
    return {pair for pair in every if len(pair) == 2} or every


def _split(terms: list[Group], together: Callable[[tuple[int, ...]], bool], limit: int) -> list[Group] | None:
    """Where three of a term do not act together, the term falls into those without one of the three."""
    waiting, found, seen = list(terms), [], set(terms)
    while waiting:
        term = waiting.pop()
        triple = next((three for three in combinations(sorted(term), 3) if not together(three)), None)
        if triple is None:
            found.append(term)
            continue
        smaller = {term - {index} for index in triple} - seen
        seen |= smaller
        waiting.extend(sorted(smaller, key=sorted))
        if len(seen) > limit:
            return None
    return found


def _largest(groups: Iterable[Group]) -> set[Group]:
    every = set(groups)
    return {group for group in every if not any(group < other for other in every)}


class _Names:
    """Names of nodes that no variable has: t1, t2, …"""

    def __init__(self, variables: Sequence[str]) -> None:
        self.taken = set(variables)
        self.count = 0

    def next(self) -> str:
        self.count += 1
        return self.free(f"t{self.count}")

    def free(self, name: str) -> str:
        name = free_name(name, self.taken)
        self.taken.add(name)
        return name
