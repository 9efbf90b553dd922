"""S6a and S6b: verdicts on rows that are made up to hold, to fail and to leave open."""

from __future__ import annotations

from typing import Any

import pytest

from theodolite.claims.contract import claims
from theodolite.lab.cell import Row

TARGETS = ("content", "sibling", "before")


def selecting(changes: dict[str, dict[str, Any]] | None = None) -> list[Row]:
    rows = []
    for cell in claims["S6a"].cells():
        members = []
        for seed in range(cell.config["seeds"]):
            member = {
                "unexplained": 0.1, "auc": 0.98 + 0.001 * seed, "mass": 0.8 + 0.01 * seed, "effective": 2 + 0.1 * seed,
                "above_threshold": 2.0, "start_effective": 7.0, "positive": 0.8 + 0.01 * seed,
                "start_positive": 0.5 + 0.01 * seed, "symmetric": 0.8, "tag_positive": 1.0, "idle": 0.1,
            }  # fmt: skip
            named = f"{cell.config['target']}, {cell.config['attention']}"
            members.append({**member, **(changes or {}).get(named, {})})
        rows.append(Row(cell, {"members": members, "uniform": 0.25}))
    return rows


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "holds"),
        ({"content, entmax": {"auc": 0.6}}, "fails"),
        ({"before, softmax": {"mass": 0.3}}, "fails"),
        ({"content, softmax": {"effective": 5.0}}, "fails"),
        ({"content, softmax": {"effective": 4.0}}, "undecided"),
        ({"content, sparsemax": {"unexplained": 0.9}}, "undecided"),
        ({f"{target}, softmax": {"positive": 0.2} for target in TARGETS}, "holds"),  # what S6b reports
    ],
)
def test_s6a_asks_for_selection_everywhere(changes, outcome):
    assert claims["S6a"].decide(selecting(changes)).outcome == outcome


def test_s6a_is_undecided_where_seeds_scatter_around_a_bound():
    rows = selecting()
    for seed, member in enumerate(rows[0]["members"]):
        member["auc"] = 0.8 + 0.2 * (seed % 2)
    assert claims["S6a"].decide(rows).outcome == "undecided"


def test_s6b_reports_where_the_share_of_positive_eigenvalues_rises():
    found = claims["S6b"].decide(selecting({"sibling, softmax": {"positive": 0.5, "start_positive": 0.5}}))
    assert found.outcome == "not a claim"
    assert found.detail.endswith("It rises for content, before.")
    none = claims["S6b"].decide(selecting({f"{target}, softmax": {"positive": 0.2} for target in TARGETS}))
    assert none.detail.endswith("It rises nowhere.")
