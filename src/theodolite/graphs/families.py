"""Families of compositional graphs: trees, windows of a convolution, random trees and DAGs, wrong versions of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from theodolite.errors import BadInput
from theodolite.graphs.equivalence import equivalent, is_reduced
from theodolite.graphs.graph import CompositionalGraph, Kind, Node, free_name
from theodolite.registry import Registry

if TYPE_CHECKING:
    import numpy as np

Variables = int | Sequence[str]

_ATTEMPTS = 40

named_graphs: Registry[Callable[[Variables, int], CompositionalGraph]] = Registry("graph")


def named_graph(name: str, variables: Variables, fan_in: int = 2) -> CompositionalGraph:
    """A graph that needs no draws, by its name; only `convolutional` looks at `fan_in`."""
    return named_graphs[name](variables, fan_in)


def variable_names(variables: Variables) -> tuple[str, ...]:
    """x1, …, xn for a number."""
    if isinstance(variables, str):
        raise BadInput(f"the variables '{variables}' are one text: pass a number or a list of names")
    if not isinstance(variables, int):
        return tuple(variables)
    if isinstance(variables, bool) or variables < 1:
        raise BadInput(f"a graph of {variables} variables cannot be built: give at least 1")
    return tuple(f"x{i}" for i in range(1, variables + 1))


def binary_tree(variables: Variables) -> CompositionalGraph:
    """Neighbours in pairs, level by level; what is left over at the end of a level goes up to the next."""
    return convolutional_tree(variables, fan_in=2, stride=2)


def convolutional_tree(variables: Variables, fan_in: int = 2, stride: int | None = None) -> CompositionalGraph:
    """Every level reads windows of `fan_in` neighbours, `stride` apart, like a convolution without shared weights.

    Windows overlap where `stride` is less than `fan_in`, so that the graph is no tree. Unless told otherwise,
    neighbouring windows share one input (and none where `fan_in` is 2). The last window of a level may be shorter; one
    of a single input is no node, the input itself goes up.
    """
    _check_fan_in(fan_in)
    step = max(2, fan_in - 1) if stride is None else stride
    if not 1 <= step <= fan_in:
        raise BadInput(f"windows of {fan_in} cannot be {step} apart: give a stride from 1 to {fan_in}")
    building = _Building(variables)
    level = list(building.variables)
    while len(level) > 1:
        starts = range(0, max(len(level) - fan_in, 0) + step, step)
        windows = [level[start : start + fan_in] for start in starts if start < len(level)]
        level = [window[0] if len(window) == 1 else building.add(window) for window in windows]
    return building.graph()


def random_tree(variables: Variables, fan_in: int, generator: np.random.Generator) -> CompositionalGraph:
    """From 2 to `fan_in` of what is there, drawn at random, are joined again and again until one node is left.

    A variable may wait long and then enter a high node. Every tree of these fan-ins can be drawn.
    """
    _check_fan_in(fan_in)
    building = _Building(variables)
    pool = list(building.variables)
    while len(pool) > 1:
        size = int(generator.integers(2, min(fan_in, len(pool)) + 1))
        chosen = generator.choice(len(pool), size=size, replace=False)
        inputs = [pool[i] for i in chosen]
        pool = [name for name in pool if name not in inputs]
        pool.append(building.add(inputs))
    return building.graph()


def random_dag(
    variables: Variables, fan_in: int, overlap: int, depth: int | None, generator: np.random.Generator
) -> CompositionalGraph:
    """A random tree of at most `depth` levels (None: any), then `overlap` further uses of what is used already.

    A further use is an edge from a variable or node into a node that does not see all of its variables yet. A node that
    has `fan_in` inputs takes it through a new node, which joins it with one of these inputs. Fan-ins and depth stay
    within what was asked for. A use that says nothing is never drawn: with `f(x1, h(x1, x2))` for `f(x1, x2)`, for
    example, the graph could be written shorter (`is_reduced`). A tree without room for all of them is drawn again.
    """
    if overlap < 0:
        raise BadInput(f"an overlap of {overlap} cannot be drawn: give 0 or more further uses")
    most = 0
    for _ in range(_ATTEMPTS):  # some trees have no room: a dense one, for instance
        graph = (
            random_tree(variables, fan_in, generator)
            if depth is None
            else _tree_within(variables, fan_in, depth, generator)
        )
        for used in range(overlap):
            shared = next((g for g in _shared_once_more(graph, fan_in, depth, generator) if is_reduced(g)), None)
            if shared is None:
                most = max(most, used)
                break
            graph = shared
        else:
            return graph
    raise BadInput(
        f"{_ATTEMPTS} graphs of {len(variable_names(variables))} variables, fan-in {fan_in} and "
        f"{'any depth' if depth is None else f'depth {depth}'} had no room for an overlap of {overlap}, at best for "
        f"{most}: ask for less overlap, or more fan-in or depth"
    )


def kolmogorov_arnold(variables: Variables) -> CompositionalGraph:
    """Σ_q g_q(Σ_p h_qp(x_p)) with q from 1 to 2n + 1: univariate functions and sums alone."""
    building = _Building(variables)
    outer = []
    for q in range(1, 2 * len(building.variables) + 2):
        inner = [building.add([name], name=f"h{q}_{p}") for p, name in enumerate(building.variables, 1)]
        total = building.add(inner, kind="sum", name=f"s{q}")
        outer.append(building.add([total], name=f"g{q}"))
    building.add(outer, kind="sum")
    return building.graph()


def additive(variables: Variables) -> CompositionalGraph:
    """A sum of functions of one variable each."""
    building = _Building(variables)
    building.add(building.variables, kind="sum")
    return building.graph()


named_graphs.add("binary-tree", lambda variables, fan_in: binary_tree(variables))
named_graphs.add("convolutional", lambda variables, fan_in: convolutional_tree(variables, fan_in))
named_graphs.add("dense", lambda variables, fan_in: CompositionalGraph.dense(variable_names(variables)))
named_graphs.add("kolmogorov-arnold", lambda variables, fan_in: kolmogorov_arnold(variables))
named_graphs.add("additive", lambda variables, fan_in: additive(variables))


def shuffled(graph: CompositionalGraph, generator: np.random.Generator) -> CompositionalGraph:
    """The same shape with its variables exchanged such that it is another structure: a wrong graph of the same size."""
    used = graph.used
    for _ in range(100):
        order = generator.permutation(len(used))
        exchanged = {name: used[place] for name, place in zip(used, order, strict=True)}
        nodes = [
            Node(node.name, tuple(exchanged.get(name, name) for name in node.inputs), node.kind) for node in graph.nodes
        ]
        wrong = CompositionalGraph(graph.variables, tuple(nodes))
        if not equivalent(wrong, graph):
            return wrong
    raise BadInput(
        "no exchange of variables makes this graph a different one: pass a graph that treats them differently"
    )


def with_extra_edges(graph: CompositionalGraph, count: int, generator: np.random.Generator) -> CompositionalGraph:
    """A supergraph: `count` further edges, each into a node that does not see all of the input's variables yet."""
    for added in range(count):
        edges = list(_further_edges(graph))
        if not edges:
            raise BadInput(f"the graph has room for {added} further edges, not for {count}: ask for fewer")
        source, name = edges[int(generator.integers(len(edges)))]
        graph = _with_edge(graph, source, name)
    return graph


