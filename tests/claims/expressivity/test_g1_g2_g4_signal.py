"""Verdicts of G1, G2 and G4 on real measurements, and on measurements made up to fail them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from theodolite.claims.contract import claims
from theodolite.lab.cell import Row
from theodolite.lab.run_cells import run


@pytest.fixture(scope="module")
def measured() -> dict[str, list[Row]]:
    """All cells of G2 and G4; of G1 one network's, and one of each other kind."""
    chosen = {name: list(claims[name].cells()) for name in ("G1", "G2", "G4")}
    first = [cell for cell in chosen["G1"] if cell.config["shape"] == {"depth": 2, "width": 32}]
    chosen["G1"] = [*first, *[cell for cell in chosen["G1"] if cell.measure == "signal-along"][:1]]
    return {name: list(run(cells)) for name, cells in chosen.items()}


@pytest.mark.parametrize("name", ["G1", "G2", "G4"])
def test_the_claims_hold_on_real_measurements(measured, name):
    assert not [row.error for row in measured[name] if row.error]
    verdict = claims[name].decide(measured[name])
    assert verdict.outcome == "holds", verdict.detail


def altered(rows: list[Row], number: int, /, **changes: Any) -> list[Row]:
    row = rows[number]
    return [*rows[:number], Row(row.cell, {**row.result, **changes}), *rows[number + 1 :]]


def place(rows: list[Row], measure: str, **config: Any) -> int:
    return next(
        i
        for i, row in enumerate(rows)
        if row.cell.measure == measure and all(row.cell.config.get(k) == v for k, v in config.items())
    )


def test_a_variance_above_its_bound_fails_the_theorem(measured):
    rows = measured["G1"]
    for config in ({"subclass": "degree=3"}, {"subclass": "prefixes"}, {"family": "scrambled"}, {"family": "random"}):
        wrong = altered(rows, place(rows, "gradient-signal", **config), ratio=1.01)
        assert claims["G1"].decide(wrong).outcome == "fails", config
    at = place(rows, "signal-along")
    points = [dict(point) for point in rows[at]["checkpoints"]]
    points[3]["ratio"] = 1.01
    assert claims["G1"].decide(altered(rows, at, checkpoints=points)).outcome == "fails"


def test_a_broken_self_check_fails_the_theorem(measured):
    rows = measured["G1"]
    whole = place(rows, "gradient-signal", subclass="all", loss="square")
    assert claims["G1"].decide(altered(rows, whole, identity_error=1e-3)).outcome == "fails"
    assert claims["G1"].decide(altered(rows, whole, ratio=0.9)).outcome == "fails"
    slow = place(rows, "enumerated-signal")
    wrong = altered(rows, slow, enumerated=rows[slow]["enumerated"] * 1.001)
    assert claims["G1"].decide(wrong).outcome == "fails"


def test_a_gram_matrix_or_factor_that_is_off_fails(measured):
    rows = measured["G2"]
    assert claims["G2"].decide(altered(rows, 9, identity=False)).outcome == "fails"
    assert claims["G2"].decide(altered(rows, 4, corrected=1023)).outcome == "fails"
    assert claims["G2"].decide(rows).measured["printed factor right"] == 2 + 4 + 8 + 16 + 32


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (0, {"quadrature": 1.0}),
        (1, {"interval": [0.0, 1e-9]}),
        (-1, {"flat": 0.3}),
        (-1, {"minima": [[2.0, 2.0, 0.0], [-2.0, -2.0, 0.0], [0.0, 1.0, 0.5]]}),
        (-2, {"rows": [{"dimensions": 512, "radius": r, "variance": 1e-3} for r in (1.0, 2.0, 3.0)]}),
        (-3, {"rows": [{"dimensions": d, "radius": 8.0, "variance": d**-2.0} for d in (2, 8, 16, 24)]}),
    ],
)
def test_a_wrong_measurement_of_waves_fails(measured, number, changes):
    rows = measured["G4"]
    assert claims["G4"].decide(altered(rows, number % len(rows), **changes)).outcome == "fails"


def test_rows_are_plain_json(measured):
    for rows in measured.values():
        for row in rows:
            json.dumps(row.result, allow_nan=False)
