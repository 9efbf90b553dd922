"""The rules decide by numbers alone: verdicts on real measurements, and on measurements made up to fail them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.each import each
from theodolite.claims.check import check_claims
from theodolite.claims.contract import Claim, claims
from theodolite.claims.rule import Rule, Verdict
from theodolite.errors import BadInput
from theodolite.lab.cell import Cell, Row
from theodolite.lab.run_cells import run

EXPECTED = {
    "T1": "holds",
    "T2": "holds",
    "T3": "holds",
    "T4": "holds",
    "T5": "fails",
    "T6a": "holds",
    "T6b": "fails",
    "T7": "holds",
    "T8": "holds",
}


@pytest.fixture(scope="module")
def measured() -> dict[str, list[Row]]:
    return {name: list(run(claims[name].cells())) for name in EXPECTED}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_verdicts_of_real_measurements(measured, name):
    assert claims[name].decide(measured[name]).outcome == EXPECTED[name]


def altered(rows: list[Row], number: int, **changes: Any) -> list[Row]:
    row = rows[number]
    return [*rows[:number], Row(row.cell, {**row.result, **changes}), *rows[number + 1 :]]


@each(
    ("name", "number", "changes"),
    [
        ("T1", 0, {"rank": 9}),  # above the known rank
        ("T1", 2, {"rank": 0}),  # enough templates and still short
        ("T2", 0, {"ranks": [49, 48]}),
        ("T2", 2, {"rank": 50}),  # special weights above generic ones
        ("T3", 5, {"rank": 17}),  # one partition of attention differs
        ("T3", 50, {"rank": 3}),  # convolution left-right is not constant
        ("T3", 53, {"rank": 200}),  # convolution interleaved does not double every two tokens
        ("T3", 60, {"rank": 4}),  # two recurrent layers left-right: no constant step
        ("T4", 0, {"rank": 1}),  # below the lower bound
        ("T4", 0, {"rank": 10**6, "exact": True}),  # above the upper bound
        ("T6a", 1, {"rank": 17}),
        ("T6a", 1, {"exact": False}),
        ("T7", 3, {"rank": 50}),  # above the cap that knows neither heads nor their width
        ("T8", 2, {"degree": 26}),
        ("T8", 6, {"mixing": 4}),
    ],
)
def test_a_wrong_measurement_makes_the_claim_fail(measured, name, number, changes):
    assert claims[name].decide(altered(measured[name], number, **changes)).outcome == "fails"


def test_an_open_upper_bound_leaves_the_claim_undecided(measured):
    rows = altered(measured["T4"], 0, cap=10**200)
    verdict = claims["T4"].decide(rows)
    assert verdict.outcome == "undecided"
    assert "the upper bound is open for L=1 d=4 H=1 N=10" in verdict.detail
    *shapes, certificate = measured["T5"]
    without = Row(certificate.cell, {**certificate.result, "certified": False})
    assert claims["T5"].decide([*shapes, without]).outcome == "undecided"
    few_tokens = [row for row in shapes if row["shape"]["tokens"] < 16]
    assert claims["T5"].decide([*few_tokens, without]).outcome == "holds"
    assert claims["T5"].decide([*altered(few_tokens, 0, rank=3), without]).outcome == "fails"


def test_a_bound_that_is_not_reached_leaves_the_bottleneck_undecided(measured):
    flat = [Row(row.cell, {**row.result, "rank": 40}) for row in measured["T7"]]
    verdict = claims["T7"].decide(flat)
    assert verdict.outcome == "undecided"
    assert "no rank grows for H·d_a > d" in verdict.detail
    assert "still grows for H·d_a > d along heads" in claims["T7"].decide(measured["T7"]).detail


def test_growth_with_the_rank_of_the_embedding_is_refuted_by_a_certificate_alone(measured):
    assert claims["T6b"].decide(altered(measured["T6b"], 0, certified=False)).outcome == "undecided"


@pytest.mark.parametrize("name", ["T9", "G21"])
def test_what_was_not_run_says_why(name):
    (told,) = check_claims([name])
    assert (told["verdict"], told["cells"]) == ("not run", 0)
    assert told["detail"]


def test_a_cell_that_fails_means_not_run(monkeypatch):
    def decide(rows: list[Row]) -> Verdict:
        raise AssertionError("a claim with a broken cell is not decided")

    rule = Rule("r", lambda: [Cell("separation-rank", {"net": "no-such-net", "shape": {}})], decide)
    broken = Claim("X", "s", "q", "p", "theorem", rule)
    monkeypatch.setitem(claims._items, "X", broken)
    (row,) = check_claims(["X"])
    assert row["verdict"] == "not run"
    assert "no-such-net" in row["detail"]


def test_unknown_ids_are_refused():
    with pytest.raises(BadInput, match="T99"):
        check_claims(["T99"])


def test_rows_are_plain_json(measured):
    import json

    for rows in measured.values():
        for row in rows:
            assert isinstance(row.result, Mapping)
            json.dumps(row.result, allow_nan=False)
