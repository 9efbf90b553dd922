"""Which graphs are the same structure: against what gradients of drawn functions show, brute force and invariances."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest

from tests.each import each
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.cut import lowest_cut
from theodolite.graphs.equivalence import (
    canonical,
    equivalent,
    flattened,
    is_reduced,
    recovers,
    structure_key,
)
from theodolite.graphs.families import (
    binary_tree,
    kolmogorov_arnold,
    random_dag,
    random_tree,
    shuffled,
    variable_names,
)
from theodolite.graphs.formula import formula_graph


def graph(variables: str, **nodes: str) -> CompositionalGraph:
    """`graph("a b c", h="a b", y="h c +")`: the sign of a sum or product stands behind its inputs."""
    kinds = {"+": "sum", "*": "product"}
    made = []
    for name, text in nodes.items():
        *inputs, last = text.split()
        made.append(
            Node(name, tuple(inputs), kinds[last]) if last in kinds else Node(name, (*inputs, last))  # type: ignore[arg-type]
        )
    return CompositionalGraph(tuple(variables.split()), tuple(made))


def tangled(seed: int, variables: int = 5) -> CompositionalGraph:
    """Any DAG of general nodes, trivial ones among them: univariate nodes, nodes that see what their input sees."""
    random = np.random.default_rng(seed)
    names = list(variable_names(variables))
    nodes: list[Node] = []
    for i in range(int(random.integers(2, 6))):
        size = int(random.integers(1, 4))
        inputs = random.choice(len(names), size=min(size, len(names)), replace=False)
        nodes.append(Node(f"h{i}", tuple(names[j] for j in inputs)))
        names.append(f"h{i}")
    fed = {name for node in nodes for name in node.inputs}
    loose = [name for name in names if name not in fed]
    return CompositionalGraph(variable_names(variables), (*nodes, Node("y", tuple(loose))))


def renamed(graph: CompositionalGraph, seed: int) -> CompositionalGraph:
    """Other names of nodes, another order of nodes and of inputs."""
    random = np.random.default_rng(seed)
    names = {n.name: f"w{i}" for n, i in zip(graph.nodes, random.permutation(len(graph.nodes)), strict=True)}
    nodes = [
        Node(names[n.name], tuple(names.get(i, i) for i in random.permutation(np.array(n.inputs, object))), n.kind)
        for n in graph.nodes
    ]
    return CompositionalGraph(graph.variables, tuple(nodes[i] for i in random.permutation(len(nodes))))


def ranks(graph: CompositionalGraph, seed: int) -> dict[tuple[str, ...], int]:
    """What data shows: with a group of variables held fixed and the rest varied, the rank of the group's gradients, for
    a function of this graph drawn at random."""
    random = np.random.default_rng(seed)
    variables = variable_names(5)
    weights = {n.name: random.normal(size=(8, len(n.inputs))) for n in graph.nodes}
    shifts = {n.name: random.normal(size=8) for n in graph.nodes}
    found = {}
    for size in (1, 2, 3, 4):
        for group in itertools.combinations(variables, size):
            points = random.normal(size=(12, len(variables)))
            points[:, [variables.index(name) for name in group]] = random.normal(size=size)
            values = {name: points[:, i] for i, name in enumerate(variables)}
            slopes = {name: np.eye(len(variables))[i] + 0 * points for i, name in enumerate(variables)}
            for node in graph.nodes:  # tanh units of the inputs, and the chain rule
                inputs = np.stack([values[i] for i in node.inputs], axis=1)
                below = np.stack([slopes[i] for i in node.inputs], axis=1)
                units = np.tanh(inputs @ weights[node.name].T + shifts[node.name])
                values[node.name] = units.sum(axis=1)
                slopes[node.name] = np.einsum("pu,ui,piv->pv", 1 - units**2, weights[node.name], below)
            gradients = slopes[graph.output.name][:, [variables.index(name) for name in group]]
            found[group] = int(np.linalg.matrix_rank(gradients, tol=1e-9 * np.linalg.norm(gradients, 2)))
    return found


@each("seed", range(40))
def test_what_is_taken_away_shows_in_no_gradient(seed):
    full = tangled(seed)
    short = canonical(full)
    shown = ranks(full, seed)
    assert shown == ranks(short, seed + 1000)
    assert {name for (name,), rank in ((g, r) for g, r in shown.items() if len(g) == 1) if rank} == set(short.variables)


def test_enough_of_the_tangled_graphs_are_reduced_and_enough_are_not():
    kept = [is_reduced(tangled(seed)) for seed in range(40)]
    assert 5 <= sum(kept) <= 35


def test_every_two_binary_trees_of_five_variables_show_different_gradients():
    random = np.random.default_rng(0)
    trees = {structure_key(t): t for t in (random_tree(5, 2, random) for _ in range(40))}
    shown = [tuple(ranks(tree, 7).values()) for tree in trees.values()]
    assert len(set(shown)) == len(trees) > 20


@each("seed", range(12))
def test_names_and_orders_do_not_matter(seed):
    for one in (tangled(seed), random_dag(8, 3, 3, None, np.random.default_rng(seed))):
        other = renamed(one, seed)
        assert equivalent(one, other)
        assert canonical(one) == canonical(other)
        assert hash(structure_key(one, kinds=True)) == hash(structure_key(other, kinds=True))


@each("seed", range(12))
def test_the_canonical_form_is_its_own(seed):
    form = canonical(tangled(seed))
    assert canonical(form) == form
    assert is_reduced(form)


@each("seed", range(12))
def test_a_leaf_that_moves_makes_another_tree(seed):
    random = np.random.default_rng(seed)
    one = random_tree(7, 3, random)
    assert not equivalent(one, shuffled(one, random))
    low = next(n for n in one.nodes if n != one.output and set(n.inputs) & set(one.variables))
    leaf = next(name for name in low.inputs if name in one.variables)
    nodes = [Node(n.name, tuple(i for i in n.inputs if n is not low or i != leaf), n.kind) for n in one.nodes]
    nodes[-1] = Node(nodes[-1].name, (*nodes[-1].inputs, leaf))
    assert not equivalent(one, CompositionalGraph(one.variables, tuple(nodes)))


@pytest.mark.parametrize("seed", range(8))
def test_structures_are_equal_exactly_when_some_matching_of_nodes_makes_them_so(seed):
    """Against VF2 of networkx on graphs that cannot be reduced, many of which look alike."""
    random = np.random.default_rng(seed)
    pool = [random_dag(4, 3, 2, None, random) for _ in range(6)]
    for one, other in itertools.combinations(pool, 2):
        matched = networkx.is_isomorphic(
            named(one), named(other), node_match=lambda a, b: a["variable"] == b["variable"]
        )
        assert equivalent(one, other) == matched
        assert (structure_key(one) == structure_key(other)) == matched


def named(graph: CompositionalGraph) -> networkx.DiGraph:
    net = graph.to_networkx()
    networkx.set_node_attributes(net, {n: n if n in graph.variables else "" for n in net}, "variable")
    return net


@each("seed", range(20))
def test_the_lowest_cut_is_the_smallest_and_nothing_below_it_cuts_as_well(seed):
    one = tangled(seed)
    nodes = {node.name: node for node in one.nodes}
    found = lowest_cut(nodes, one.output.inputs)
    names = [name for name in (*one.variables, *nodes) if name != one.output.name]
    cuts = [set(cut) for size in range(1, 6) for cut in itertools.combinations(names, size) if cuts_all(one, set(cut))]
    least = min(map(len, cuts))
    assert len(found) == least
    assert cuts_all(one, set(found))
    for other in (cut for cut in cuts if len(cut) == least):
        assert all(blocked(one, name, set(found)) for name in other), "every other lies on it or above"


def cuts_all(graph: CompositionalGraph, cut: set[str]) -> bool:
    return blocked(graph, graph.output.name, cut)


def blocked(graph: CompositionalGraph, name: str, cut: set[str]) -> bool:
    """Whether every path from a variable up to `name` meets the cut."""
    if name in cut:
        return True
    return name in graph.node and all(blocked(graph, i, cut) for i in graph.node[name].inputs)


SAME = {
    "a univariate node": (graph("a b", u="a", y="u b"), graph("a b", y="a b")),
    "two functions of one variable": (graph("a b", u="a", v="a", y="u v b"), graph("a b", y="a b")),
    "a function of the output": (graph("a b c", h="a b", g="h c", y="g"), graph("a b c", h="a b", y="h c")),
    "a variable nothing reads": (graph("a b c", y="a b"), graph("a b", y="a b")),
    "an input that the node sees anyway": (graph("a b c", h="a b", y="a h c"), graph("a b c", y="a b c")),
    "as many quantities as variables": (graph("a b c", h="a b", k="a b", y="h k c"), graph("a b c", y="a b c")),
    "more quantities than variables": (
        graph("a b c d", h="a b c", k="a b c", l="a b c", m="a b c", y="h k l m d"),
        graph("a b c d", y="a b c d"),
    ),
    "three quantities of three that look different": (
        graph("a b c d", p="a b", q="p c", r="b c", s="a r", t="a c", y="q s t d"),
        graph("a b c d", y="a b c d"),
    ),
    "a term another takes in": (graph("a b c d", h="a b", y="h a c d +"), graph("a b c d", h="a b", y="h c d +")),
    "two terms of the same variables": (
        graph("a b c d", h="a b", k="a b", y="h k c d +"),
        graph("a b c d", h="a b", y="h c d +"),
    ),
    "a product of three for a sum of three": (graph("a b c", y="a b c +"), graph("a b c", y="a b c *")),
    "a product of two for any node of two": (graph("a b c", h="a b *", y="h c +"), graph("a b c", h="a b", y="h c")),
    "Kolmogorov and Arnold of two variables": (kolmogorov_arnold(2), CompositionalGraph.dense(["x1", "x2"])),
}


@each("case", SAME)
def test_differences_that_no_data_shows(case):
    one, other = SAME[case]
    assert equivalent(one, other)
    assert structure_key(one) == structure_key(other)


DIFFERENT = {
    "a nest of general nodes is no dense node": (graph("a b c", h="a b", y="h c"), graph("a b c", y="a b c")),
    "a shared node is not two of the same inputs": (
        graph("a b c d", h="a b", p="h c", q="h d", y="p q"),
        graph("a b c d", h="a b", k="a b", p="h c", q="k d", y="p q"),
    ),
    "a sum of three is no node of three": (graph("a b c", y="a b c +"), graph("a b c", y="a b c")),
    "a function of a sum in a sum is no sum": (
        graph("a b c d", h="a b c +", y="h d +"),
        graph("a b c d", y="a b c d +"),
    ),
    "a term that only shares variables is kept": (
        graph("a b c d e", w="a c", u="w b", t="a b", y="u t d e +"),
        graph("a b c d e", w="a c", u="w b", y="u d e +"),
    ),
    "a variable more": (graph("a b c", y="a b c"), graph("a b c", y="a b")),
    "other variables": (graph("a b c", y="b c"), graph("a b c", y="a b")),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_differences_that_data_can_show(case):
    one, other = DIFFERENT[case]
    assert not equivalent(one, other)
    assert structure_key(one) != structure_key(other)


def test_kinds_count_when_they_are_asked_for():
    total, times, any_two = (graph("a b", y=f"a b {sign}") for sign in ("+", "*", ""))
    for one, other in itertools.combinations((total, times, any_two), 2):
        assert equivalent(one, other)
        assert not equivalent(one, other, kinds=True)
    wrapped = graph("a b c", h="a b c +", y="h")
    assert equivalent(wrapped, graph("a b c", y="a b c +"))
    assert not equivalent(wrapped, graph("a b c", y="a b c +"), kinds=True), "a function of a sum is no sum"


@pytest.mark.parametrize("text", ["a + (b + (c + d))", "(a + b) + (c + d)", "((a + b) + c) + d", "d + b + (c + a)"])
def test_brackets_of_a_sum_do_not_matter(text):
    flat = graph("a b c d", y="a b c d +")
    assert equivalent(formula_graph(text), flat, kinds=True)
    assert equivalent(formula_graph(text.replace("+", "*")), graph("a b c d", y="a b c d *"), kinds=True)


def test_pairwise_sums_are_flattened_on_request():
    nested = graph("a b c d", h="a b +", k="c d +", y="h k +")
    assert not equivalent(nested, graph("a b c d", y="a b c d +"))
    assert equivalent(flattened(nested), graph("a b c d", y="a b c d +"), kinds=True)
    kept = graph("a b c", h="a b +", p="h c *", y="h p +")
    assert flattened(kept) == kept, "a sum that is read twice stays"
    mixed = graph("a b c d", h="a b *", k="h c +", y="k d +")
    assert equivalent(flattened(mixed), graph("a b c d", h="a b *", y="h c d +"), kinds=True)


def test_a_bracketing_recovers_a_sum_but_a_sum_no_bracketing():
    truth = formula_graph("a*b + c + d*g*f")
    found = graph("a b c d g f", h="a b", k="g f", m="d k", n="m c", y="n h")
    assert recovers(found, truth)
    assert recovers(truth, truth)
    assert not recovers(truth, found), "a sum states more than is true of a nest"
    assert not recovers(graph("a b c d g f", h="a c", k="g f", m="d k", n="m b", y="n h"), truth)
    assert not recovers(CompositionalGraph.dense("abcdgf"), truth)
    assert recovers(binary_tree(4), binary_tree(4))
    assert not recovers(shuffled(binary_tree(4), np.random.default_rng(0)), binary_tree(4))


def test_nodes_that_look_alike_in_every_way_are_told_apart_by_how_they_are_paired():
    """Six nodes of the same two variables, read in pairs: in one ring, or in two rings of three. Refinement of colours
    cannot tell these, a matching can."""

    def ring(*pairs: tuple[int, int]) -> CompositionalGraph:
        nodes = [Node(f"h{i}", ("a", "b", "c")) for i in range(6)]
        nodes += [Node(f"p{i}{j}", (f"h{i}", f"h{j}")) for i, j in pairs]
        top = Node("y", tuple(n.name for n in nodes[6:]), "sum")
        return CompositionalGraph(("a", "b", "c"), (*nodes, top))

    one = ring((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0))
    two = ring((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3))
    assert not equivalent(one, two)
    assert equivalent(one, renamed(one, 1))
    assert equivalent(two, renamed(two, 1))
