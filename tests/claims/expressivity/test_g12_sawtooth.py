"""G12 decides by counted pieces and parameters; its training cells report and decide nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import theodolite.claims.expressivity.g12_sawtooth
import theodolite.claims.expressivity.sawtooth_pieces
import theodolite.claims.expressivity.sawtooth_training
from theodolite.claims.contract import claims
from theodolite.errors import BadInput
from theodolite.lab.cell import Row
from theodolite.lab.run_cells import run
from theodolite.measures import measure
from theodolite.theory.sawtooth import most_pieces

assert theodolite.claims.expressivity.g12_sawtooth
assert theodolite.claims.expressivity.sawtooth_pieces


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Witnesses as measured; trained nets made up, for the verdict must not depend on what they reach."""
    cells = claims["G12"].cells()
    witnesses = list(run([cell for cell in cells if cell.measure == "sawtooth-witness"]))
    made_up = [
        Row(cell, {"explained": [0.5] * 5, "pieces": [3] * 5, "parameters": 99})
        for cell in cells
        if cell.measure == "sawtooth-training"
    ]
    assert len(witnesses) == 24
    assert len(made_up) == 9
    return witnesses + made_up


def altered(rows: list[Row], form: str | None, folds: int, **changes: Any) -> list[Row]:
    def meant(config: Mapping[str, Any]) -> bool:
        return config.get("form") == form and config["folds"] == folds

    return [Row(r.cell, {**r.result, **changes}) if meant(r.cell.config) else r for r in rows]


def test_the_witnesses_decide_that_it_holds(rows):
    verdict = claims["G12"].decide(rows)
    assert verdict.outcome == "holds"
    assert verdict.measured["shallow"] == verdict.predicted["shallow"] == [7, 13, 25, 49, 97, 193, 385, 769]
    assert verdict.measured["deep"] == verdict.predicted["deep"] == [7, 13, 19, 25, 31, 37, 43, 49]
    assert set(verdict.measured["recurrent"]) == {7}


@pytest.mark.parametrize(
    ("form", "folds", "changes"),
    [
        ("deep", 4, {"pieces": 15}),
        ("recurrent", 8, {"gap": 1e-12}),
        ("shallow", 5, {"parameters": 98}),
        ("deep", 8, {"parameters": 50}),
        ("recurrent", 3, {"parameters": 8}),
        (None, 2, {"pieces": [3, 3, 3, 3, 108]}),  # more than one layer of 106 units can have
    ],
)
def test_one_count_that_is_off_makes_it_fail(rows, form, folds, changes):
    assert claims["G12"].decide(altered(rows, form, folds, **changes)).outcome == "fails"


@pytest.mark.parametrize("explained", [[0.0] * 5, [1.0] * 5])
def test_what_training_reaches_does_not_decide(rows, explained):
    for folds in (2, 3, 4):
        assert claims["G12"].decide(altered(rows, None, folds, explained=explained)).outcome == "holds"


def test_wide_networks_learn_a_single_tent_and_the_same_cell_gives_the_same_row():
    config = {"folds": 1, "widths": [24], "seeds": 3, "steps": 400, "batch": 64, "rate": 0.03}
    row = measure("sawtooth-training", config, 5, "cpu")
    assert min(row["explained"]) > 0.99
    assert row["parameters"] == 3 * 24 + 1
    assert all(2 <= pieces <= most_pieces([24]) for pieces in row["pieces"])
    assert measure("sawtooth-training", config, 5, "cpu") == row
    assert measure("sawtooth-training", config, 6, "cpu") != row


def test_an_unknown_form_is_refused():
    with pytest.raises(BadInput, match="use shallow, deep, recurrent"):
        measure("sawtooth-witness", {"form": "wide", "folds": 2}, 0, "cpu")
