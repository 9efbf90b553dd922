"""S1 and S10: verdicts on rows that are made up to hold, to fail and to leave open."""

from __future__ import annotations

from typing import Any

import pytest

import theodolite.claims.sparsity.s1_s10_approximation  # noqa: F401 — registers the claims
from theodolite.claims.contract import claims
from theodolite.lab.cell import Row


def rates(slopes: dict[tuple[str, int, float], float] | None = None) -> list[Row]:
    rows = []
    for cell in claims["S1"].cells():
        c = cell.config
        if cell.measure == "trained-approximation":
            rows.append(Row(cell, {"slopes": [0.2, 0.3], "parameters": [10, 20], "errors": [[0.5, 0.4], [0.6, 0.5]]}))
            continue
        n, m = c["variables"], c["smoothness"]
        inputs = n if c["approximant"] == "shallow" else 2
        mean = (slopes or {}).get((c["approximant"], n, m), m / inputs)
        found = [mean * (1 + off) for off in (-0.02, -0.01, 0, 0, 0.01, 0.02)]  # pyright: ignore[reportOperatorIssue]
        rows.append(Row(cell, {"slopes": found, "fan_in": n if c["graph"] == "dense" else 2}))
    return rows


def test_s1_holds_on_the_predicted_slopes_and_tells_all_of_them():
    verdict = claims["S1"].decide(rates())
    assert verdict.outcome == "holds"
    assert len(verdict.predicted) == 20
    assert verdict.predicted["one piece, n = 4, m = 2.5"] == pytest.approx(0.625)
    assert verdict.predicted["node by node, n = 32, m = 2.5"] == pytest.approx(1.25)
    assert verdict.predicted["one piece, n = 3, m = 4.5"] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("where", "slope", "outcome"),
    [
        (("graph", 32, 2.5), 2.5 / 32, "fails"),  # the curse along the graph, too
        (("shallow", 4, 2.5), 1.25, "fails"),  # no curse in one piece
        (("shallow", 4, 6.0), 6 / 16, "fails"),
        (("graph", 8, 1.5), 0.75 * 1.12, "holds"),  # within the margin
        (("graph", 8, 1.5), 0.75 * 1.14, "undecided"),  # too near to it
        (("graph", 8, 1.5), 0.75 * 1.25, "fails"),
    ],
)
def test_s1_fails_where_a_slope_is_another(where, slope, outcome):
    assert claims["S1"].decide(rates({where: slope})).outcome == outcome


def superposed(inner: dict[int, float], left: dict[int, float], general: float = 0.1) -> list[Row]:
    rows = []
    for cell in claims["S10"].cells():
        width = cell.config["width"]
        members: list[dict[str, Any]] = []
        for seed in range(cell.config["seeds"]):
            error = general if cell.config["shape"] == "general" else left[width] * (1 + 0.01 * seed)
            members.append({"unexplained": error, "inner": inner.get(width, 1.0) * (1 + 0.01 * seed), "outer": 5.0})
        rows.append(Row(cell, {"members": members, "parameters": 1}))
    return rows


@pytest.mark.parametrize(
    ("inner", "left", "general", "outcome"),
    [
        ({4: 5.0, 16: 20.0, 64: 80.0}, {4: 0.1, 16: 0.01, 64: 0.001}, 0.1, "holds"),
        ({4: 5.0, 16: 5.1, 64: 5.0}, {4: 0.1, 16: 0.01, 64: 0.001}, 0.1, "undecided"),  # smooth functions do
        ({4: 5.0, 16: 20.0, 64: 80.0}, {4: 0.3, 16: 0.2, 64: 0.1}, 0.2, "undecided"),  # do not suffice
        ({4: 5.0, 16: 20.0, 64: 80.0}, {4: 0.1, 16: 0.01, 64: 0.001}, 0.0001, "undecided"),  # a general one is better
    ],
)
def test_s10_weighs_accuracy_and_roughness(inner, left, general, outcome):
    verdict = claims["S10"].decide(superposed(inner, left, general))
    assert verdict.outcome == outcome
    assert "not decided here" in verdict.detail


def test_s10_is_undecided_where_seeds_disagree():
    rows = superposed({4: 5.0, 16: 20.0, 64: 80.0}, {4: 0.1, 16: 0.01, 64: 0.001})
    for member in (member for row in rows for member in row["members"][::2]):
        member["inner"] = 100 / member["inner"]
    assert claims["S10"].decide(rows).outcome == "undecided"
