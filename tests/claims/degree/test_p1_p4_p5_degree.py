"""Claims P1, P4, P5: the rules decide by numbers alone, on ranks that theory gives and on ranks made up."""

# pyright: reportCallIssue=false

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from theodolite.claims.contract import claims
from theodolite.claims.degree.cases import Case
from theodolite.claims.degree.p1_best_degree import Known, closed_form, first
from theodolite.claims.degree.p4_growth import _fitted
from theodolite.claims.degree.part_ranks import interpolation
from theodolite.field import Modulus, product
from theodolite.instruments.rank.separation import separation_rank
from theodolite.lab.cell import Cell, Row
from theodolite.lab.run_cells import run
from theodolite.measures import measure
from theodolite.nets.load import load
from theodolite.partition import Partition
from theodolite.theory.cap import attention_cap
from theodolite.theory.gated_cap import one_wide_rank


def at_the_cap(cell: Cell) -> Row:
    """The row that a net at its cap gives, as far as its points reach: predicted, not measured."""
    if cell.measure == "part-ranks":
        c = cell.config
        return Row(cell, {"rank": attention_cap(c["depth"], c["width"], c["tokens"], c["tokens"])})
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


def test_the_verdict_follows_the_larger_budgets(predicted):
    verdict = claims["P1"].decide(predicted["P1"])
    assert verdict.outcome == "fails"
    firsts = verdict.measured["first by family and matrices"]
    assert firsts["fully connected, 1 input a side, width 2"] == {"12": 3, "18": 3, "24": 3, "36": 3}
    assert firsts["attention, 2 tokens a side, width 1"] == {"12": 4, "18": 6, "24": 4, "36": 4}
    # (3^12 + 1)/2 = 265,721 against 2^18 = 4^9 = 262,144, where 41 < 64, 365 < 512 and 3,281 < 4,096
    assert firsts["attention, 1 token a side, width 1"] == {"12": None, "18": 2, "24": None, "36": 3}
    one = verdict.measured["rank by family, matrices and degree"]["attention, 1 token a side, width 2"]
    assert one["12"] == {"2": "1,088", "3": "861", "4": "1,088", "6": "360"}
    assert one["18"]["2"] == "at most 66,048"
    assert one["18"]["3"] == "66,795"
    assert verdict.measured["largest total degree"] == {"12": [3], "18": [3], "24": [3], "36": [3]}
    assert verdict.predicted["best degree"] == {"d-1": 2, "d": 3, "d+1": 4}


def test_p1_fails_by_its_degrees_and_is_first_only_where_certified(predicted):
    rows = predicted["P1"]
    line = next(i for i, row in enumerate(rows) if row.cell.measure == "line-degree")
    assert "largest total degree" in claims["P1"].decide(altered(rows, line, degree=63)).measured
    known = [Known(2, 64, 48, None, 70, "cap"), Known(3, 81, 48, 71, 80, "separation-rank")]
    assert first(known) == 3
    assert first([*known, Known(4, 64, 48, None, 71, "cap")]) is None  # a cap as large as what is certified
    assert first([Known(2, 64, 48, 82, 82, "closed form"), Known(3, 81, 48, 82, 82, "closed form")]) is None  # a tie


@pytest.mark.parametrize("degrees", [(3, 3), (2, 2, 2), (4, 2), (3, 2), (2, 3), (6,), (4, 4)])
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_attention_of_width_one_has_the_rank_of_the_closed_form(degrees, tokens):
    found = separation_rank("degree-attention", tokens=2 * tokens, width=1, degrees=list(degrees), repeats=2)
    assert found.rank == one_wide_rank(degrees, tokens)


def test_fully_connected_nets_of_one_input_a_side_have_the_rank_of_the_closed_form():
    for degrees in [(2, 2), (3, 2), (4,), (6,), (3, 3)]:
        case = Case("", "polynomial-mlp", {"features": 2, "width": 2}, degrees)
        found = separation_rank("polynomial-mlp", features=2, width=2, degrees=list(degrees), matrices="d", repeats=2)
        assert found.rank == closed_form(case) == math.prod(degrees) + 1


@pytest.mark.parametrize(("depth", "width", "tokens"), [(1, 2, 1), (2, 2, 1), (3, 2, 1), (2, 3, 1), (2, 2, 2)])
def test_ranks_of_the_parts_add_up_to_the_rank_of_the_whole(depth, width, tokens):
    whole = separation_rank("self-attention", depth=depth, width=width, heads=1, tokens=2 * tokens, repeats=1).rank
    config = {"depth": depth, "width": width, "tokens": tokens, "points": 40}
    assert measure("part-ranks", config, 3, "cpu")["rank"] == whole
    few = measure("part-ranks", {**config, "points": 2}, 3, "cpu")["rank"]
    assert few <= 2 * (3**depth // 2 + 1)
    assert few < whole or whole <= 5


def test_interpolation_finds_the_coefficients():
    modulus = Modulus(10007)
    coefficients = [5, 0, 9999, 3, 1]
    values = [sum(c * t**k for k, c in enumerate(coefficients)) % 10007 for t in (1, 2, 3, 4, 7)]
    found = product(interpolation([1, 2, 3, 4, 7], modulus), modulus.centred(torch.tensor(values))[:, None], modulus)
    assert modulus.canonical(found)[:, 0].tolist() == coefficients


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


def test_p5_tells_the_best_of_each_kind_at_equal_parameters(predicted):
    verdict = claims["P5"].decide(predicted["P5"])
    assert verdict.outcome == "not a claim", "the source asks"
    for shape, nets in verdict.measured.items():
        assert {net["parameters"] for net in nets} == {int(shape.split(", ")[1].split()[0])}, shape
    near = [Row(r.cell, {**r.result, "rank": 1000 + r["degree"], "exact": True}) for r in predicted["P5"]]
    assert "as expressive as attention in 3 of 3 shapes" in claims["P5"].decide(near).detail
    above = claims["P5"].decide(altered(near, 0, rank=1200)).detail  # a Mixer of degree 2 above degree 3
    assert "Degree 3 is not the best Mixer" in above
