"""Families of graphs: shapes by hand, counts of all trees, and what a random DAG promises."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from tests.each import each
from theodolite.errors import BadInput, UnknownName
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import equivalent, is_reduced, structure_key
from theodolite.graphs.families import (
    additive,
    binary_tree,
    convolutional_tree,
    kolmogorov_arnold,
    named_graph,
    named_graphs,
    random_dag,
    random_tree,
    shuffled,
    variable_names,
    with_extra_edges,
)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 13, 16, 32])
def test_a_binary_tree_joins_n_variables_in_n_minus_one_pairs_and_the_fewest_levels(n):
    graph = binary_tree(n)
    assert graph.used == variable_names(n)
    assert graph.is_tree
    assert len(graph.nodes) == max(1, n - 1)
    assert set(graph.fan_ins) == ({2} if n > 1 else {1})
    assert graph.depth == max(1, (n - 1).bit_length())


def test_the_binary_tree_of_eight_by_hand():
    assert [node.inputs for node in binary_tree(8).nodes] == [
        ("x1", "x2"), ("x3", "x4"), ("x5", "x6"), ("x7", "x8"), ("h1", "h2"), ("h3", "h4"), ("h5", "h6"),
    ]  # fmt: skip


def test_windows_overlap_by_what_the_stride_leaves():
    apart = convolutional_tree(9, 3, stride=3)
    assert apart.is_tree
    assert [node.inputs for node in apart.nodes[:3]] == [("x1", "x2", "x3"), ("x4", "x5", "x6"), ("x7", "x8", "x9")]
    shared = convolutional_tree(7, 3)
    assert not shared.is_tree
    assert [node.inputs for node in shared.nodes] == [
        ("x1", "x2", "x3"), ("x3", "x4", "x5"), ("x5", "x6", "x7"), ("h1", "h2", "h3"),
    ]  # fmt: skip
    pyramid = convolutional_tree(5, 2, stride=1)
    assert len(pyramid.nodes) == 4 + 3 + 2 + 1


@each("n", [1, 2, 3, 6, 11, 24])
@each(("fan_in", "stride"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (5, 2), (5, None)])
def test_every_window_is_of_neighbours_and_every_variable_is_read(n, fan_in, stride):
    graph = convolutional_tree(n, fan_in, stride)
    place = {name: i for i, name in enumerate(graph.variables)}
    assert graph.used == graph.variables
    assert max(graph.fan_ins) <= fan_in
    for node in graph.nodes:
        below = sorted(place[name] for name in graph.reach[node.name])
        assert below == list(range(below[0], below[-1] + 1)), "no gap in what a node sees"


@pytest.mark.parametrize(
    ("n", "fan_in", "count", "draws"),
    [(3, 3, 4, 60), (4, 4, 26, 700), (4, 2, 15, 200)],
    ids=["Schröder 3", "Schröder 4", "5!!"],
)
def test_random_trees_are_all_the_trees_there_are(n, fan_in, count, draws):
    """Labelled trees of any fan-in: Schröder's fourth problem, 1, 4, 26, …; binary ones: (2n − 3)!!."""
    random = np.random.default_rng(0)
    found = {structure_key(random_tree(n, fan_in, random)) for _ in range(draws)}
    assert len(found) == count


def test_variables_enter_a_random_tree_at_mixed_levels():
    random = np.random.default_rng(0)
    graphs = [random_tree(10, 3, random) for _ in range(20)]
    assert all(g.is_tree and g.used == g.variables and set(g.fan_ins) <= {2, 3} for g in graphs)
    high = [g for g in graphs if any(g.level[n.name] > 2 and set(n.inputs) & set(g.variables) for n in g.nodes)]
    assert len(high) > 10


@pytest.mark.parametrize(
    ("n", "fan_in", "overlap", "depth"),
    [(8, 2, 0, 3), (8, 2, 3, 5), (8, 3, 4, 3), (12, 3, 6, None), (16, 4, 8, 3), (5, 5, 2, 2)],
)
def test_a_random_dag_keeps_its_promises(n, fan_in, overlap, depth):
    random = np.random.default_rng(3)
    for _ in range(8):
        graph = random_dag(n, fan_in, overlap, depth, random)
        net = graph.to_networkx()
        assert networkx.is_directed_acyclic_graph(net)
        assert graph.used == graph.variables
        assert set(graph.fan_ins) <= set(range(2, fan_in + 1))
        assert depth is None or graph.depth <= depth
        assert sum(degree - 1 for _, degree in net.out_degree() if degree) == overlap
        assert graph.is_tree == (overlap == 0)
        assert is_reduced(graph), "no further use is trivial"


