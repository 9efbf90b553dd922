"""`theodolite fixed-points` as a user types it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from typer.testing import CliRunner

from theodolite.cli.fixed_points import fixed_points
from theodolite.errors import BadInput

USER_MAP = """
import torch
from torch import nn

def step(z, r=3.2):
    return r * z * (1 - z)

def driven(z, x):
    return torch.tanh(0.5 * z + x)

def narrower(z):
    return z[..., :1]

def stateless():
    return 1

number = 3

class Cell(nn.Module):
    def __init__(self, size, gain=0.5):
        super().__init__()
        self.map, self.gain = nn.Linear(size, size), gain

    def forward(self, z):
        return self.gain * torch.tanh(self.map(z))

built = Cell(3)
"""
QUICK = ("--starts", 6, "--steps", 200)


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_map.py"
    path.write_text(USER_MAP)
    return path


def call(*arguments: object) -> str:
    app = typer.Typer()
    app.command()(fixed_points)
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})
    if result.exception is not None:
        raise result.exception
    return result.output


def test_a_users_function_is_iterated_with_its_arguments(user_file):
    document = json.loads(call(f"{user_file}:step", "--size", 1, "--within", "0.1,0.9", *QUICK, "--json"))
    assert (document["outcome"], document["period"]) == ("period", 2)
    assert document["schema"] == 2
    other = json.loads(
        call(f"{user_file}:step", "--size", 1, "--within", "0.1,0.9", "--arg", "r=2.5", *QUICK, "--json")
    )
    assert (other["outcome"], other["attractors"][0]["point"]) == ("converges", [pytest.approx(0.6, abs=1e-7)])


def test_a_function_of_z_and_x_gets_its_x(user_file):
    document = json.loads(call(f"{user_file}:driven", "--size", 2, "--x=0.3,-1", *QUICK, "--json"))
    for end, x in zip(document["attractors"][0]["point"], (0.3, -1), strict=True):
        assert end == pytest.approx(math.tanh(0.5 * end + x), abs=1e-8)


@pytest.mark.parametrize("name", ["Cell", "built"])
def test_modules_and_their_classes_are_maps(user_file, name):
    document = json.loads(call(f"{user_file}:{name}", "--size", 3, *QUICK, "--json"))
    assert document["outcome"] == "converges"
    assert document["size"] == 3


def test_a_named_map_is_told_in_words():
    text = call("logistic", "--arg", "r=3.5", *QUICK)
    assert "period 4" in text
    assert "spectral radius" in text
    assert "per cycle" in text


def test_the_basin_is_drawn_where_it_was_asked_for(tmp_path):
    target = tmp_path / "newton.svg"
    document = json.loads(call("newton", *QUICK, "--basin", target, "--json"))
    assert document["basin"] == str(target)
    root = ElementTree.parse(target).getroot()
    shown = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sum("fixed point" in (text or "") for text in shown) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("FILE:narrower", "--size", 3), "gives"),
        (("FILE:stateless", "--size", 1), "does not take z"),
        (("FILE:number", "--size", 1), "is a int"),
        (("FILE:driven", "--size", 1), "missing 1 required positional argument: 'x'"),
        (("FILE:stop", "--size", 1), "did you mean 'step'"),
        (("FILE:step",), "give --size"),
        (("FILE:step", "--size", 1, "--arg", "q=3"), "no argument is called 'q'"),
        (("FILE:built", "--size", 3, "--arg", "gain=2"), "is built already"),
        (("nowhere.py:step", "--size", 1), "there is no file"),
        (("logistik",), "did you mean 'logistic'"),
        (("logistic", "--within", "1"), "is no range"),
        (("logistic", "--x", "a,b"), "is not a list of numbers"),
        (("newton", "--basin", "picture.png"), "ends in .svg"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(user_file, arguments, words):
    given = [str(a).replace("FILE", str(user_file)) for a in arguments]
    with pytest.raises(BadInput, match=words) as raised:
        call(*given, *QUICK)
    assert "\n" not in str(raised.value)
