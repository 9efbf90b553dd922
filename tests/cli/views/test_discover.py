"""What a discovery looks like in a terminal and as a page: the decision first, every number where it belongs."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from theodolite.cli.views.discover import describe, discovery_page, errors, print_discovery, ticks, verdict
from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.data.coding import Coding, ColumnCoding
from theodolite.structure.explain.effects import Effect
from theodolite.structure.explain.explanation import Explained, Explanation
from theodolite.structure.explain.formulas import Formula
from theodolite.structure.explain.importance import Importance
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.result import Discovery

GRAPH = CompositionalGraph(
    ("x1", "<b>x2</b>", "x3", "x4"),
    (Node("h1", ("x1", "<b>x2</b>")), Node("h2", ("x3", "h1"), "product")),
)
VOID = {"meta", "link", "br", "wbr"}


@pytest.fixture
def found() -> Discovery:
    return Discovery(
        target="energy",
        mode="data",
        graph=GRAPH,
        abstained=False,
        reason="Rows held out prefer the graph.",
        confidence={("x1", "h1"): 0.99, ("<b>x2</b>", "h1"): 0.62, ("x3", "h2"): 0.95, ("h1", "h2"): 1.0},
        pairs={("x1", "<b>x2</b>"): 0.5, ("x1", "x3"): 0.25},
        test_error=0.002,
        dense_test_error=0.04,
        boosting_test_error=0.3,
        model=None,
        details={
            "rows": {"train": 800, "test": 200},
            "notes": ("'c' is 3 in every row and was left out.",),
            "error_intervals": {"graph": (0.001, 0.004), "dense": (0.03, 0.05)},
            "dense_kind": "larger",
            "dense_parameters": 4_321,
            "dense_held_out_error": 0.051,
            "candidates": [
                {
                    "graph": GRAPH.to_json(),
                    "parameters": 89,
                    "held_out_error": 0.0021,
                    "ratio_to_dense": 0.042,
                    "interval": [0.03, 0.06],
                    "p": 0.0005,
                    "preferred": True,
                    "screened": False,
                },
            ],
            "seed": 7,
        },
    )


def abstained(found: Discovery) -> Discovery:
    dense = CompositionalGraph.dense(GRAPH.variables)
    reason = "no graph was preferred."
    return replace(found, abstained=True, graph=dense, reason=reason, test_error=0.04, confidence={})


def terminal(found: Discovery, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_discovery(console, found)
    return console.file.getvalue()  # type: ignore[attr-defined]


class Checked(HTMLParser):
    """Every element is closed, and the texts are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "title"):
            self.words.append(data.strip())


def read(page: str) -> str:
    parser = Checked()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return " ".join(word for word in parser.words if word)


def test_the_verdict_comes_first_and_says_what_was_gained(found: Discovery) -> None:
    printed = terminal(found)
    assert printed.startswith("graph found: 2 constituent functions of at most 2 inputs each, in 2 levels")
    assert "20 times lower than a dense one" in " ".join(printed.split())
    assert re.search(r"network of the graph +0\.002 +0\.001 to 0\.004\n", printed)
    assert re.search(r"gradient boosting +0\.3 +–\n", printed)
    # √(800 / n) of Φ⁻¹(1 − .05/2) against Φ⁻¹(1 − .38/2): two pairs were tested
    doubted = "Doubtful that it acts together with the others: <b>x2</b> → h1 62% (sure with about 4,000 rows)"
    assert doubted in " ".join(printed.split())
    assert "was left out." in printed
    assert all(len(line) <= 80 for line in printed.splitlines())


def test_what_is_doubted_of_an_input_of_a_sum_is_that_it_matters(found: Discovery) -> None:
    printed = " ".join(terminal(replace(found, confidence={("x3", "h2"): 0.4, ("x1", "h1"): 0.9999})).split())
    assert "Doubtful that it matters: x3 → h2 40%" in printed
    assert "acts together" not in printed


def test_a_dense_network_that_predicts_for_a_claimed_graph_is_not_called_its_network(found: Discovery) -> None:
    dense = CompositionalGraph.dense(GRAPH.variables)
    model = Fitted(dense, 1, 1, "tanh", 2, *(np.zeros((1, 1)), np.ones(1), np.zeros(4), np.ones(4), 0.0, 1.0, 0.04))
    told = replace(found, model=model, test_error=found.dense_test_error)
    assert [one.name for one in errors(told)] == ["dense network", "gradient boosting"]
    assert "times lower" not in verdict(told)[1]


def test_an_abstention_shows_no_graph_and_no_gain(found: Discovery) -> None:
    told = abstained(found)
    assert verdict(told) == ("abstained", "No graph was preferred.")
    printed = terminal(told)
    assert printed.startswith("abstained: No graph was preferred.")
    assert "times lower" not in printed
    assert "Doubtful" not in printed
    assert [one.name for one in errors(told)] == ["dense network", "gradient boosting"]
    text = read(discovery_page(told))
    assert "No structure was confirmed" in text or "no structure was confirmed" in text
    assert "Edges" not in text


