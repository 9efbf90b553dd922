"""G9–G11 and G19: verdicts on real measurements, and on measurements made up to fail them."""

from __future__ import annotations

import json
from typing import Any

import jaxtyping
import pytest

from tests.each import each
from theodolite.claims.contract import claims
from theodolite.lab.cell import Row
from theodolite.lab.run_cells import run

IDS = ("G9", "G10", "G11", "G19")


@pytest.fixture(scope="module")
def measured() -> dict[str, list[Row]]:
    """Without checks of shapes, which the tests of witnesses make: they would be more than half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        return {name: list(run(claims[name].cells())) for name in IDS}


@pytest.mark.parametrize("name", IDS)
def test_verdicts_of_real_measurements(measured, name):
    assert not any(row.error for row in measured[name])
    verdict = claims[name].decide(measured[name])
    assert verdict.outcome == "holds"
    json.dumps([row.result for row in measured[name]], allow_nan=False)


def place(rows: list[Row], measure: str, **config: Any) -> int:
    return next(
        i
        for i, row in enumerate(rows)
        if row.cell.measure == measure and all(row.cell.config.get(k) == v for k, v in config.items())
    )


@each(
    ("name", "measure", "config", "changes"),
    [
        ("G9", "gates", {"example": "full adder", "basis": "nand"}, {"errors": 1}),
        ("G9", "gates", {"example": "parity", "bits": 8, "form": "tree"}, {"depth": 7}),
        ("G9", "gates", {"example": "parity", "bits": 12, "basis": "nand"}, {"units": 45}),
        ("G9", "express", {"net": "linear"}, {"expressible": True}),
        ("G9", "express", {"net": "linear"}, {"expressible": None}),
        ("G9", "express", {"net": "linear"}, {"checked": {"holds": False}}),
        ("G9", "express", {"net": "recurrent-threshold"}, {"parameters": 12}),
        ("G9", "express", {"net": "recurrent-threshold"}, {"exhaustive": False}),
        ("G9", "minimal-dnf", {"bits": 5}, {"terms": 15}),
        ("G9", "minimal-dnf", {"bits": 5}, {"minimal": False}),
        ("G10", "random-circuits", {}, {"wrong": {"threshold": 0, "relu": 1}}),
        ("G10", "turing-agreement", {"machine": "anbn"}, {"wrong": 1}),
        ("G10", "turing-size", {"machine": "parity"}, {"fit": {"units": None, "parameters": None}}),
        ("G11", "minimal-circuits", {"bits": 3, "basis": "fan-in-2"}, {"functions": [8, 30, 100, 80, 30, 8]}),
        ("G11", "minimal-circuits", {"bits": 2, "basis": "fan-in-2"}, {"functions": [16]}),
        ("G11", "minimal-circuits", {"bits": 3, "basis": "and-or"}, {"functions": [8, 24, 64, 30, 104, 8, 17, 1]}),
        ("G11", "circuit-counts", {"bits": 6}, {"share": 0.02}),
        ("G11", "circuit-counts", {"bits": 9}, {"share": 1e-9}),
        ("G11", "circuit-counts", {"bits": 13}, {"threshold_units": 15}),
        ("G19", "automaton-size", {"most": 3}, {"live": 8}),
        ("G19", "automaton-size", {"most": 3}, {"wrong grammar": 1}),
        ("G19", "automaton-size", {"most": 3}, {"alternatives": 3}),
    ],
)
def test_a_wrong_measurement_makes_the_claim_fail(measured, name, measure, config, changes):
    rows = measured[name]
    number = place(rows, measure, **config)
    altered = [*rows[:number], Row(rows[number].cell, {**rows[number].result, **changes}), *rows[number + 1 :]]
    assert claims[name].decide(altered).outcome == "fails"


def test_each_rule_is_cheap():
    assert not any(claims[name].heavy for name in IDS)