def test_the_same_generator_gives_the_same_graph():
    one, other = (random_dag(10, 3, 3, 4, np.random.default_rng(5)) for _ in range(2))
    assert one == other
    assert one != random_dag(10, 3, 3, 4, np.random.default_rng(6))


def test_trees_within_a_depth_are_of_many_shapes():
    random = np.random.default_rng(0)
    keys = {structure_key(random_dag(4, 2, 0, 2, random)) for _ in range(60)}
    assert len(keys) == 3, "two levels of pairs: the three ways to pair four variables"
    assert len({structure_key(random_dag(4, 4, 0, 3, random)) for _ in range(500)}) == 26


def test_the_kolmogorov_arnold_shape_has_only_univariate_functions_and_sums():
    graph = kolmogorov_arnold(3)
    univariate = [node for node in graph.nodes if node.kind == "general"]
    sums = [node for node in graph.nodes if node.kind == "sum"]
    assert {len(node.inputs) for node in univariate} == {1}
    assert len(univariate) == 7 * 3 + 7
    assert sorted(len(node.inputs) for node in sums) == [3] * 7 + [7]


def test_named_graphs_are_the_families_and_unknown_names_are_answered():
    assert named_graph("binary-tree", 4) == binary_tree(4)
    assert named_graph("convolutional", 9, 3) == convolutional_tree(9, 3)
    assert named_graph("dense", 4).is_dense
    assert named_graph("additive", ["a", "b"]) == additive(["a", "b"])
    assert additive(3).output == Node("y", ("x1", "x2", "x3"), "sum")
    for name in named_graphs:
        assert named_graph(name, 6, 3).used == variable_names(6)
    with pytest.raises(UnknownName, match="did you mean 'binary-tree'"):
        named_graph("binary_tre", 4)


def test_nodes_avoid_the_names_of_columns():
    names = ["y", "h1", "h2", "s1", "g1", "x"]
    random = np.random.default_rng(0)
    for graph in (binary_tree(names), kolmogorov_arnold(names), random_dag(names, 2, 3, None, random)):
        assert graph.variables == tuple(names)


@pytest.mark.parametrize("seed", range(6))
def test_a_shuffled_graph_has_the_same_shape_and_another_structure(seed):
    random = np.random.default_rng(seed)
    graph = random_dag(6, 3, 1, None, random)
    wrong = shuffled(graph, random)
    assert not equivalent(graph, wrong)
    assert wrong.fan_ins == graph.fan_ins
    assert networkx.is_isomorphic(graph.to_networkx(), wrong.to_networkx())


def test_shuffling_leaves_unused_variables_alone():
    graph = CompositionalGraph(("idle", *variable_names(4)), binary_tree(4).nodes)
    assert shuffled(graph, np.random.default_rng(0)).used == variable_names(4)


@pytest.mark.parametrize("seed", range(6))
def test_a_supergraph_has_all_edges_and_so_many_more(seed):
    graph = binary_tree(8)
    larger = with_extra_edges(graph, 5, np.random.default_rng(seed))
    assert set(larger.edges) > set(graph.edges)
    assert len(larger.edges) == len(graph.edges) + 5
    assert not equivalent(larger, graph)
    assert with_extra_edges(graph, 0, np.random.default_rng(seed)) == graph


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: binary_tree(0), "0 variables"),
        (lambda r: binary_tree("x1"), "one text"),
        (lambda r: binary_tree(["a", "a"]), "'a' is given twice"),
        (lambda r: convolutional_tree(8, 1), "fan-in of 1"),
        (lambda r: convolutional_tree(8, 3, stride=4), "stride from 1 to 3"),
        (lambda r: random_tree(8, 1, r), "fan-in of 1"),
        (lambda r: random_dag(9, 2, 0, 3, r), "9 variables do not fit under 3 levels of fan-in 2"),
        (lambda r: random_dag(8, 2, 1, 3, r), "no room for an overlap of 1, at best for 0"),
        (lambda r: random_dag(8, 2, -1, 3, r), "overlap of -1"),
        (lambda r: shuffled(CompositionalGraph.dense("abc"), r), "no exchange of variables"),
        (lambda r: with_extra_edges(CompositionalGraph.dense("abc"), 1, r), "room for 0 further edges"),
    ],
)
def test_what_cannot_be_built_is_refused(call, message):
    with pytest.raises(BadInput, match=message):
        call(np.random.default_rng(0))
