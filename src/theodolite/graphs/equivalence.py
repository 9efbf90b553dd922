"""Which graphs are the same structure: differences that no data could show are taken away, then names.

Taken away are, in turn, until nothing changes:

- variables the function does not depend on;
- univariate nodes: a function of one input is part of whatever reads it (nothing reads the output: with `kinds`, a
  function of a sum stays there);
- inputs of a general node that could be had from fewer, or as many, quantities below. `f(x1, h(x1, x2), z)` is any
  function of x1, x2 and z, and so is `f(h(x1, x2), k(x1, x2), z)`. The inputs become the smallest set of quantities
  that everything below has to pass through, and of several smallest the one nearest to the variables. (As classes of
  functions both are the same if what lies between is used here alone; if it is used elsewhere too, they are the same
  wherever it is generic, since by Menger's theorem the two sets of quantities then determine each other);
- terms of a sum or product that another of its terms can take in: `f(x1) + g(x1, x2)` is `g'(x1, x2)`, if the latter
  term is general, is read by nothing else and has all that the former is computed from among its inputs.

A sum in a sum stays: a `sum` adds *functions* of its inputs, so that `sum(sum(a, b), c)` is φ(α(a) + β(b)) + γ(c), in
which a and b interact, and `sum(a, b, c)` is not. Whoever joins terms pair by pair calls `flattened` first.

Without `kinds`, a sum or product of two inputs is a node of two inputs like any other, and one of more is a sum:
"associative", since products are sums of logarithms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from theodolite.graphs.cut import lowest_cut
from theodolite.graphs.graph import CompositionalGraph, Kind, Node, free_name
from theodolite.graphs.ordering import isomorphic, looks, readers_of, structural_order

Key = tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...], str], ...]]
_Nodes = dict[str, Node]  # inputs before their use, the output last


def equivalent(a: CompositionalGraph, b: CompositionalGraph, *, kinds: bool = False) -> bool:
    """Whether both are the same structure; names of nodes, their order and the order of inputs do not matter."""
    first, second = canonical(a, kinds=kinds), canonical(b, kinds=kinds)
    if first == second:
        return True
    if sorted(map(repr, looks(first).values())) != sorted(map(repr, looks(second).values())):
        return False
    return isomorphic(first, second)  # where refinement is blind, equal structures may be named differently


def recovers(found: CompositionalGraph, truth: CompositionalGraph) -> bool:
    """Whether `found` is right about `truth`: equivalent, or it brackets sums and products of several inputs.

    Who does not see kinds cannot say more of `a + b + c` than `f(g(a, b), c)`. The other way round is no recovery: a
    sum states more than is true of a nest of general nodes.
    """
    if equivalent(found, truth):
        return True
    return equivalent(_unbracketed(canonical(found), canonical(truth)), truth)


def structure_key(graph: CompositionalGraph, *, kinds: bool = False) -> Key:
    """Hashable; equal keys mean equivalent graphs, and equivalent graphs have equal keys as long as colour refinement
    can order nodes that look alike (it cannot in rings of nodes that all read the same; `equivalent` then can)."""
    form = canonical(graph, kinds=kinds)
    return form.variables, tuple((node.name, node.inputs, node.kind) for node in form.nodes)


def canonical(graph: CompositionalGraph, *, kinds: bool = False) -> CompositionalGraph:
    """The reduced graph: variables sorted, nodes named n1, n2, … in an order that only the structure decides."""
    reduced = _reduced(graph, kinds)
    variables = tuple(sorted(reduced.used))
    order = structural_order(reduced)
    names = {name: free_name(f"n{i}", variables) for i, name in enumerate(order, 1)}
    nodes = []
    for name in order:
        node = reduced.node[name]
        nodes.append(Node(names[name], tuple(sorted(names.get(i, i) for i in node.inputs)), node.kind))
    return CompositionalGraph(variables, tuple(nodes))


def is_reduced(graph: CompositionalGraph) -> bool:
    """Whether nothing can be taken away but unused variables: no shorter graph says the same."""
    form = _reduced(graph, kinds=True)
    return len(form.nodes) == len(graph.nodes) and len(form.edges) == len(graph.edges)


def flattened(graph: CompositionalGraph) -> CompositionalGraph:
    """Every sum that is read by one sum alone becomes part of it, and products likewise: a nest of sums read as plain
    addition, with no function between."""
    nodes = {node.name: node for node in graph.nodes}
    while True:
        readers = readers_of(nodes)
        inner = next(
            (
                name
                for name, node in nodes.items()
                if len(readers[name]) == 1 and node.kind != "general" and nodes[readers[name][0]].kind == node.kind
            ),
            None,
        )
        if inner is None:
            return CompositionalGraph(graph.variables, tuple(nodes.values()))
        outer = nodes[readers[inner][0]]
        inputs = [i for name in outer.inputs for i in (nodes[inner].inputs if name == inner else (name,))]
        nodes[outer.name] = Node(outer.name, tuple(dict.fromkeys(inputs)), outer.kind)
        del nodes[inner]


def _reduced(graph: CompositionalGraph, kinds: bool) -> CompositionalGraph:
    variables = graph.used
    nodes = {node.name: node for node in graph.nodes}
    while True:
        before = dict(nodes)
        if not kinds:
            nodes = {name: Node(name, node.inputs, _kind_unseen(node)) for name, node in nodes.items()}
        nodes = _without_univariate(nodes, variables, keep_top=kinds)
        nodes = _cut_short(nodes)
        nodes = _terms_taken_in(nodes)
        nodes = _alive(nodes)
        if nodes == before:
            return CompositionalGraph(variables, tuple(nodes.values()))


def _kind_unseen(node: Node) -> Kind:
    return "general" if node.kind == "general" or len(node.inputs) <= 2 else "sum"


def _without_univariate(nodes: _Nodes, variables: Iterable[str], keep_top: bool) -> _Nodes:
    """A univariate output of a variable stays: a graph has at least one node. So does, with `keep_top`, one of a sum or
    product: a function of a sum is no sum, and nothing above takes it in."""
    stands_for: dict[str, str] = {name: name for name in variables}
    found: _Nodes = {}
    for name, node in nodes.items():
        inputs = tuple(dict.fromkeys(stands_for[i] for i in node.inputs))
        if len(inputs) == 1:
            stands_for[name] = inputs[0]
        else:
            stands_for[name] = name
            found[name] = Node(name, inputs, node.kind)
    output = next(reversed(nodes))
    top = stands_for[output]
    if top not in found:
        return {output: Node(output, (top,))}
    if keep_top and top != output and found[top].kind != "general":
        return _alive(found | {output: Node(output, (top,))})
    return _alive(found, top)


def _alive(nodes: _Nodes, output: str | None = None) -> _Nodes:
    """What the output reads, directly or not; the output is the last."""
    output = output or next(reversed(nodes))
    needed = {output}
    for name in reversed(nodes):
        if name in needed:
            needed.update(nodes[name].inputs)
    found = {name: node for name, node in nodes.items() if name in needed}
    found[output] = found.pop(output)
    return found


def _cut_short(nodes: _Nodes) -> _Nodes:
    """From the bottom up, every general node reads the smallest, lowest set that all below it passes through."""
    found: _Nodes = {}
    reach: dict[str, frozenset[str]] = {}
    for name, node in nodes.items():
        reaches = [reach.get(i, frozenset((i,))) for i in node.inputs]
        reach[name] = frozenset().union(*reaches)
        # Inputs that share nothing are already the lowest: each node below has been cut short itself.
        if node.kind == "general" and sum(map(len, reaches)) > len(reach[name]):
            node = Node(name, lowest_cut(found, node.inputs), node.kind)
        found[name] = node
    return found


def _terms_taken_in(nodes: _Nodes) -> _Nodes:
    found = dict(nodes)
    for name, node in nodes.items():
        if node.kind == "general":
            continue
        readers = readers_of(found)
        terms = list(node.inputs)
        for taker in node.inputs:
            if taker not in found or found[taker].kind != "general" or len(readers[taker]) > 1 or taker not in terms:
                continue
            inside = set(found[taker].inputs)
            terms = [term for term in terms if term == taker or not _computed_from(found, term, inside)]
        found[name] = Node(name, tuple(terms), node.kind)
    return found


def _computed_from(nodes: Mapping[str, Node], term: str, inside: Collection[str]) -> bool:
    waiting, seen = [term], {term}
    while waiting:
        name = waiting.pop()
        if name in inside:
            continue
        if name not in nodes:
            return False
        fresh = set(nodes[name].inputs) - seen
        seen |= fresh
        waiting += fresh
    return True


def _unbracketed(found: CompositionalGraph, truth: CompositionalGraph) -> CompositionalGraph:
    """Nests in `found` whose leaves are the terms of a sum in `truth` become that sum."""
    numbers: dict[Any, int] = {}  # a number for every shape of what lies below

    def number(kind: str, shape: Any) -> int:
        return numbers.setdefault((kind, shape), len(numbers))

    known = {name: number("variable", name) for name in truth.variables}
    sums: dict[tuple[int, ...], int] = {}
    for node in truth.nodes:
        shape = tuple(sorted(known[i] for i in node.inputs))
        known[node.name] = number(node.kind, shape)
        if node.kind == "sum":
            sums[shape] = known[node.name]
    readers = readers_of(found.node)
    own = {name: number("variable", name) for name in found.variables}
    nodes = {node.name: node for node in found.nodes}

    def leaves(name: str, terms: Collection[int]) -> Iterator[str]:
        """Descends from a node through what is read once, as far as the terms."""
        for i in found.node[name].inputs:
            if own[i] not in terms and i in found.node and len(readers[i]) == 1:
                yield from leaves(i, terms)
            else:
                yield i

    for node in found.nodes:
        own[node.name] = number(node.kind, tuple(sorted(own[i] for i in node.inputs)))
        for terms, meaning in sums.items():
            inputs = tuple(leaves(node.name, terms))
            if tuple(sorted(own[i] for i in inputs)) == terms:
                nodes[node.name] = Node(node.name, inputs, "sum")
                own[node.name] = meaning
    return CompositionalGraph(found.variables, tuple(_alive(nodes).values()))
