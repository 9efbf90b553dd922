"""Claims P1, P4, P5: the rules decide by numbers alone, on ranks that theory gives and on ranks made up."""

# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Any

import pytest

from theodolite.claims.contract import claims
from theodolite.claims.degree.p4_growth import _fitted
from theodolite.lab.cell import Cell, Row
from theodolite.lab.run_cells import run
from theodolite.nets.load import load
from theodolite.partition import Partition


def at_the_cap(cell: Cell) -> Row:
    """The row that a net at its cap gives, as far as its points reach: predicted, not measured."""
    subject = load(cell.config["net"], **cell.config["shape"])
    split = Partition.left_right(subject.sites)
    told = subject.module.predict(split, subject.sites - 1 if subject.kind == "sequence" else 0)
    if cell.measure == "line-degree":
        return Row(cell, {"degree": told.degree})
    rank = min(told.cap, cell.config["max_points"])
    reached = rank == told.cap
    return Row(cell, {"degree": told.degree, "rank": rank, "cap": told.cap, "exact": reached, "saturated": reached})


@pytest.fixture(scope="module")
def predicted() -> dict[str, list[Row]]:
    return {name: [at_the_cap(cell) for cell in claims[name].cells()] for name in ("P1", "P4", "P5")}


def altered(rows: list[Row], number: int, **changes: Any) -> list[Row]:
    return [Row(r.cell, {**r.result, **changes}) if i == number else r for i, r in enumerate(rows)]


def test_small_cells_measured_give_what_the_cap_predicts(predicted):
    """So the rows made up from caps in this file are what the claims measure; the large ones are left to the claim."""
    for name, number in (("P1", 4), ("P4", 2), ("P5", 1)):
        ranked = sorted((row for row in predicted[name] if "rank" in row.result), key=lambda row: row["rank"])
        small = ranked[:number]
        for row, found in zip(small, run([row.cell for row in small]), strict=True):
            assert {k: found[k] for k in row.result} == dict(row.result)
    lines = [row for row in predicted["P1"] if row.cell.measure == "line-degree"][::5]
    assert [row["degree"] for row in run([line.cell for line in lines])] == [line["degree"] for line in lines]


def test_degree_three_is_best_for_fully_connected_nets_and_not_for_attention(predicted):
    verdict = claims["P1"].decide(predicted["P1"])
    assert verdict.outcome == "fails"
    ranks = {name: [f["rank"] for f in family] for name, family in verdict.measured["d matrices a block"].items()}
    assert ranks == {
        "fully connected, 1 input a side, width 2": [65, 82, 65],
        "fully connected, 2 inputs a side, width 2": [1089, 1722, 1089],
        "attention, 1 token a side, width 2": [1088, 861, 1088],
        "attention, 2 tokens a side, width 1": [64, 41, 484],
    }
    assert verdict.predicted["best degree"] == {"d-1": 2, "d": 3, "d+1": 4}


def test_p1_holds_only_where_degree_three_wins_every_family(predicted):
    rows = predicted["P1"]
    for number in (7, 10):  # the two families of attention, degree 3
        rows = altered(rows, number, rank=5000)
    assert claims["P1"].decide(rows).outcome == "holds"
    assert claims["P1"].decide(altered(rows, 0, rank=82)).outcome == "fails"  # a tie is no win
    assert claims["P1"].decide(altered(rows, 0, exact=False)).outcome == "undecided"
    assert claims["P1"].decide(altered(rows, len(rows) - 1, degree=63)).outcome == "fails"  # of the line


def test_p1_does_not_call_one_of_two_lower_bounds_the_best(predicted):
    detail = claims["P1"].decide(predicted["P1"]).detail
    assert "attention, 2 tokens a side, width 1, 12 matrices, d-1 a block: best 2 or 4" in detail
    assert "fully connected, 1 input a side, width 2, 12 matrices, d-1 a block: best 2;" in detail


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_the_fit_finds_the_exponent_of_a_power_law_with_an_offset(exponent):
    totals = [7, 8, 9, 12, 16, 25, 27, 45]
    found = _fitted(totals, [round(3 * (t + 4) ** exponent) for t in totals])
    assert found.low <= exponent <= found.high or abs(found.value - exponent) < 1e-3
    assert abs(found.value - exponent) < 0.01
    assert not found.agrees(exponent + 1)


def test_the_published_growth_fails_for_attention_with_two_tokens_a_side_alone(predicted):
    verdict = claims["P4"].decide(predicted["P4"])
    assert verdict.outcome == "fails"
    assert "refuted for attention of odd degree, width 2, 2 tokens a side;" in verdict.detail
    assert "the cap's exponent agrees everywhere" in verdict.detail


def test_p4_holds_where_every_rank_grows_as_published(predicted):
    kept = [Row(r.cell, {**r.result, "rank": r["degree"] ** r.cell.config["shape"]["width"]}) for r in predicted["P4"]]
    assert claims["P4"].decide(kept).outcome == "holds"
    assert claims["P4"].decide(altered(kept, 0, exact=False)).outcome == "undecided"


def test_p5_compares_at_equal_parameters_and_fails_where_ranks_are_far_apart(predicted):
    verdict = claims["P5"].decide(predicted["P5"])
    assert verdict.outcome == "fails"
    for shape, nets in verdict.measured.items():
        assert {net["parameters"] for net in nets} == {int(shape.split(", ")[1].split()[0])}, shape
    near = [Row(r.cell, {**r.result, "rank": 1000 + r["degree"], "exact": True}) for r in predicted["P5"]]
    assert claims["P5"].decide(near).outcome == "holds"
    assert claims["P5"].decide(altered(near, 0, rank=1200)).outcome == "fails"  # a Mixer of degree 2 above degree 3
