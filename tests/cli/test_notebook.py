"""What a notebook shows: of every public function's result what its command prints, with pictures; and progress."""

from __future__ import annotations

import base64
import importlib
import re
import sys
import types
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import theodolite
from theodolite.cli.notebook import _VIEWS, Line
from theodolite.graphs.families import binary_tree
from theodolite.instruments.fixed_points.fixed_points import basin
from theodolite.instruments.gradient.target_signal import target_signal
from theodolite.instruments.rank.separation import separation_rank
from theodolite.instruments.state_size import state_size
from theodolite.lab.campaign import Listener
from theodolite.notebook import Entries, Shown, watching
from theodolite.report import Answer, Board, Chart, Square, Summary
from theodolite.scaling.scale import Scaling
from theodolite.serving.serve import Served
from theodolite.structure.predictions import Predictions
from theodolite.surveys.run import SectionResult, Survey

from .test_functions import COMMANDS, function_of

FILES = {"new": "gives the paths of what it wrote", "serve": "gives nothing back"}
FUNCTIONS = {command.removeprefix("theodolite "): function_of(command) for command in COMMANDS}
FUNCTIONS = {name: function for name, function in FUNCTIONS.items() if name not in FILES}


def small_learning(**more: Any) -> Any:
    given = {"seeds": 1, "steps": 2, "task_args": {"longest": 4}, "shape": {"width": 4}, "unseen": "6"}
    return theodolite.learn(["rnn", "lstm"], "parity-check", **{**given, **more})


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Any:
    folder = tmp_path_factory.mktemp("runs")
    return types.SimpleNamespace(learning=small_learning(out=folder), folder=folder)


def small_survey() -> Survey:
    chart = Chart("who", "alt", ["rnn"], ["parity"], [Board("", "", [[Square(1.0, "1")]])])
    summary = Summary("One can.", answers=[Answer("rnn", "Can it copy?", "yes", "4/4")], charts=[chart])
    return Survey(("rnn",), "quick", (SectionResult("id", "title", summary, ()),), (), 0, 1, 1.0, "theodolite survey")


# By function: a small result, something that stands in it, and how many pictures it has.
RESULTS: dict[str, tuple[Callable[[Any], Any], str, int]] = {
    "advise": (lambda _: theodolite.advise(params="10M", vocab=1000), "layers", 1),
    "claims check": (lambda _: theodolite.check_claims(["T8"]), "holds", 0),
    "compare": (lambda trained: theodolite.compare("rnn", "lstm", trained.folder), "parity-check", 1),
    "degree": (lambda _: theodolite.degree(budget=6, degrees=[2, 3], repeats=2), "30", 1),
    "discover": (
        lambda _: theodolite.discover(lambda x: x[:, 0] * x[:, 1], ranges=(0, 1), variables=2, rows=200, fit=False),
        "x1",
        1,
    ),
    "express": (lambda _: theodolite.express("majority", "mlp", task_args={"bits": 3}), "majority", 0),
    "fixed-points": (lambda _: theodolite.fixed_points("logistic", r=2.5, starts=4, steps=200), "fixed point (0.6)", 0),
    "learn": (lambda trained: trained.learning, "lstm", 1),
    "claims list": (lambda _: theodolite.list_claims(), "T8", 0),
    "nets": (lambda _: theodolite.list_nets(), "lstm", 0),
    "tasks": (lambda _: theodolite.list_tasks(), "parity-check", 0),
    "predict": (
        lambda _: Predictions("<y>", np.arange(12.0), np.arange(12.0) - 1, np.arange(12.0) + 1, 0.9),
        "&lt;y&gt; low",
        0,
    ),
    "rank": (lambda _: separation_rank("self-attention", depth=1, width=2, tokens=4), "separation rank", 0),
    "reproduce": (lambda _: theodolite.reproduce("failures", only=["remedies"], seeds=1), "elimination over GF(2)", 0),
    "runs": (lambda trained: theodolite.runs(trained.folder), "lstm", 1),
    "scale": (lambda _: Scaling((), None, ("depth 9",), (), (), 0, {}), "left out: depth 9", 0),
    "signal": (lambda _: theodolite.signal("mlp", bits=4, width=4), "Theorem 1 applies", 1),
    "survey": (lambda _: small_survey(), "copy", 1),
    "verify": (
        lambda _: theodolite.verify(
            separation_rank("self-attention", depth=1, width=2, tokens=2, certificate=True).certificate
        ),
        "separation rank ≥",
        0,
    ),
}