def test_the_page_is_well_formed_escapes_names_and_fetches_nothing(found: Discovery) -> None:
    page = discovery_page(found, "theodolite discover a.csv --target 'energy'", {"torch": "2.13"})
    text = read(page)
    assert "<b>x2</b>" not in page.replace("&lt;b&gt;x2&lt;/b&gt;", "")
    for told in ("graph found", "800 rows to learn from", "0.002", "0.001 to 0.004", "62 %", "theodolite disc"):
        assert told in text, told
    assert "dense, larger 4,321 0.051 1 2 constituent functions" in text
    assert "89 0.0021 0.042 (0.03 to 0.06) chosen" in text
    assert text.index("62 %") < text.index("99 %")  # the doubtful edges first
    assert not re.search(r"(src|href)=\"?(https?:)?//|@import|url\((?!data)", page)
    assert "<script" not in page


def test_places_on_the_axis_are_those_of_the_logarithms(found: Discovery) -> None:
    graph, dense, boosting = errors(found)
    assert graph.at < dense.at < boosting.at
    assert graph.span
    assert 0 <= graph.span[0] < graph.at < graph.span[1] <= 100
    steps = (dense.at - graph.at) / (boosting.at - dense.at)
    assert steps == pytest.approx(1.30103 / 0.87506, rel=1e-2)  # log 20 over log 7.5
    marks = {tick.text: tick.at for tick in ticks(found)}
    assert graph.at < marks["0.01"] < dense.at < marks["0.1"] < boosting.at


def test_a_graph_without_networks_shows_no_errors(found: Discovery) -> None:
    bare = replace(found, test_error=None, dense_test_error=None, boosting_test_error=None, details={})
    assert errors(bare) == []
    assert ticks(bare) == []
    assert "error on test rows" not in terminal(bare)
    assert "What it is worth" not in read(discovery_page(bare))
    json.dumps(bare.to_json())


def test_an_error_of_nothing_has_a_place(found: Discovery) -> None:
    perfect = replace(found, test_error=0.0, details={})
    assert errors(perfect)[0].at == min(one.at for one in errors(perfect))
    assert errors(perfect)[0].at >= 0
    assert len(ticks(perfect)) <= 6


def test_a_single_sum_is_called_one_and_not_a_function_of_everything() -> None:
    variables = ("a", "b", "c")
    assert (
        describe(CompositionalGraph(variables, (Node("y", variables, "sum"),)))
        == "a sum of 3 functions of one variable each"
    )
    assert describe(CompositionalGraph.dense(variables)) == "one constituent function of 3 inputs"


def explained(found: Discovery) -> Discovery:
    """With a curve, a category and a map, importance and stability."""
    line = np.linspace(0, 1, 5)
    seen = np.random.default_rng(0).random((20, 2))
    curve = Effect(("x3",), "h2", (line,), line, line - 1, line + 1, seen[:, :1])
    two, square = np.zeros(2), np.zeros((5, 5))
    words = Effect(("x4",), None, (np.array([0.0, 1.0]),), two, two, two, seen[:, :1].round())
    plane = Effect(("x1", "<b>x2</b>"), "h1", (line, line), np.outer(line, line) - 0.2, square, square, seen)
    formula = Formula("2·x3", "2\\,x3", "2*x3", 0.001)
    told = Explanation(
        (Explained(plane, 0.8, None), Explained(curve, 0.3, formula), Explained(words, 0.0, None)),
        (Importance("x1", ("x1",), 0.8, (0.5, 0.9)), Importance("x3", ("x3",), 0.3, (0.2, 0.4))),
        (Importance("h1", ("x1", "<b>x2</b>"), 0.8, (0.6, 0.95)),),
        dict.fromkeys(GRAPH.edges, 0.75),
        8,
    )
    coding = Coding((ColumnCoding("x4", "category", 0.5, categories={"red": 0.0, "<i>blue": 1.0}, other=0.5),))
    interval = {"coverage": 0.9, "half_width": 1.5, "share_of_test_rows": 0.88}
    details = {**found.details, "prediction_interval": interval, "additive_test_error": 0.2}
    return replace(found, explanation=told, coding=coding, details=details)


def test_the_page_shows_effects_importance_stability_and_intervals(found: Discovery) -> None:
    page = discovery_page(explained(found))
    text = read(page)
    assert page.count('role="img" aria-label="effect of') == 3
    assert "2·x3 Misses 0.1 % of the variance" in text
    assert "Python 2*x3" in text
    for told in ("red", "<i>blue", "of x1, <b>x2</b>", "0.6 to 0.95", "75 %", "of 8 halves", "additive model", "0.2"):
        assert told in text, told
    assert "<i>blue" not in page
    assert "± 1.5 is meant to hold 90 % of new rows; it held 88 %" in text
    assert "need them: x4" in text
    order = [text.index(title) for title in ("x1 and <b>x2</b>", "What matters", "Edges")]
    assert order == sorted(order)
    bare = read(discovery_page(found))
    assert "What the parts do" not in bare
    json.dumps(explained(found).to_json())
