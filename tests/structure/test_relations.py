"""A function obeys the relations of its own graph and breaks those of graphs that are too tight for it."""

import numpy as np
import pytest

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import equivalent
from theodolite.structure.data.black_box import CallableSource
from theodolite.structure.search.relations import Laboratory
from theodolite.structure.search.search import search
from theodolite.structure.search.shrink import tightest
from theodolite.structure.surrogate.evidence import gather
from theodolite.tasks.shared.constituents import ComposedFunction


def graph_of(text):
    """'h=abs y=hc': node = inputs of one letter each."""
    nodes = [Node(name, tuple(inputs)) for name, inputs in (part.split("=") for part in text.split())]
    names = {name for node in nodes for name in node.inputs} - {node.name for node in nodes}
    return CompositionalGraph(tuple(sorted(names)), tuple(nodes))


def laboratory(graph, seed=0):
    generator = np.random.default_rng(seed)
    function = ComposedFunction(graph, generator)
    source = CallableSource(function, [(-1.0, 1.0)] * len(graph.variables), graph.variables)
    return Laboratory(source, generator, {name: frozenset((i,)) for i, name in enumerate(graph.variables)})


# the graph of the function, one that is too tight for it, and one that is wider than need be
CASES = {
    "an input of two nodes": ("p=as q=bs y=pqc", "p=as y=pbc", "y=abcs"),
    "a node of shared inputs and one of its own": (
        "p=ast q=bs r=ct y=pqr",
        "p=as q=bs r=ct y=pqr",
        "q=bs r=ct y=aqrst",
    ),
    "one below the other": ("p=as q=pt r=bs u=ct y=qru", "p=at q=ps r=bs u=ct y=qru", "q=ast r=bs u=ct y=qru"),
    "once more above all": ("p=as q=pbc y=qs", "p=as y=pbc", "y=abcs"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_breaks_no_relation_of_its_own_graph_and_some_of_a_tighter_one(name):
    truth, tighter, wider = (graph_of(text) for text in CASES[name])
    lab = laboratory(truth)
    assert lab.failures(truth, most=100) == []
    assert lab.failures(wider, most=100) == []
    assert lab.failures(tighter, most=100)
    assert lab.worth(truth) > lab.worth(wider)


@pytest.mark.parametrize("name", ["an input of two nodes", "once more above all"])
def test_the_search_for_a_tighter_graph_ends_at_the_right_one(name):
    truth, _, wider = (graph_of(text) for text in CASES[name])
    assert equivalent(tightest(wider, laboratory(truth)), truth)


def test_a_node_that_works_on_all_its_inputs_is_left_alone():
    truth = graph_of("y=abcd")
    assert equivalent(tightest(truth, laboratory(truth)), truth)


def test_a_shared_variable_and_a_shared_node_are_traced_to_their_nodes():
    truth = graph_of("p=hw q=ew r=ql u=prb z=uh")
    generator = np.random.default_rng(1)
    function = ComposedFunction(truth, generator)
    source = CallableSource(function, [(-1.0, 1.0)] * len(truth.variables), truth.variables)
    found = search(gather(source, generator), source, generator)
    assert equivalent(found.graph, truth)
    assert set(found.confidence) == set(found.graph.edges)
    assert all(0 <= sure <= 1 for sure in found.confidence.values())