# What other functions of the documentation give back.
MORE: dict[str, tuple[Callable[[Any], Any], str, int]] = {
    "Basin": (lambda _: basin("newton", grid=9, steps=30), "fixed point at (1, 0)", 1),
    "CompositionalGraph": (lambda _: binary_tree(4), "y = ƒ(h1, h2)", 1),
    "Measurement": (lambda _: state_size("rnn", features=2, width=4), "state size", 0),
    "RankResult": (lambda _: separation_rank("mlp", "epsilon", features=2, width=2, points=16), "ε-rank", 1),
    "Served": (lambda _: Served(Path("out"), "http://127.0.0.1:1/?token=x", None, Thread(), None), "token=x", 0),
    "TargetSignal": (lambda _: target_signal("mlp", "majority", {"bits": 3}, draws=2, width=2), "majority, in mlp", 0),
}


@pytest.mark.parametrize("name", [*FUNCTIONS, *MORE])
def test_every_result_is_shown_as_its_command_prints_it_with_pictures(name, trained):
    make, words, pictures = {**RESULTS, **MORE}[name]
    shown = make(trained)._repr_html_()
    text = re.sub(r"<[^>]*>", "", shown)
    assert words in text.replace("&#x27;", "'")
    drawn = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', shown)
    assert len(drawn) == pictures
    for picture in drawn:
        assert ET.fromstring(base64.b64decode(picture)).tag.endswith("svg")
    assert "<script" not in shown


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_type_of_every_result_has_a_view(name):
    given = get_type_hints(FUNCTIONS[name])["return"]
    for kind in get_args(given) if isinstance(given, types.UnionType) else (given,):
        origin = getattr(kind, "__origin__", kind)
        assert issubclass(origin, Shown | Entries), "a notebook shows nothing of it"
        assert origin is Entries or origin.__name__ in _VIEWS


def test_every_class_that_is_shown_has_a_view_and_every_view_a_class():
    root = Path(str(theodolite.__file__)).parent
    for file in root.rglob("*.py"):
        if "(Shown)" in file.read_text(encoding="utf-8"):
            importlib.import_module(".".join(file.relative_to(root.parent).with_suffix("").parts))
    kinds = {kind.__name__ for kind in Shown.__subclasses__()}
    lists = {kind for kind in _VIEWS if kind[0].islower()}
    assert kinds == _VIEWS.keys() - lists
    assert lists == {"degrees", "nets", "tasks", "claims", "verdicts", "table"}


def test_entries_are_a_list():
    import copy
    import json
    import pickle

    made = Entries("nets", [{"a": 1}], "about")
    assert made == [{"a": 1}]
    assert json.loads(json.dumps(made)) == [{"a": 1}]
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (other, other.of, other.about) == (made, "nets", "about")


@dataclass
class Display:
    """Of IPython's module what we use."""

    lines: list[str] = field(default_factory=list)

    def HTML(self, text: str) -> str:
        return text

    def display(self, shown: str, display_id: bool) -> Display:
        assert display_id
        assert not self.lines, "a second line"
        self.update(shown)
        return self

    def update(self, shown: str) -> None:
        self.lines.append(re.sub("<[^>]*>", "", shown))


def test_progress_is_one_line_that_is_gone_at_the_end():
    display, now = Display(), [0.0]
    line = Line(display, lambda: now[0])
    for done, label in ((0, "a <b>"), (1, "too soon"), (40, "b"), (100, "done")):
        line(done, 100, label)
        now[0] += 4.0 if done else 0.1
    assert display.lines == ["0%, estimating: a &lt;b&gt;", "40%, 0:06 left: b", ""]


def test_a_notebook_shows_progress_unless_it_was_asked_for_otherwise(monkeypatch):
    assert watching() is None
    display = Display()
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    small_learning(listener=Listener())
    assert display.lines == []
    small_learning()
    assert display.lines
    assert display.lines[-1] == ""
    assert any("parity-check" in line for line in display.lines)
    display.lines.clear()
    theodolite.survey("sum-of-products", only=["symmetry"])
    assert "1 measurement in 1 section," in display.lines[0]
    display.lines.clear()
    theodolite.advise(params="10M", vocab=1000)
    assert [display.lines[0], display.lines[-1]] == ["0%, estimating: reading the shape", ""]
    display.lines.clear()
    theodolite.discover(lambda x: x[:, 0], ranges=(0, 1), variables=1, rows=50, fit=False)
    assert display.lines


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace()))
    assert watching() is None
