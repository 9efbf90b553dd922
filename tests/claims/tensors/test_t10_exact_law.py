"""T10's rule decides by numbers alone: on rows that theory makes up, on ones altered to fail, and on real cells."""

from __future__ import annotations

from typing import Any

import pytest

from theodolite.claims.contract import claims
from theodolite.claims.tensors import graded_rank as graded
from theodolite.claims.tensors import growth_certificate as growth
from theodolite.claims.tensors import t10_exact_law as exact_law
from theodolite.lab.cell import Cell, Row
from theodolite.measures import measure
from theodolite.theory.attention_rank import measured_law_depth_2
from theodolite.theory.cap import attention_cap

REGISTERED = graded, growth  # importing them registers the measures


def _expected(cell: Cell) -> dict[str, Any]:
    config = cell.config
    if cell.measure == "growth-certificate":
        return {"certified": True}
    depth, width, heads = config["depth"], config["width"], config.get("heads", 1)
    inner = config.get("attention_width", width // heads)
    cap = attention_cap(depth, width, config.get("tokens_with_output", width), config.get("tokens_other", width))
    ranks = measured_law_depth_2(width, heads, inner) if depth == 2 and "tokens_other" not in config else [cap]
    blocks = [{"degree": c, "rank": rank} for c, rank in enumerate(ranks)]
    return {"total": sum(ranks), "cap": cap, "complete": True, "exact": True, "blocks": blocks}


@pytest.fixture
def rows() -> list[Row]:
    return [Row(cell, _expected(cell)) for cell in claims["T10"].cells()]


def _altered(rows: list[Row], number: int, **changes: Any) -> list[Row]:
    row = rows[number]
    return [*rows[:number], Row(row.cell, {**row.result, **changes}), *rows[number + 1 :]]


def test_it_tells_what_theory_says_where_it_is_so(rows):
    verdict = claims["T10"].decide(rows)
    assert verdict.outcome == "not a claim", "the law is ours"
    assert "each has the rank of the law" in verdict.detail
    assert verdict.predicted["one head"] == verdict.measured["one head"]
    assert verdict.predicted["below the cap"] == verdict.measured["below the cap"]


ONE, SHARED, OTHER = 0, len(exact_law._ONE_HEAD), len(exact_law._ONE_HEAD) + len(exact_law._SHARED)


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (ONE + 3, {"total": 4}),  # one head below its cap
        (ONE + 13, {"complete": False}),  # parts left out
        (SHARED + 2, {"total": 108}),  # not the deficit of the law
        (SHARED + 2, {"exact": False}),
        (SHARED + 2, {"blocks": [{"degree": c, "rank": r} for c, r in enumerate((1, 10, 51, 41, 4))]}),  # sum alone
        (OTHER + 1, {"blocks": [{"degree": 0, "rank": 1}]}),
        (OTHER + 4, {"exact": False}),
    ],
)
def test_it_tells_a_rank_that_differs(rows, number, changes):
    assert "the law fails for " in claims["T10"].decide(_altered(rows, number, **changes)).detail


def test_it_tells_that_a_certificate_is_missing(rows):
    told = claims["T10"].decide(_altered(rows, len(rows) - 1, certified=False))
    assert "not every premise is certified" in told.detail


def test_it_tells_that_a_bound_grows_otherwise(rows, monkeypatch):
    monkeypatch.setattr(exact_law, "growth_lower_bound_log3", lambda depth, width: 2.0 * width * depth)
    assert "not every bound grows as the law says" in claims["T10"].decide(rows).detail


@pytest.mark.parametrize("number", [ONE + 8, SHARED + 3, OTHER + 4, -4])
def test_real_cells_agree(rows, number):
    cell = rows[number].cell
    row = measure(cell.measure, cell.config, cell.seed, "cpu")
    measured = rows[:]
    measured[number] = Row(cell, row)
    assert "each has the rank of the law" in claims["T10"].decide(measured).detail


def test_few_tokens_are_listed_with_what_was_measured(rows):
    number = len(rows) - len(exact_law._GROWTH) - len(exact_law._FEW)
    cell = rows[number].cell
    row = measure(cell.measure, cell.config, cell.seed, "cpu")
    verdict = claims["T10"].decide([*rows[:number], Row(cell, row), *rows[number + 1 :]])
    assert verdict.measured["few tokens"]["L=2 d=3 n=1 m=2"] == "39 of 41"
