"""Circuits against Python's own Boolean operators, networkx and arithmetic; networks against circuits, bit by bit."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.claims.expressivity.circuit_sizes import random_circuit
from theodolite.errors import BadInput
from theodolite.nets.size import count_parameters
from theodolite.witness.circuit import Circuit, Gate
from theodolite.witness.compile import to_relu, to_threshold
from theodolite.witness.gates import PARITIES, Example, every_input, full_adder, half_adder, nand_only, parity, xor
from theodolite.witness.threshold import UnitNetwork

NAMES = ("a", "b", "c", "d")


def said(network: UnitNetwork, bits: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return network(torch.from_numpy(bits).double()).numpy()


def expressions() -> st.SearchStrategy[str]:
    names = st.sampled_from([*NAMES, "0", "1"])
    return st.recursive(
        names,
        lambda inner: st.one_of(
            st.builds(lambda a, op, b: f"({a} {op} {b})", inner, st.sampled_from("&|^"), inner),
            st.builds(lambda a, op, b: f"({a} {op} {b})", inner, st.sampled_from(["and", "or"]), inner),
            st.builds(lambda a: f"(not {a})", inner),
        ),
        max_leaves=12,
    )


@given(expressions())
def test_an_expression_means_what_python_says_and_so_do_its_networks(text):
    circuit = Circuit.from_expression(text)
    bits = every_input(len(circuit.inputs))
    # Python's own operators on booleans; only texts generated above are evaluated.
    code = compile(text, "expression", "eval")
    values = [bool(eval(code, {}, dict(zip(circuit.inputs, map(bool, row), strict=True)))) for row in bits]
    wanted = np.array(values)[:, None]
    assert (circuit.evaluate(bits) == wanted).all()
    for compiler, layered in itertools.product((to_threshold, to_relu), (False, True)):
        assert (said(compiler(circuit, layered=layered), bits) == wanted).all()


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 25))
def test_compiled_random_circuits_agree_with_the_circuit(seed, inputs, gates):
    circuit = random_circuit(np.random.default_rng(seed), inputs, gates)
    bits = every_input(inputs)
    for compiler in (to_threshold, to_relu):
        assert (said(compiler(circuit, layered=True), bits) == circuit.evaluate(bits)).all()
        assert (said(compiler(circuit), bits) == circuit.evaluate(bits)).all()


@given(st.integers(0, 5).flatmap(lambda n: st.lists(st.booleans(), min_size=2**n, max_size=2**n)))
def test_a_truth_table_becomes_a_circuit_with_that_table(table):
    circuit = Circuit.from_truth_table(table)
    found = circuit.evaluate(every_input(len(circuit.inputs)))
    assert found[:, 0].tolist() == table
    assert (said(to_relu(circuit), every_input(len(circuit.inputs)))[:, 0] == table).all()


def test_a_graph_of_networkx_is_read_with_its_kinds_and_outputs():
    graph = nx.DiGraph()
    graph.add_nodes_from(["p", "q", "r"], kind="input")
    graph.add_node("two", kind="threshold", least=2)
    graph.add_node("odd", kind="xor")
    graph.add_edges_from([(i, gate) for i in "pqr" for gate in ("two", "odd")])
    circuit = Circuit.from_graph(graph)
    assert circuit.inputs == ("p", "q", "r")
    assert circuit.outputs == ("two", "odd")
    total = every_input(3).sum(axis=1)
    assert (circuit.evaluate(every_input(3)) == np.stack([total >= 2, total % 2 == 1], axis=1)).all()
    assert circuit.depth == nx.dag_longest_path_length(graph)


def test_depth_is_the_longest_path_of_the_graph():
    for seed in range(10):
        circuit = random_circuit(np.random.default_rng(seed), 4, 15)
        graph = nx.DiGraph((read, name) for name, gate in circuit.gates.items() for read in gate.reads)
        graph.add_nodes_from([*circuit.gates, *circuit.inputs])
        below = nx.ancestors(graph, circuit.outputs[0]) | {circuit.outputs[0]}
        longest = nx.dag_longest_path_length(graph.subgraph(below))
        constants = any(not circuit.gates[name].reads for name in below if name in circuit.gates)
        assert circuit.depth in ({longest, longest + 1} if constants else {longest})


def test_a_layered_network_reads_the_layer_before_alone():
    network = to_threshold(parity(6, "iterated").circuit, layered=True)
    firsts = [layer.start for layer in network.layers]
    for layer, before in itertools.pairwise(zip(network.layers, firsts, strict=True)):
        assert before[0].first + int(before[0].indices[1].min()) >= layer[1]
    loose = to_threshold(parity(6, "iterated").circuit)
    assert network.units > loose.units  # the copies are counted
    assert network.depth == loose.depth


@pytest.mark.parametrize("example", [xor(), half_adder(), full_adder(), *(parity(5, form) for form in PARITIES)])
def test_textbook_circuits_are_right_in_every_basis(example):
    bits = every_input(len(example.circuit.inputs))
    wanted = np.array([example.truth(row) for row in bits.tolist()])
    assert example.errors() == 0
    only = nand_only(example.circuit)
    assert {gate.kind for gate in only.gates.values()} == {"nand"}
    assert {len(gate.reads) for gate in only.gates.values()} == {2}
    assert Example(only, example.truth).errors() == 0
    for network in (to_threshold(example.circuit), to_relu(example.circuit), to_threshold(only)):
        assert (said(network, bits) == wanted).all()


def test_known_sizes_of_adders_from_nand_gates():
    assert len(nand_only(half_adder().circuit).gates) == 5
    assert len(nand_only(full_adder().circuit).gates) == 9


def test_an_example_that_is_wrong_counts_its_errors():
    assert Example(xor().circuit, lambda row: [row[0]]).errors() == 2


def test_parameters_are_the_weights_that_are_not_zero_and_one_bias_a_unit():
    network = to_threshold(Circuit.from_expression("a & b & c"))
    assert (network.units, count_parameters(network)) == (2, 2 * (2 + 1))
    single = to_threshold(Circuit(("a", "b", "c"), {"g": Gate("majority", ("a", "b", "c"))}, ("g",)))
    assert (single.units, single.depth, count_parameters(single)) == (1, 1, 4)


@each(
    ("make", "words"),
    [
        (lambda: Circuit(("a",), {"g": Gate("and", ("a", "h")), "h": Gate("not", ("g",))}, ("g",)), "cycle .*g.*h"),
        (lambda: Circuit(("a",), {"g": Gate("and", ("a", "zz"))}, ("g",)), "'g' reads 'zz'"),
        (lambda: Circuit(("a",), {"g": Gate("adn", ("a", "a"))}, ("g",)), "did you mean 'and'"),
        (lambda: Circuit(("a",), {"g": Gate("not", ("a", "a"))}, ("g",)), "'g' is of kind 'not', which reads 1"),
        (lambda: Circuit(("a",), {"g": Gate("and", ())}, ("g",)), "reads 1 or more"),
        (lambda: Circuit(("a",), {}, ("b",)), "'b' is neither"),
        (lambda: Circuit(("a",), {}, ()), "no such output"),
        (lambda: Circuit(("a",), {"a": Gate("true")}, ("a",)), "'a' stands for two"),
        (lambda: Circuit(("a",), {}, ("a",)).evaluate(np.zeros((1, 2))), "1 inputs, not 2"),
        (lambda: Circuit.from_graph(nx.DiGraph([("a", "b")])), "'b' has no kind"),
        (lambda: Circuit.from_graph(nx.DiGraph()), "no such output"),
        (lambda: Circuit.from_truth_table([1, 0, 1]), "2\\^n answers, not 3"),
        (lambda: Circuit.from_expression("a +"), "not a Boolean expression"),
        (lambda: Circuit.from_expression("__import__('os').system('true')"), "not Boolean algebra"),
        (lambda: Circuit.from_expression("a + b"), "'a \\+ b' is not Boolean algebra"),
        (lambda: Circuit.from_expression("2 & a"), "'2' is not Boolean algebra"),
        (lambda: Circuit.from_expression("~" * 4000 + "a"), "nested too deeply|not a Boolean expression"),
        (lambda: nand_only(Circuit(("a", "b"), {"g": Gate("threshold", ("a", "b"), 2)}, ("g",))), "no NAND form"),
        (lambda: parity(3, "spiral"), "no form 'spiral'"),
    ],
)
def test_a_circuit_that_is_none_is_refused_in_a_sentence(make, words):
    with pytest.raises(BadInput, match=words):
        make()


def test_a_cycle_among_graph_nodes_is_named():
    graph = nx.DiGraph([("u", "v"), ("v", "w"), ("w", "u")])
    nx.set_node_attributes(graph, "and", "kind")  # pyright: ignore[reportCallIssue]
    with pytest.raises(BadInput, match="cycle") as caught:
        Circuit.from_graph(graph)
    assert all(name in str(caught.value) for name in "uvw")


@pytest.mark.parametrize("rows", [[[2, -1]], [[1, -1]], [[0.5, 1]]])
def test_what_is_no_bit_is_refused(rows):
    with pytest.raises(BadInput, match=r"bits are 0 and 1, not .*: turn signs into bits first"):
        Circuit.from_expression("a & b").evaluate(rows)
    with pytest.raises(BadInput, match="bits are 0 and 1, not 2"):
        Circuit.from_truth_table([0, 1, 1, 2])


def test_an_undirected_graph_is_refused():
    with pytest.raises(BadInput, match=r"pass a networkx\.DiGraph"):
        Circuit.from_graph(nx.Graph([("a", "x")]))
