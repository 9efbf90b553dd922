"""Graphs of compiled machines: right, of bounded fan-in, and no larger than need be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from theodolite.claims.sparsity.compiled_sparsity import bounded, evaluate, exponents, forms_of, graph_of
from theodolite.measures import measure
from theodolite.witness.compile import to_threshold
from theodolite.witness.gates import parity
from theodolite.witness.threshold import Affine


@pytest.mark.parametrize("most", [2, 3])
def test_splitting_long_sums_changes_no_answer(most):
    circuit = parity(6).circuit
    network = to_threshold(circuit)
    forms, inputs = forms_of(network), len(circuit.inputs)
    assert max(len(form.weights) for _, form in forms) > most
    small, output = bounded(forms, inputs, int(network.chosen[0]), most)
    bits = np.array(list(product((0, 1), repeat=inputs)))
    assert (evaluate(small, bits)[:, output] == circuit.evaluate(bits)[:, 0]).all()
    graph = graph_of(small, inputs, output)
    assert max(graph.fan_ins) == most
    assert graph.output.name == f"u{output - inputs}"


def test_units_that_the_output_does_not_read_are_left_out():
    forms = [(True, Affine(-1, {0: 1})), (True, Affine(-1, {1: 1})), (True, Affine(-1, {2: 1, 0: 1}))]
    small, output = bounded(forms, 2, 4, 2)
    assert len(small) == 2
    assert output == 3


@pytest.mark.parametrize("machine", ["parity", "anbn", "increment"])
def test_compiled_machines_are_right_and_read_two_numbers_a_node(machine):
    config = {"machine": machine, "steps": [2, 6], "length": 4, "fan_in": 2}
    for size in measure("compiled-graph", config, 0, "cpu")["sizes"]:
        assert size["wrong"] == 0
        assert size["words"] == 31
        assert size["fan_in"] == 2


def test_acceptance_as_a_graph_does_not_answer_alike_for_all_words():
    """Or a graph of one constant would be right on machines that never halt."""
    from theodolite.witness.machines import machines
    from theodolite.witness.turing import compile_machine

    compiled = compile_machine(machines["parity"].machine, 6, 4)
    forms, inputs = forms_of(compiled.network), compiled.network.inputs
    small, output = bounded(forms, inputs, inputs + len(forms) - 2, 2)
    words = ["".join(w) for w in product("01", repeat=4)]
    said = evaluate(small, compiled.encode(words).numpy())[:, output]
    assert said.tolist() == [word.count("1") % 2 for word in words]


def test_random_truth_tables_are_right_and_grow():
    row = measure("random-function-graph", {"bits": [3, 5, 7], "draws": 2, "fan_in": 2}, 0, "cpu")
    assert all(size["wrong"] == 0 and size["fan_in"] == 2 for size in row["sizes"])
    assert row["sizes"][2]["nodes"] > 2 * row["sizes"][1]["nodes"] > 4 * row["sizes"][0]["nodes"] / 2


def test_exponents_of_a_power_are_its_exponent():
    assert exponents([2, 4, 12], [12, 48, 432]) == pytest.approx([2, 2])
