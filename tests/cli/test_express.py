"""`express` on the command line: one JSON document, or a few lines for a newcomer."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from theodolite.cli.express import express as command
from theodolite.errors import BadInput
from theodolite.witness.express import express


@pytest.fixture
def call():
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command("express")(command)
    return lambda *arguments: CliRunner().invoke(app, list(arguments), catch_exceptions=True)


def test_json_is_what_the_function_returns(call):
    result = call("parity", "--net", "threshold", "--task-arg", "bits=8", "--arg", "form=iterated", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    known = express("parity", "threshold", task_args={"bits": 8}, form="iterated").to_json()
    document.pop("seconds"), known.pop("seconds")
    assert document == known
    assert (document["expressible"], document["exhaustive"], document["verified_on"]) == (True, True, 256)


def test_text_puts_the_counted_number_beside_theorys(call):
    text = call("parity", "--net", "threshold", "--task-arg", "bits=8").stdout
    assert "yes, it can" in text
    assert "6 nodes with a nonlinearity (theory: 6)" in text
    assert "2 layers of them (theory: 2)" in text
    assert "0 of 256" in text


def test_one_is_singular_and_a_bound_is_called_one(call):
    text = call("boolean", "--net", "mlp", "--task-arg", "function=multiplexer", "--task-arg", "bits=6").stdout
    assert "1 layer of them (theory: 1)" in text
    assert "4 nodes with a nonlinearity (theory: at most 32)" in text
    assert "1 node with a nonlinearity" in call("majority", "--net", "mlp", "--task-arg", "bits=5").stdout


def test_a_proof_and_a_gap_are_told_apart(call):
    no = call("parity", "--net", "linear", "--task-arg", "bits=2", "--task-arg", "relevant=2").stdout
    assert "no, no choice of weights does" in no
    assert "weighted 1, 1, 1, 1" in no
    assert "unknown" in call("dyck", "--net", "threshold").stdout


def test_a_large_domain_is_sampled_and_said_so(call):
    result = call("parity", "--net", "threshold", "--task-arg", "bits=30", "--samples", "100", "--json")
    document = json.loads(result.stdout)
    assert (document["exhaustive"], document["verified_on"]) == (False, 100)
    assert "too many to verify" in document["domain"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("parity", "--net", "threshhold"), "did you mean 'threshold'"),
        (("partiy", "--net", "threshold"), "did you mean 'parity'"),
        (("parity", "--net", "threshold", "--task-arg", "bits"), "is not KEY=VALUE"),
        (("parity", "--net", "threshold", "--task-arg", "bit=3"), "did you mean 'bits'"),
        (("parity", "--net", "threshold", "--arg", "seed=3"), "'seed' is no argument of a net"),
    ],
)
def test_bad_input_is_one_sentence(call, arguments, words):
    result = call(*arguments)
    assert isinstance(result.exception, BadInput)
    assert words in str(result.exception)


def test_a_function_of_the_boolean_task_is_not_taken_for_a_task():
    with pytest.raises(BadInput, match=r"'carry' is a function of the task 'boolean': use boolean with"):
        express("carry", "mlp")
