"""The section on ε-ranks, on made-up rows."""

from __future__ import annotations

from theodolite.lab.cell import Cell, Row
from theodolite.surveys.section import Setting, sections

SECTION = sections["spectrum"]
SETTING = Setting("quick", shapes={"lstm": {"depth": 2}})


def row(depth: int, left: list[int], inter: list[int], resolved: bool = True, alike: bool | None = None) -> Row:
    shape = {"tokens": 8, "features": 4, "depth": depth}
    cell = Cell("spectrum", {"net": "lstm", "shape": shape, "points": 64})
    made = [
        {
            name: {"rank": rank, "resolved": resolved, "effective_rank": 1.5, "spectrum": [1.0, 0.1]}
            for name, rank in (("left-right", a), ("interleaved", b))
        }
        for a, b in zip(left, inter, strict=True)
    ]
    return Row(cell, {"draws": made, "parameters": 100, "alike": alike})


def answers(*rows: Row) -> dict[str, tuple[str, str, bool | None]]:
    return {a.ability: (a.standing, a.text, a.agrees) for a in SECTION.summarise(rows, SETTING).answers}


def test_nets_are_compared_at_their_own_depth():
    found = answers(row(1, [4] * 6, [4] * 6), row(2, [9] * 6, [9] * 6), row(3, [20] * 6, [20] * 6))
    assert found["separation rank"] == ("yes", "9 (9–9) at depth 2", None)
    assert found["separation rank over depth"][:2] == ("yes", "4 at depth 1, 20 at 3")
    assert "9" in SECTION.summarise([row(2, [9] * 6, [9] * 6)], SETTING).headline


def test_a_net_whose_depth_is_no_argument_is_a_point_of_the_figure_over_depth():
    fixed = row(2, [5] * 6, [5] * 6)
    shape = {name: value for name, value in fixed.cell.config["shape"].items() if name != "depth"}
    own = Row(Cell("spectrum", {**fixed.cell.config, "net": "mine.py:Net", "shape": shape}), fixed.result)
    figure = SECTION.summarise([row(1, [4] * 6, [4] * 6), row(2, [9] * 6, [9] * 6), own], SETTING).figures[0]
    drawn = {
        series.name: (list(series.x), [round(float(y or 0), 6) for y in series.y]) for series in figure.panels[0].series
    }
    assert drawn == {"lstm": ([1, 2], [4, 9]), "mine.py:Net": ([1], [5])}
    assert "mine.py:Net" in figure.caption


def test_the_halves_of_a_sum_of_two_functions_do_not_interact():
    assert answers(row(2, [2] * 6, [2] * 6))["separation rank"][0] == "no"
    assert answers(row(2, [2, 3, 2, 3, 2, 3], [2] * 6))["separation rank"][0] in ("yes", "unknown")


def test_partitions_are_alike_different_or_neither():
    key = "partition-independent rank"
    assert answers(row(2, [10, 12, 11, 10], [10, 12, 11, 10]))[key][0] == "yes"
    assert answers(row(2, [10, 12, 11, 10], [20, 25, 22, 21]))[key][0] == "no"
    assert answers(row(2, [10, 30, 5, 10], [20, 15, 22, 4]))[key][0] == "unknown"


def test_lower_bounds_that_are_equal_decide_nothing_and_are_marked():
    found = answers(row(2, [32] * 6, [32] * 6, resolved=False, alike=True))
    assert found["partition-independent rank"] == ("unknown", "≥ 32 left-right, ≥ 32 interleaved", None)
    assert found["separation rank"][1].startswith("≥ 32")


def test_where_theory_says_alike_a_sure_difference_contradicts_it():
    key = "partition-independent rank"
    assert answers(row(2, [10] * 6, [10] * 6, alike=True))[key][2] is True
    assert answers(row(2, [10] * 6, [20] * 6, alike=True))[key][2] is False
    assert answers(row(2, [10] * 6, [20] * 6, alike=False))[key][2] is None
