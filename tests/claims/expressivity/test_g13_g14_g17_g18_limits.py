"""The rules of G13, G14, G17 and G18 decide by numbers alone: on real measurements, and on ones made up to fail."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest

from tests.each import each
from theodolite.claims.contract import claims
from theodolite.claims.expressivity import g13_g14_g17_g18_limits as limits
from theodolite.lab.cell import Row
from theodolite.lab.run_cells import run

NAMES = ("G13", "G14", "G17", "G18")


@pytest.fixture(scope="module")
def measured() -> dict[str, list[Row]]:
    """The quick claims for real, the others as theory has them."""
    return {name: list(run(claims[name].cells())) for name in ("G13", "G17")} | {"G14": _g14(), "G18": _g18()}


def _g14() -> list[Row]:
    results: list[dict[str, Any]] = [
        {"value": -1.0, "interval": [-1.03, -0.97], "diagnostics": {"logit_range": 2.0}} for _ in range(3)
    ]
    results += [
        {"value": d - 1.0, "interval": [d - 1.1, d - 0.9], "diagnostics": {"chosen": d - 1, "chosen_in": 0.9}}
        for d in (1, 2, 3)
    ]
    results += [
        {"curve": [{"cross_entropy": bits, "accuracy": 1.0} for bits in limits.PUBLISHED[language, epsilon]]}
        for language in ("parity", "first")
        for epsilon in (None, 0.0, 1e-5)
    ]
    results += [
        {"curve": [{"cross_entropy": bits, "accuracy": 1.0} for bits in curve]}
        for curve in ((0.5, 0.8, 0.97), (0.4519, 0.4519, 0.4519))
    ]
    return [Row(cell, result) for cell, result in zip(claims["G14"].cells(), results, strict=True)]


def _g18() -> list[Row]:
    exponents = {4: math.log(2), 5: 0.419}
    results: list[dict[str, Any]] = []
    for number, (_, expected, period) in enumerate(limits._ITERATED):
        value = exponents.get(number, -0.5)
        interval = [value - 0.002, value + 0.002]
        row = {"outcome": expected, "period": period, "lyapunov": value, "interval": interval, "spectral_radius": 0.5}
        results.append(row)
    results += [{"equilibrium": 1e-16, "ends_agree": True, "steps": 4, "predicted_steps": 4}] * 2
    told = {"phantom": {"1": 0.3, "5": 2e-3}, "steps": {"picard": 20, "anderson": 18, "broyden": 17}}
    results += [{"value": 1e-12, "diagnostics": told}] * 3
    return [Row(cell, result) for cell, result in zip(claims["G18"].cells(), results, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_the_claims_hold_where_the_numbers_are_as_predicted(measured, name):
    verdict = claims[name].decide(measured[name])
    assert verdict.outcome == "holds", verdict.detail
    json.dumps([verdict.predicted, verdict.measured], allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["G14", "G18"])
def test_verdicts_of_real_measurements(name):
    rows = list(run(claims[name].cells()))
    assert claims[name].decide(rows).outcome == "holds"
    for row in rows:
        json.dumps(row.result, allow_nan=False)


def changed(result: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(dict(result))
    place: Any = copied
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copied


@each(
    ("name", "number", "path", "value"),
    [
        ("G13", 0, ("value",), 1e-6),  # a symmetry that does not hold
        ("G13", 2, ("value",), 1e-12),  # a control that does
        ("G13", 12, ("nodes_and_edges",), 0.1),
        ("G13", 14, ("patterns",), 31),
        ("G13", -1, ("pieces",), 255),
        ("G14", 1, ("interval",), [-0.85, -0.8]),  # clearly slower than 1/n
        ("G14", 6, ("curve", 1, "cross_entropy"), 0.9),  # falls on the way
        ("G14", 9, ("curve", 2, "cross_entropy"), 0.1),
        ("G14", 8, ("curve", 2, "accuracy"), 0.99),
        ("G14", 7, ("curve", 2, "cross_entropy"), 0.5),  # layer norm with ε = 0 fades too
        ("G14", 12, ("curve", 2, "cross_entropy"), 0.85),
        ("G14", 13, ("curve", 2, "cross_entropy"), 0.9),
        ("G17", 0, ("weight_tied",), 1e-6),
        ("G17", 1, ("size",), 200),
        ("G17", 2, ("nilpotent",), False),
        ("G17", 5, ("weight_tied",), 1e-9),
        ("G18", 1, ("period",), 4),
        ("G18", 4, ("outcome",), "quasi-periodic"),
        ("G18", 5, ("interval",), [0.3, 0.5]),
        ("G18", 7, ("spectral_radius",), 1.2),
        ("G18", 10, ("ends_agree",), False),
        ("G18", 11, ("steps",), 9),
        ("G18", 12, ("value",), 1e-6),
        ("G18", 13, ("diagnostics", "phantom", "1"), 0.01),  # no test if cutting short costs nothing
    ],
)
def test_a_wrong_measurement_makes_the_claim_fail(measured, name, number, path, value):
    rows = list(measured[name])
    row = rows[number]
    rows[number] = Row(row.cell, changed(row.result, path, value))
    assert claims[name].decide(rows).outcome == "fails"


@each(
    ("number", "path", "value"),
    [
        (1, ("interval", 1), -0.85),
        (1, ("interval",), [-0.895, -0.8]),  # above −0.9, and not when it is one of three
        (2, ("interval",), None),
        (5, ("diagnostics", "chosen"), 1),
        (5, ("diagnostics", "chosen_in"), 0.6),
    ],
)
def test_a_law_that_does_not_show_leaves_hahns_limit_undecided(measured, number, path, value):
    rows = list(measured["G14"])
    rows[number] = Row(rows[number].cell, changed(rows[number].result, path, value))
    assert claims["G14"].decide(rows).outcome == "undecided"
