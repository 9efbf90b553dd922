"""P6: the verdict on real measurements of a smaller plan, and on measurements made up to fail it; the measures."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import theodolite.claims.degree.p6_monomials as p6
from theodolite.claims.contract import claims
from theodolite.claims.degree.monomial_ranks import SumOfMonomials, draw_exponents, monomial_spectrum
from theodolite.lab.cell import Row
from theodolite.lab.run_cells import run
from theodolite.partition import Partition
from theodolite.tasks.shared.rank_functions import sampled_ranks, truncated_rank


@pytest.fixture(scope="module")
def measured() -> list[Row]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(p6, "_MEMBERS", {"exact": 4, "birthday": 200, "density": 2, "epsilon": 12})
        patch.setattr(p6, "_EXACT", (p6._EXACT[0], p6._EXACT[-1]))
        return list(run(claims["P6"].cells()))


def test_the_claim_holds_on_real_measurements(measured):
    assert not any(row.error for row in measured)
    verdict = claims["P6"].decide(measured)
    assert verdict.outcome == "holds"
    assert verdict.measured["exact members"] == verdict.measured["at the matching"] == 10
    assert verdict.measured["coefficients all 1, below it"] >= 2
    json.dumps([row.result for row in measured], allow_nan=False)
    json.dumps([verdict.predicted, verdict.measured], allow_nan=False)


def broken(rows: list[Row], measure: str, change: Callable[[dict[str, Any]], Any]) -> list[Row]:
    """The rows with the last one of a measure changed."""
    place = max(i for i, row in enumerate(rows) if row.cell.measure == measure)
    result = json.loads(json.dumps(rows[place].result))
    change(result)
    return [*rows[:place], Row(rows[place].cell, result), *rows[place + 1 :]]


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        ("monomial-ranks", lambda r: r.update(ranks=[rank - 1 for rank in r["ranks"]])),
        ("monomial-ranks", lambda r: r.update(exact=False)),
        ("monomial-ranks", lambda r: r.update(equal=[2])),
        ("monomial-matchings", lambda r: r.update(mean=r["mean"] + 25)),
        ("monomial-epsilon", lambda r: r["ranks"].update({"0.1": [rank - 3 for rank in r["ranks"]["0.1"]]})),
        ("monomial-epsilon", lambda r: r["ranks"]["0.01"].__setitem__(0, 65)),
    ],
)
def test_laws_of_ours_that_do_not_come_out_are_told_and_decide_nothing(measured, measure, change):
    verdict = claims["P6"].decide(broken(measured, measure, change))
    assert verdict.outcome == "holds"
    assert "not all of ours do" in verdict.detail or "Laws for the share of rank d fail" in verdict.detail


def test_a_rank_above_the_number_of_terms_fails_and_one_kind_of_rank_alone_is_undecided(measured):
    above = broken(measured, "monomial-ranks", lambda r: r.update(ranks=[r["terms"] + 1]))
    assert claims["P6"].decide(above).outcome == "fails"
    low = [
        Row(r.cell, {**r.result, "ranks": [1 for _ in r["ranks"]]}) if r.cell.measure == "monomial-ranks" else r
        for r in measured
    ]
    assert claims["P6"].decide(low).outcome == "undecided"


def test_the_module_is_the_polynomial():
    exponents = [[1, 3, 2], [2, 1, 1]]
    module = SumOfMonomials(exponents)
    with torch.no_grad():
        module.coefficients.copy_(torch.tensor([2.0, -3.0]))
    x = torch.tensor([[0.5, -2.0, 3.0], [1.0, 0.0, 4.0]])
    assert module(x).tolist() == [2 * 0.5 * -8 * 9 - 3 * 0.25 * -2 * 3, 0.0]


@pytest.mark.parametrize("balanced", [True, False])
def test_the_exact_spectrum_agrees_with_sampling(balanced):
    """The member itself at random pairs of points; both of its errors are measured without knowing the moments."""
    (exponents,) = draw_exponents(1, 6, 4, 3, seed=1)
    weights = np.random.default_rng(2).standard_normal(6)
    module = SumOfMonomials(exponents.tolist()).double()
    sizes = np.sqrt((1 / (2 * exponents + 1)).prod(axis=1)) if balanced else 1.0
    with torch.no_grad():
        module.coefficients.copy_(torch.from_numpy(weights / sizes))
        function = lambda x: module(x)
        found = sampled_ranks(function, Partition.left_right(4), [0.3, 0.1, 0.03], "uniform", points=160)
    spectrum = monomial_spectrum(exponents, weights, "uniform", balanced)
    ranks = [truncated_rank(spectrum, sampled.epsilon) for sampled in found]
    assert len(set(ranks)) > 1
    for sampled, rank in zip(found, ranks, strict=True):
        low, high = sampled.interval
        assert high is not None
        assert low <= rank <= high
        assert high - low <= 1


def test_exponents_fill_their_range_and_come_from_the_seed():
    drawn = draw_exponents(50, 8, 4, 5, seed=3)
    assert drawn.shape == (50, 8, 4)
    assert sorted(set(drawn.flatten().tolist())) == [1, 2, 3, 4, 5]
    assert np.array_equal(drawn, draw_exponents(50, 8, 4, 5, seed=3))
    assert not np.array_equal(drawn, draw_exponents(50, 8, 4, 5, seed=4))
