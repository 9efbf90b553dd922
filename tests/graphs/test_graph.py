"""Compositional graphs: what they refuse, and JSON and networkx both ways."""

from __future__ import annotations

import json

import networkx
import numpy as np
import pytest

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import kolmogorov_arnold, random_dag


def drawn(seed: int) -> CompositionalGraph:
    return random_dag(7, 3, 3, None, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(10))
def test_json_and_networkx_give_the_same_graph_back(seed):
    graph = drawn(seed)
    assert CompositionalGraph.from_json(json.loads(json.dumps(graph.to_json()))) == graph
    assert CompositionalGraph.from_networkx(graph.to_networkx()) == graph


def test_kinds_and_unused_variables_survive_both_ways():
    graph = CompositionalGraph(("a", "idle", "b"), (Node("s", ("b", "a"), "sum"), Node("y", ("s", "a"), "product")))
    assert CompositionalGraph.from_json(graph.to_json()) == graph
    back = CompositionalGraph.from_networkx(graph.to_networkx())
    assert back == graph
    assert back.used == ("a", "b")


def test_a_plain_networkx_graph_is_read_by_its_edges():
    graph = CompositionalGraph.from_networkx(networkx.DiGraph([(1, "h"), (2, "h"), ("h", "out"), (3, "out")]))
    assert set(graph.variables) == {"1", "2", "3"}
    assert graph.output == Node("out", ("h", "3"))


@pytest.mark.parametrize("seed", range(10))
def test_levels_reach_and_depth_are_those_of_networkx(seed):
    graph = drawn(seed)
    net = graph.to_networkx()
    assert networkx.is_directed_acyclic_graph(net)
    assert graph.depth == networkx.dag_longest_path_length(net, weight=None)
    assert set(graph.edges) == set(net.edges)
    for name in net:
        below = networkx.ancestors(net, name) | {name}
        assert graph.reach[name] == below & set(graph.variables)
    assert graph.is_tree == all(degree <= 1 for _, degree in net.out_degree())


def test_nodes_may_be_given_in_any_order():
    graph = kolmogorov_arnold(3)
    random = np.random.default_rng(0)
    for _ in range(5):
        mixed = [graph.nodes[i] for i in random.permutation(len(graph.nodes))]
        assert CompositionalGraph(graph.variables, tuple(mixed)).output == graph.output


def test_the_dense_graph_avoids_the_names_of_variables():
    graph = CompositionalGraph.dense(["y", "y_", "x"])
    assert graph.is_dense
    assert graph.output == Node("y__", ("y", "y_", "x"))


@pytest.mark.parametrize(
    ("variables", "nodes", "message"),
    [
        ((), (Node("y", ("a",)),), "at least one variable"),
        (("a",), (), "at least one node"),
        (("a", "a"), (Node("y", ("a",)),), "'a' is given twice"),
        (("a",), (Node("a", ("a",)),), "'a' is given twice"),
        (("a",), (Node("y", ("b",)),), "'y' reads 'b', which is neither"),
        (("a",), (Node("y", ()),), "'y' has no inputs"),
        (("a",), (Node("y", ("a", "a")),), "'y' names an input twice"),
        (("a",), (Node("y", ("a",), "mean"),), "unknown kind 'mean'"),  # type: ignore[arg-type]
        (("a",), (Node("g", ("a", "h")), Node("h", ("g",)), Node("y", ("h",))), "cycle through or below 'g', 'h'"),
        (("a",), (Node("y", ("a", "y")),), "cycle"),
        (("a",), (Node("g", ("a",)), Node("y", ("a",))), "'g', 'y' all feed nothing"),
    ],
)
def test_what_is_no_graph_is_refused_by_name(variables, nodes, message):
    with pytest.raises(BadInput, match=message):
        CompositionalGraph(variables, nodes)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "no compositional graph"),
        ({"schema": 2}, "schema 1"),
        ({"schema": 1, "variables": ["a"], "nodes": [], "edges": []}, "no field 'edges'"),
        ({"schema": 1, "variables": [1], "nodes": []}, "'variables', a list of names"),
        ({"schema": 1, "variables": ["a"], "nodes": [{"name": "y"}]}, "a node needs"),
        ({"schema": 1, "variables": ["a"], "nodes": [{"name": "y", "inputs": ["a"], "sort": 1}]}, "field 'sort'"),
    ],
)
def test_documents_of_another_shape_are_refused(document, message):
    with pytest.raises(BadInput, match=message):
        CompositionalGraph.from_json(document)


def test_an_undirected_graph_is_refused():
    with pytest.raises(BadInput, match="directed"):
        CompositionalGraph.from_networkx(networkx.Graph([("a", "y")]))  # type: ignore[arg-type]