class _Building:
    """Nodes h1, h2, …, the last renamed to y; never a name that a variable has."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variable_names(variables)
        self.nodes: list[Node] = []

    def add(self, inputs: Sequence[str], kind: Kind = "general", name: str | None = None) -> str:
        name = free_name(name or f"h{len(self.nodes) + 1}", self.variables)
        self.nodes.append(Node(name, tuple(inputs), kind))
        return name

    def graph(self) -> CompositionalGraph:
        if not self.nodes:
            self.add(self.variables)
        *below, last = self.nodes
        top = Node(free_name("y", (*self.variables, *(node.name for node in below))), last.inputs, last.kind)
        return CompositionalGraph(self.variables, (*below, top))


def _check_fan_in(fan_in: int) -> None:
    if isinstance(fan_in, bool) or not isinstance(fan_in, int) or fan_in < 2:
        raise BadInput(f"a fan-in of {fan_in!r} joins nothing: give an integer of at least 2")


def _tree_within(variables: Variables, fan_in: int, depth: int, generator: np.random.Generator) -> CompositionalGraph:
    """Drawn from the top: the variables of a node are shared out among its inputs, none more than fit below."""
    _check_fan_in(fan_in)
    building = _Building(variables)
    if depth < 1 or fan_in**depth < len(building.variables):
        raise BadInput(
            f"{len(building.variables)} variables do not fit under {depth} levels of fan-in {fan_in}: "
            "give more depth or fan-in"
        )

    def grow(names: Sequence[str], levels: int) -> str:
        if len(names) == 1:
            return names[0]
        room = fan_in ** (levels - 1)  # variables that one input can carry
        fewest = max(2, -(-len(names) // room))
        size = int(generator.integers(fewest, min(fan_in, len(names)) + 1))
        shares, left = [], len(names)
        for after in reversed(range(size)):
            share = int(generator.integers(max(1, left - room * after), min(room, left - after) + 1))
            shares.append(share)
            left -= share
        inputs, start = [], 0
        for i in generator.permutation(size):
            inputs.append(grow(names[start : start + shares[i]], levels - 1))
            start += shares[i]
        return building.add(inputs)

    grow([building.variables[i] for i in generator.permutation(len(building.variables))], depth)
    return building.graph()


def _shared_once_more(
    graph: CompositionalGraph, fan_in: int, depth: int | None, generator: np.random.Generator
) -> Iterator[CompositionalGraph]:
    """Every graph with one further use, in random order, as far as fan-in and depth allow."""
    edges = list(_further_edges(graph))
    for i in generator.permutation(len(edges)):
        source, name = edges[i]
        inputs = graph.node[name].inputs
        if len(inputs) < fan_in:
            wider = [_with_edge(graph, source, name)]
        else:
            wider = [_with_join(graph, source, name, inputs[place]) for place in generator.permutation(len(inputs))]
        yield from (candidate for candidate in wider if depth is None or candidate.depth <= depth)


def _further_edges(graph: CompositionalGraph) -> Iterator[tuple[str, str]]:
    """(source, node) where the node would see a variable that it does not see yet, without making a cycle."""
    below: dict[str, set[str]] = {}
    for node in graph.nodes:
        below[node.name] = {node.name}.union(*(below.get(name, ()) for name in node.inputs))
    for source in (*graph.used, *(node.name for node in graph.nodes)):
        for node in graph.nodes:
            if node.name not in below.get(source, ()) and not graph.reach[source] <= graph.reach[node.name]:
                yield source, node.name


def _with_edge(graph: CompositionalGraph, source: str, name: str) -> CompositionalGraph:
    nodes = [Node(n.name, (*n.inputs, source), n.kind) if n.name == name else n for n in graph.nodes]
    return CompositionalGraph(graph.variables, tuple(nodes))


def _with_join(graph: CompositionalGraph, source: str, name: str, beside: str) -> CompositionalGraph:
    """A new node of `beside` and `source` takes the place of `beside` among the inputs of the node."""
    taken = (*graph.variables, *graph.node)
    number = next(i for i in range(1, len(taken) + 2) if f"h{i}" not in taken)
    joined = Node(f"h{number}", (beside, source))
    nodes = [
        Node(n.name, tuple(joined.name if i == beside else i for i in n.inputs), n.kind) if n.name == name else n
        for n in graph.nodes
    ]
    return CompositionalGraph(graph.variables, (joined, *nodes))
