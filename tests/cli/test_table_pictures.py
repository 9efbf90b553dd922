"""Pictures of published tables: every number of the results in its square, every entry with its curve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from theodolite.cli.views.reproduce import summary
from theodolite.cli.views.table_pictures import learning, lengths, pictures, scores

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def entry(row: str, net: str, best: float | None, agrees: bool | None = None, **changed: Any) -> dict[str, Any]:
    figure = {"value": 0.9, "origin": "unchecked", "source": "A", "called": None}
    return {
        "experiment": row,
        "section": "regular" if row == "parity" else "context-free",
        "row": row,
        "net": net,
        "task": row,
        "task_args": {"shortest": 1, "longest": 4},
        "settings": {"unseen": [8], "steps": 500, "batch": 4, "rates": [1e-3], "weight_decays": [0], "clip": 1,
                     "seeds": 4, "members": 4, "shape": {}},
        "shorter": None,
        "quantities": [{"quantity": "score", "best": best, "median": best and best / 2, "published": [figure]}],
        "solved": {"bar": 0.9, "count": 1, "of": 4, "share": 0.25, "interval": (0.05, 0.7)},
        "learnt": {"count": 2, "of": 4, "share": 0.5, "steps": {"median": 1500.0, "quartiles": [1000.0, 2000.0]}},
        "agrees": agrees,
        "chance": 0.5,
        "error": None,
        "seconds": 1.0,
        "lengths": {"trained": [1, 4], "length": [1, 4, 8], "best": [1.0, 0.9, 0.8], "median": [0.9, 0.8, 0.5]},
        **changed,
    }  # fmt: skip


TABLE = [
    entry("parity", "rnn", 1.0, True),
    entry("parity", "lstm", 0.75, None),
    entry("copy", "rnn", 0.5, False),
    entry("copy", "lstm", None, None, quantities=[], solved=None, learnt=None, lengths=None, error="does not fit"),
]


def test_published_and_best_stand_in_their_squares_from_chance_to_all_right():
    chart = scores(TABLE)
    assert (chart.rows, chart.columns, chart.gaps) == (["parity", "copy"], ["rnn", "lstm"], [1])
    published, ours = chart.boards
    assert [[square.text for square in row] for row in published.squares] == [["90ᵘ", "90ᵘ"], ["90ᵘ", ""]]
    assert published.note == "per cent; ᵘ read once"
    assert [[square.text for square in row] for row in ours.squares] == [["100", "75"], ["50", "–"]]
    assert [square.share for square in ours.squares[0]] == pytest.approx([1.0, 0.5])
    assert ours.squares[1][0].share == 0.0
    assert [s.edge for row in ours.squares for s in row] == ["plain", "open", "against", "plain"]
    assert ours.squares[1][1].hover == "does not fit"


def test_members_and_steps_stand_in_theirs():
    reached, learnt = learning(TABLE).boards
    assert reached.squares[0][0].text == "1/4"
    assert reached.squares[0][0].share == 0.25
    assert (learnt.squares[0][0].text, learnt.squares[0][0].share) == ("1.5k", 0.5)
    assert "steps 1,000–2,000" in learnt.squares[0][0].hover
    nobody = entry("parity", "rnn", 0.5, learnt={"count": 0, "of": 4, "share": 0.0, "steps": None})
    assert learning([nobody]).boards[1].squares[0][0].text == "–"


def test_every_entry_with_lengths_has_its_curves():
    drawn = lengths(TABLE)
    assert [[plot is not None for plot in row] for row in drawn.plots] == [[True, True], [True, False]]
    plot = drawn.plots[0][0]
    assert plot is not None
    best, median = plot.curves
    assert (best.y, median.y, median.faint) == ([1.0, 0.9, 0.8], [0.9, 0.8, 0.5], True)
    assert (plot.shaded, plot.level, drawn.x) == ((1, 4), 0.5, (1, 8))


def test_what_has_no_values_has_no_pictures_and_old_results_have_no_curves():
    assert pictures([TABLE[-1]]) == []
    assert len(pictures(TABLE)) == 3
    old = [{name: value for name, value in r.items() if name != "lengths"} for r in TABLE]
    assert len(pictures(old)) == 2


@pytest.mark.parametrize("table", ["chomsky", "universal-transformer", "recall"])
def test_the_archived_tables_are_drawn_with_every_score(table):
    (path,) = [max(RESULTS.glob(f"{table}-*.json"))]
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    chart = scores(results)
    ours = [square.text for row in chart.boards[1].squares for square in row if square.share is not None]
    measured = [r for r in results if r["quantities"]]
    assert sorted(ours) == sorted(f"{100 * r['quantities'][0]['best']:.0f}" for r in measured)
    page = summary(table, results, [], "theodolite reproduce")
    assert f"{len(measured)} of {len(results)} entries" in page.headline
    assert len(page.tables[0].rows) == len(results)
