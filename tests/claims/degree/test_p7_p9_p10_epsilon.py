"""P7, P9 and P10: verdicts on rows that are made up to hold, to fail and to leave open."""

from __future__ import annotations

from typing import Any

import pytest

import theodolite.claims.degree.p7_p9_p10_epsilon  # noqa: F401 — registers the claims
from theodolite.claims.contract import claims
from theodolite.lab.cell import Row
from theodolite.theory.operator_spectra import white_noise_rank


def measured(change: dict[str, Any] | None = None) -> list[Row]:
    """Rows of P7 as they should be, with something changed in the first row of a measure."""
    rows, left = [], dict(change or {})
    for cell in claims["P7"].cells():
        row: dict[str, Any]
        if cell.measure == "known-epsilon-rank":
            case = {"truth": 4, "interval": [3, 5], "d1_truth": 3, "d1_interval": [2, 4], "d1_grid": [1, 4]}
            row = {"cases": [{"epsilon": e, **case, **left.pop("case", {})} for e in cell.config["epsilons"]]}
        elif cell.measure == "tail-bias":
            row = {"in_sample": [0.7, 0.8, 0.9], "held_out": [1.1, 1.2, 1.3], **left.pop("bias", {})}
        else:
            low = left.pop("least", None)
            cases = [
                {"templates": "chebyshev", "terms": r, "epsilon": 0.1, "least_rank": [low or r, low or r]}
                for r in (1, 2, 3, 4)
            ]
            row = {"cases": cases, "relative_d2_of_rank_0_at_the_templates": {"0.01": 0.3, "1e-06": 3e-5}}
        rows.append(Row(cell, row))
    assert not left
    return rows


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "holds"),
        ({"case": {"interval": [5, 7]}}, "undecided"),  # the truth is below
        ({"case": {"interval": [1, 3]}}, "undecided"),
        ({"case": {"interval": [1, None]}}, "holds"),  # one that is open above
        ({"case": {"d1_interval": [4, 9]}}, "undecided"),
        ({"case": {"d1_truth": None, "d1_interval": [5, 9]}}, "undecided"),  # above a rank that is enough
        ({"bias": {"in_sample": [1.0, 1.01, 1.02]}}, "holds"),  # within two standard errors
        ({"bias": {"in_sample": [1.05, 1.06, 1.07]}}, "undecided"),
        ({"bias": {"held_out": [0.7, 0.7, 0.7]}}, "undecided"),
        ({"least": 5}, "fails"),  # more than the products that are known to do
    ],
)
def test_p7_fails_by_conclusion_4_3_alone_and_needs_a_sound_instrument(change, outcome):
    assert claims["P7"].decide(measured(change)).outcome == outcome


def losses(square: list[int], mean: int = 1) -> list[Row]:
    rows = []
    numbers = iter(square * 2)
    for cell in claims["P9"].cells():
        if cell.measure == "loss-ranks":
            ranks = {"d1": [1, mean], "d2": next(numbers), "sup": [1, 9]}
            rows.append(Row(cell, {"relative": ranks, "absolute": ranks, "spike_norm_ratio": 4.0}))
        else:
            fit = {k: [0.5, 0.4, 0.6] for k in ("d1", "d2", "likeness_to_smooth", "likeness_to_spike")}
            rows.append(Row(cell, {"absolute": fit, "square": fit}))
    return rows


@pytest.mark.parametrize(
    ("square", "mean", "outcome"),
    [
        ([15, 59, 235, 940, 1881], 1, "fails"),
        ([1, 2, 2, 2, 2], 1, "holds"),
        ([15, 20, 25, 30, 35], 1, "undecided"),
        ([15, 59, 235, 940, 1881], 8, "undecided"),  # d₁ is not proven to stay at 1
    ],
)
def test_p9_fails_only_where_one_rank_stays_and_the_other_grows(square, mean, outcome):
    assert claims["P9"].decide(losses(square, mean)).outcome == outcome


def functions(very: int, full: int) -> list[Row]:
    """So many very nonlinear functions, so many of them full; all others are mild and full."""
    rows, number = [], 0
    for cell in claims["P10"].cells():
        if cell.measure == "certified-full-rank":
            found = {"points": 24, "full": True, "determinant": "1", "float_rank": 9, "epsilon_ranks": [2, 3]}
        elif cell.measure == "drawn-function-ranks":
            found = {"functions": []}
            for _ in range(cell.config["count"]):
                rank = 128 if number < full or number >= very else 90
                turns = 10 if number < very else 9.9
                found["functions"].append(
                    {"variables": 1, "nonlinear_share": 0.9, "turns": turns, "ranks": [[50, None], [rank, None]]}
                )
                number += 1
        else:
            ranks = {"128": [[9, 9], [round(128 * white_noise_rank(0.01)), 9]]}
            found = {"members": [{"exponent": 0.4, "ranks": ranks}] * 3}
        rows.append(Row(cell, found))
    return rows


# Wilson's 95 % interval: 60 of 60 begins at 0.940, 120 of 120 at 0.969; 49 of 60 ends at 0.895, 56 of 60 at 0.974
@pytest.mark.parametrize(
    ("very", "full", "outcome"),
    [(120, 120, "holds"), (60, 60, "undecided"), (60, 56, "undecided"), (60, 49, "fails"), (49, 0, "undecided")],
)
def test_p10_is_decided_by_the_interval_of_the_share(very, full, outcome):
    verdict = claims["P10"].decide(functions(very, full))
    assert verdict.outcome == outcome
    assert verdict.measured["very nonlinear"] == very
    assert verdict.measured["full"] == full
    assert verdict.measured["full without being very nonlinear"] == 240 - very
    assert verdict.measured["rank of white noise by templates"] == pytest.approx(0.95, abs=0.01)
    assert "do not follow" in verdict.detail  # made up: all exponents are 0.4


def test_the_cells_are_of_measures_that_are_registered():
    from theodolite.claims.degree import (
        certified_rank,
        known_functions,
        loss_distance,
        random_functions,
        template_bound,
    )

    assert all((certified_rank, known_functions, loss_distance, random_functions, template_bound))
    from theodolite.measures import measures

    for name in ("P7", "P9", "P10"):
        assert all(cell.measure in measures for cell in claims[name].cells())
