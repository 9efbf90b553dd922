"""`theodolite signal`, through a small application of its own."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner, Result

from theodolite.cli.signal import signal
from theodolite.errors import BadInput
from theodolite.instruments.gradient.signal import signal as measured

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(signal)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def test_one_json_document_and_the_numbers_of_the_function():
    result = call("--net", "mlp", "--class", "parity", "--bits", 7, "--width", 8, "--seed", 3, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    truth = measured("mlp", bits=7, width=8, seed=3)
    assert document["variance"] == truth.variance
    assert document["by_degree"] == list(truth.by_degree)
    assert document["exact"] is True
    assert document["ratio"] <= 1
    assert document["identity_error"] < 1e-5


def test_options_reach_the_measurement():
    result = call("--bits", 6, "--loss", "margin", "--subclass", "degree=2", "--draws", 2, "--arg", "width=5", "--json")
    document = json.loads(result.stdout)
    assert (document["loss"], document["members"], document["draws"]) == ("hinge", 15, 2)
    assert document["parameters"] == 6 * 5 + 5 + 5 * 5 + 5 + 5 + 1
    assert document["interval"][0] < document["variance"]


def test_the_text_shows_the_spectrum_and_what_it_means():
    result = call("--bits", 6, "--width", 8)
    assert result.exit_code == 0
    assert "64 targets of 6 inputs" in result.stdout
    assert "Theorem 1 applies" in result.stdout
    lines = [line for line in result.stdout.splitlines() if "█" in line]
    assert [line.split()[0] for line in lines] == [str(k) for k in range(7)]
    assert len(lines[0].split()[-1]) == 30  # the constant is the largest


def test_the_text_of_another_class_says_why_the_bound_has_a_factor():
    result = call("--class", "random", "--bits", 6, "--members", 20, "--width", 8)
    assert "not orthogonal" in result.stdout
    assert "whole class" in result.stdout
    swamped = call("--class", "linear-periodic", "--bits", 8, "--radius", 6, "--samples", 512, "--width", 8)
    assert "swamps" in swamped.stdout


def test_a_class_from_a_file(tmp_path):
    file = tmp_path / "pairs.py"
    file.write_text("def pairs(x):\n    return (x[:, :1] * x[:, 1:]).T\n")
    document = json.loads(call("--class", f"{file}:pairs", "--bits", 5, "--json").stdout)
    assert (document["family"], document["members"], document["applies"]) == ("pairs.py:pairs", 4, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--class", "primes"), "primes"),
        (("--bits", 90), "90 bits"),
        (("--net", "mpl"), "mpl"),
        (("--arg", "width=3", "--width", 4), "give it once"),
        (("--subclass", "degree=11", "--bits", 10), "degree '11'"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message):
    result = call(*arguments)
    assert isinstance(result.exception, BadInput)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_complex_weights_are_refused_before_they_are_cut_to_real_ones(tmp_path, recwarn):
    file = tmp_path / "waves.py"
    file.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Waves(nn.Module):\n"
        "    def __init__(self, features):\n        super().__init__()\n"
        "        self.inner = nn.Linear(features, 1, dtype=torch.complex64)\n\n"
        "    def forward(self, x):\n        return self.inner(x.to(torch.complex64)).real\n"
    )
    result = call("--net", f"{file}:Waves", "--bits", 4)
    assert "the weights 'inner.weight' of" in str(result.exception)
    assert "complex: keep pairs of real numbers" in str(result.exception)
    assert not [warning for warning in recwarn if "discards the imaginary part" in str(warning.message)]
