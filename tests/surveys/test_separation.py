"""The section on exact ranks, on made-up rows."""

from __future__ import annotations

from theodolite.lab.cell import Cell, Row
from theodolite.surveys.run import survey
from theodolite.surveys.section import Setting, sections
from theodolite.surveys.separation import agrees

SETTING = Setting("quick")


def row(
    rank: int,
    partition: str,
    exact: bool = True,
    error: str | None = None,
    cap: int | None = None,
    lower: int | None = None,
    upper: int | None = None,
) -> Row:
    shape = {"width": 2, "tokens": 8}
    cell = Cell("separation-rank", {"net": "conv-circuit", "shape": shape, "partition": partition})
    result = {
        "net": "conv-circuit",
        "shape": shape,
        "partition": partition,
        "rank": rank,
        "exact": exact,
        "saturated": rank == cap,
        "cap": cap,
        "bounds": {"lower": lower, "upper": upper, "reason": ""},
        "degree": 8,
    }
    return Row(cell, {} if error else result, error)


def test_a_lower_bound_is_marked_and_an_error_is_shown():
    section = sections["separation-rank"]
    summary = section.summarise([row(2, "left-right"), row(1024, "interleaved", exact=False)], SETTING)
    (table,) = summary.tables
    assert table.rows[0]["interleaved"] == "≥ 1,024"
    assert table.rows[0]["status"] == "exact / ≥"
    assert "at least 1,024" in summary.headline
    broken = section.summarise([row(0, "left-right", error="it failed")], SETTING)
    assert any("it failed" in note for note in broken.notes)
    assert broken.headline.startswith("0 ranks")


def test_theory_is_contradicted_by_a_rank_above_the_cap_or_an_exact_one_below_the_bound():
    assert agrees(row(5, "left-right")) is None
    assert agrees(row(5, "left-right", cap=5)) is True
    assert agrees(row(6, "left-right", cap=5)) is False
    assert agrees(row(6, "left-right", upper=5)) is False
    assert agrees(row(4, "left-right", lower=5)) is False
    assert agrees(row(4, "left-right", exact=False, lower=5)) is None  # a lower bound may still grow
    assert agrees(row(4, "left-right", lower=1)) is None  # every function but zero has rank 1
    summary = sections["separation-rank"].summarise(
        [row(6, "left-right", cap=5), row(4, "interleaved", cap=5)], SETTING
    )
    assert summary.tables[0].rows[0]["agrees"] is False
    assert summary.answers[0].agrees is False


def test_the_circuit_of_the_source():
    found = survey("conv-circuit")
    (result,) = [section for section in found.sections if section.id == "separation-rank"]
    assert "2 left-right against 256 interleaved" in result.summary.headline
    (table,) = result.summary.tables
    assert [line["interleaved"] for line in table.rows] == [4, 16, 9, 81, 256]
    assert all(line["agrees"] for line in table.rows)
    assert [panel.title for panel in result.summary.figures[0].panels] == ["conv-circuit"]
