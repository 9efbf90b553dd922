"""S7, S11 and S12: verdicts on rows that are made up to hold, to fail and to leave open."""

from __future__ import annotations

import math
from typing import Any

import pytest

import theodolite.claims.sparsity.s7_s11_s12_structure  # noqa: F401 — registers the claims
from theodolite.claims.contract import claims
from theodolite.lab.cell import Row
from theodolite.theory.isometry import least_constant


def isometries(**changes: float) -> list[Row]:
    rows = []
    for cell in claims["S7"].cells():
        c = cell.config
        least = [least_constant(c["tokens"], min(c["rank"], c["inputs"]), order) for order in c["orders"]]
        draws = []
        for draw in range(c["draws"]):
            off = 0.001 * draw
            values = dict.fromkeys(("gaussian", "normalised", "product", "drawn"), 0.9 + off)
            if c["tokens"] <= c["rank"]:
                values["identity"] = changes.get("identity", 0.0)
            else:
                values["optimised"] = changes.get("optimised", 0.6 + off)
            if c["tokens"] == 2 * c["rank"]:
                values["built"] = changes.get("built", least[0])
            found = {name: [[value, value]] * 3 for name, value in values.items()}
            if "built" in found:
                found["built"] = [[values["built"], values["built"]], [0.5, 0.5], [0.7, 0.7]]
            draws.append(found)
        rows.append(Row(cell, {"draws": draws, "least": least}))
    return rows


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "holds"),
        ({"identity": 0.01}, "fails"),
        ({"optimised": 0.95}, "fails"),  # a Gaussian matrix is better
        ({"optimised": 0.8}, "undecided"),  # better, but no vector is sure to be found again
        ({"built": 0.4}, "undecided"),
        ({"optimised": 0.01}, "fails"),  # below what is possible: the measurement is wrong
    ],
)
def test_s7_asks_for_both_cases(changes, outcome):
    assert claims["S7"].decide(isometries(**changes)).outcome == outcome


def compiled(power: float = 2.0, factor: float = 1.8, **changes: Any) -> list[Row]:
    rows = []
    for cell in claims["S11"].cells()[:-1]:
        sizes = [
            {"steps": t, "nodes": round(10 * t**power), "fan_in": 2, "inner_fan_in": 7, "wrong": 0}
            for t in cell.config["steps"]
        ]
        sizes[-1].update(changes)
        rows.append(Row(cell, {"sizes": sizes, "exponents": [power] * 4}))
    cell = claims["S11"].cells()[-1]
    sizes = [{"bits": b, "nodes": factor**b, "fan_in": 2, "wrong": 0} for b in cell.config["bits"]]

    return [*rows, Row(cell, {"sizes": sizes, "doublings": [math.log2(factor)] * 6})]


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        (compiled(), "holds"),
        (compiled(power=3.0), "fails"),
        (compiled(wrong=1), "fails"),
        (compiled(fan_in=3), "fails"),
        (compiled(inner_fan_in=9), "fails"),
        (compiled(factor=1.1), "undecided"),  # then size would not tell random functions apart
    ],
)
def test_s11_asks_for_fan_in_size_and_answers(rows, outcome):
    assert claims["S11"].decide(rows).outcome == outcome


def bounds(graph: float, convolution: float, dense: float, missed: int = 0, wobble: float = 0.05) -> list[Row]:
    """Least bounds of the three networks at decay 0.1; at 1.0 they would be lower, but training errors are too high.
    The first `missed` functions are not fitted by the graph."""
    best = {"graph": graph, "convolution": convolution, "dense": dense}
    rows = []
    for cell in claims["S12"].cells():
        kind = cell.config["kind"]
        members = []
        for seed in range(cell.config["seeds"]):
            for decay in cell.config["decays"]:
                value = best[kind] * 10 ** (wobble * (-1) ** seed * (kind == "dense")) * (1 if decay < 1 else 1e-3)
                found = {"graph": value, "dense": 3 * value, "spectral": 90 * value, "path": 9 * value}
                fitted = decay < 1 and not (kind == "graph" and seed < missed)
                members.append({"seed": seed, "decay": decay, "bounds": found, "test_error": 0.1, "margin": 1.0,
                                "train_error": 0.005 if fitted else 0.02})  # fmt: skip
        rows.append(Row(cell, {"members": members, "parameters": 1}))
    return rows


@pytest.mark.parametrize(
    ("values", "wobble", "outcome"),
    [
        ((0.3, 0.3, 300.0), 0.05, "holds"),
        ((0.3, 0.3, 10.0), 0.05, "undecided"),  # between one order and two
        ((0.3, 0.3, 33.0), 0.5, "undecided"),  # two orders, not clearly more
        ((0.3, 0.3, 0.6), 0.05, "fails"),
        ((0.3, 0.9, 3.0), 0.05, "fails"),  # by the convolution
        ((30.0, 0.3, 30_000.0), 0.05, "undecided"),  # vacuous
        ((30.0, 30.0, 3.0), 0.05, "undecided"),  # vacuous, though the dense one is lower
    ],
)
def test_s12_counts_orders_of_magnitude_of_bounds_that_bound(values, wobble, outcome):
    verdict = claims["S12"].decide(bounds(*values, wobble=wobble))
    assert verdict.outcome == outcome
    assert verdict.measured["graph"]["as dense / by graph"] == pytest.approx(3)
    assert verdict.measured["log10 dense / graph"][0] == pytest.approx(math.log10(values[2] / values[0]))


@pytest.mark.parametrize(("missed", "outcome"), [(5, "holds"), (6, "undecided"), (20, "undecided")])
def test_s12_compares_fits_of_the_same_training_error_alone(missed, outcome):
    verdict = claims["S12"].decide(bounds(0.3, 0.3, 300.0, missed))
    assert verdict.outcome == outcome
    assert verdict.measured["graph"]["functions fitted"] == 20 - missed
