"""`theodolite degree` as a user types it, and the sentences and the picture its numbers make."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from theodolite.cli.degree import degree
from theodolite.cli.views.degree import print_degrees, verdict
from theodolite.cli.views.degree_plot import draw_degrees
from theodolite.errors import BadInput
from theodolite.instruments.degree.which_degree import DegreeRow

PROMISED = {
    *("degree", "degrees", "depth", "family", "count", "matrices", "parameters", "rank", "exact", "saturated"),
    *("lower_bound", "cap", "log10_cap", "total_degree", "log10_total_degree", "seconds", "points", "budget"),
}
ROW = DegreeRow(
    family="fully-connected",
    net="polynomial-mlp",
    budget=12,
    count="d",
    degree=3,
    degrees=(3,) * 4,
    depth=4,
    width=4,
    matrices=12,
    parameters=192,
    total_degree=81,
    log10_total_degree=1.908485,
    rank=1722,
    exact=True,
    saturated=True,
    lower_bound=1722,
    cap=1722,
    log10_cap=3.236033,
    ranks=(1722,),
    points=1786,
)
OTHER = replace(
    ROW,
    degree=2,
    degrees=(2,) * 6,
    depth=6,
    total_degree=64,
    log10_total_degree=1.80618,
    rank=1089,
    lower_bound=1089,
    cap=1089,
    log10_cap=3.037028,
    ranks=(1089,),
)
TOLD = {
    **{"task": "prescribed-rank", "seeds": 8, "steps": 100, "depth": 4, "parameters": 277, "rate": 0.01},
    **{"diverged": 0, "off_budget": 0.0, "note": ""},
}
LOGS = [math.log(0.1) + 0.01 * place for place in range(8)]


def _with_errors(row: DegreeRow, logs: list[float], **told) -> DegreeRow:
    training = {**TOLD, "log_errors": logs, **told}
    return replace(row, error=0.1, interval=(0.08, 0.15), interval_kind="95 %", training=training)


@pytest.fixture
def call():
    app = typer.Typer()
    app.command()(degree)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(argument) for argument in arguments])


def test_the_json_document_is_an_array_of_rows_with_the_promised_keys(call):
    outcome = call("--budget", "6", "--width", 2, "--json")
    rows = json.loads(outcome.stdout)
    assert outcome.exit_code == 0
    assert [row["degree"] for row in rows] == [2, 3, 6]
    assert all(set(row) >= PROMISED for row in rows)
    assert [row["rank"] for row in rows] == [9, 10, 7]  # one input a side: degree + 1
    assert {row["parameters"] for row in rows} == {24}
    assert "note: left out" in outcome.stderr
    assert "4, 5" in outcome.stderr


def test_the_terminal_names_the_winner_and_what_it_is_worth(call):
    outcome = call("--budget", "6", "--width", 2)
    text = " ".join(outcome.stdout.split())
    assert "6 matrices, d per block of degree d: degree 3 has the largest rank, 10 (next: 9 of degree 2)." in text
    assert "Every rank equals its cap" in text
    assert "--width 8 --inputs 8 --budget 6" in text


def test_files_are_written_under_out_and_only_there(call, tmp_path: Path):
    folder = tmp_path / "new"
    outcome = call("--budget", "4,6", "--width", 2, "--json", "--out", folder)
    assert sorted(path.name for path in folder.iterdir()) == ["degree.json", "degree.svg"]
    assert json.loads((folder / "degree.json").read_text()) == json.loads(outcome.stdout)
    ElementTree.fromstring((folder / "degree.svg").read_text())


@pytest.mark.parametrize(
    "arguments",
    [("--budget", "1"), ("--degrees", "2.5"), ("--degrees", "0"), ("--family", "lstm"), ("--task-arg", "rank")],
)
def test_bad_input_ends_with_code_2(call, arguments):
    outcome = call(*arguments)
    assert isinstance(outcome.exception, BadInput)
    assert outcome.exception.exit_code == 2
    assert outcome.stdout == ""


def test_lower_bounds_that_overlap_decide_nothing_and_the_total_degree_is_named():
    short = {"exact": False, "saturated": False, "rank": 500, "lower_bound": 500, "points": 500}
    (line,) = verdict([replace(ROW, **short), replace(OTHER, **short)])
    assert "500 points do not tell the ranks of degrees 3 and 2 apart; degree 3 has the largest total degree" in line
    assert "degree 3 the largest cap, 1,722" in line


def test_a_lower_bound_above_every_other_cap_is_not_called_a_rank():
    above = replace(ROW, exact=False, saturated=False, rank=1500, lower_bound=1500, points=1500)
    first, *_ = verdict([above, OTHER])
    assert "degree 3 has the largest rank, at least 1,500" in first


def test_a_winner_by_rank_that_loses_by_degree_is_told():
    attending = replace(ROW, rank=861, lower_bound=861, cap=861, ranks=(861,))
    first, *_ = verdict([attending, OTHER])
    assert "degree 2 has the largest rank, 1,089" in first
    assert first.endswith("Yet degree 3 has the largest total degree, 81.")


def _told_of_training(rows: list[DegreeRow]) -> str:
    return next(line for line in verdict(rows) if line.startswith("Trained"))


@pytest.mark.parametrize(
    ("shift", "words"),
    [(0.02, "clearly smaller than with degree 2;"), (0.0001, "not clearly different from that with degree 2;")],
)
def test_trained_errors_are_compared_in_pairs_that_share_a_function(shift, words):
    """Functions differ far more than degrees do, so that unpaired intervals would overlap in both cases."""
    noise = [0.001 * (-1) ** place for place in range(8)]
    best, other = (
        _with_errors(ROW, LOGS),
        _with_errors(OTHER, [a + shift + b for a, b in zip(LOGS, noise, strict=True)]),
    )
    line = _told_of_training([best, other])
    assert "degree 3 has the smallest error, 0.1036 (geometric mean over seeds)" in line
    assert words in line
    p = stats.ttest_rel(best.training["log_errors"], other.training["log_errors"]).pvalue
    assert (p < 0.05) == words.startswith("clearly")


def test_a_trained_net_off_its_budget_does_not_enter_the_verdict():
    lower = [value - 1 - 0.01 * (place % 3) for place, value in enumerate(LOGS)]
    off = _with_errors(OTHER, lower, off_budget=-0.06)
    line = _told_of_training([_with_errors(ROW, LOGS), off])
    assert "degree 3 stands alone" in line
    assert line.endswith("More than 5 % off the budget's parameters and not compared: 2.")
    near = _with_errors(OTHER, lower, off_budget=0.04)
    assert "degree 2 has the smallest error" in _told_of_training([_with_errors(ROW, LOGS), near])


def _printed(rows: list[DegreeRow], notes: tuple[str, ...] = ()) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    print_degrees(console, rows, notes)
    return console.export_text()


def test_tables_show_ranks_errors_and_notes():
    text = _printed([_with_errors(ROW, LOGS), OTHER], ("something is left out",))
    for words in (
        "1,722  proven",
        "0.08 to 0.15",
        "95 % interval",
        "Note: something is left out.",
        "embedding, biases",
    ):
        assert words in text


def test_few_seeds_have_a_range_in_table_and_picture():
    rows = [replace(_with_errors(row, LOGS), interval_kind="range") for row in (ROW, OTHER)]
    for text in (_printed(rows), draw_degrees(rows)):
        assert "range" in text
        assert "95 %" not in text


def test_what_is_not_known_is_a_dash_and_large_numbers_have_one_notation():
    open_ended = replace(ROW, exact=False, saturated=None, rank=500, cap=544242200, log10_cap=8.735792)
    beyond = replace(open_ended, cap=None, log10_cap=900.5)
    lines = _printed([open_ended, beyond]).splitlines()
    assert lines[2].split()[-2:] == ["5.44e8", "–"]
    assert lines[3].split()[-2:] == ["3.16e900", "–"]


def test_e_is_called_e_and_what_whole_units_make_of_it_stands_beside():
    real = replace(_with_errors(ROW, LOGS), net="product-net", rank=None, degree=math.e, degrees=(2.75,) * 4)
    assert "e (2.75)" in _printed([real])


def test_a_lone_row_is_not_called_arithmetic_and_attention_is_sent_to_more_tokens():
    assert not any("Every rank" in line for line in verdict([ROW]))
    attending = [replace(row, family="attention") for row in (ROW, OTHER)]
    assert "--tokens" in verdict(attending)[-1]
    assert "--inputs" not in verdict(attending)[-1]


def test_every_note_of_training_goes_to_stderr_beside_json(call):
    effort = ("--train", "--task", "diabetes", "--seeds", 2, "--steps", 3)
    outcome = call("--budget", 4, "--width", 2, "--degrees", "2,3", *effort, "--json")
    rows = json.loads(outcome.stdout)
    assert [row["interval_kind"] for row in rows] == ["range", "range"]
    assert "note: trained degree 3 at budget 4 has" in outcome.stderr


def test_an_arrow_is_explained_only_where_there_is_one_and_degrees_keep_their_colours():
    exact, bound = (draw_degrees([replace(ROW, exact=sure), OTHER]) for sure in (True, False))
    assert "an arrow marks" not in exact
    assert "an arrow marks" in bound
    assert exact.index("#D55E00") < exact.index("#0072B2")  # 2 before 3, also where 3 came first
    assert "rank (log scale)" in exact


def test_the_picture_has_a_mark_and_an_interval_for_every_row_and_is_one_document():
    rows = [
        replace(
            _with_errors(row, LOGS),
            budget=budget,
            error=0.1 * row.degree,  # pyright: ignore[reportOperatorIssue]
            interval=(0.05 * row.degree, 0.2 * row.degree),  # pyright: ignore[reportOperatorIssue]
        )
        for row in (ROW, OTHER)
        for budget in (12, 24, 48)
    ]
    picture = ElementTree.fromstring(draw_degrees(rows))
    space = "{http://www.w3.org/2000/svg}"
    paths = [path.get("class") for path in picture.iter(f"{space}path")]
    assert paths.count("mark") == len(rows) + 2  # and the legend
    assert paths.count("series") == len(rows) + 2  # intervals, and a line for each degree
    heights = [
        float(mark.get("transform").split(",")[1][:-1])
        for mark in picture.iter(f"{space}path")
        if mark.get("transform")
    ]
    assert heights[0] > heights[4]  # degree 3 comes second, errs more here, and stands higher


def test_a_picture_of_nothing_is_refused():
    with pytest.raises(BadInput, match="no row has a rank or an error"):
        draw_degrees([replace(ROW, rank=None, exact=False)])
