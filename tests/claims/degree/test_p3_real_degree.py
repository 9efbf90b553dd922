"""P3 decided on rows made by hand: the rule does what it says."""

from __future__ import annotations

import math

import pytest

from theodolite.claims.contract import claims
from theodolite.claims.degree import p3_real_degree as real_degree
from theodolite.lab.cell import Row

DECIDE = claims["P3"].decide
CELLS = claims["P3"].cells()


def rows(rank=None, error=None):
    """A rank for every list of degrees, and an error for every network."""
    rank = rank or (lambda degrees: 100 if near_e(degrees) else 50)
    found = []
    for cell in CELLS:
        config = cell.config
        if cell.measure == "real-degree-rank":
            total = math.prod(math.ceil(degree) for degree in config["degrees"])
            found_rank = {"rank": rank(config["degrees"]), "cap": 5000, "degree": total}
            result = {**found_rank, "at_least": False, "parameters": 80}
        else:
            own = error(config) if error else 0.2
            errors = [[own * (1 + 0.01 * seed) for seed in range(8)] for _ in config["rates"]]
            result = {
                "errors": {"smooth": errors, "rough": errors},
                "degrees": [2.6] * 3,
                "exponents": [0.8, 0.9, 1.0] if config["power"] == "learnt" else None,
                "parameters": 2000,
            }
        found.append(Row(cell, result))
    return found


def near_e(degrees):
    return abs(sum(degrees) / len(degrees) - math.e) < 0.23 and any(d % 1 for d in degrees)


def test_what_real_degrees_cost_and_reach_is_reported_beside_whole_ones():
    best = lambda degrees: 100 if near_e(degrees) else 200 if len(degrees) > 3 and any(d % 1 for d in degrees) else 50
    verdict = DECIDE(rows(best))
    assert verdict.outcome == "not a claim", "the source asks"
    for shape in verdict.measured["ranks"]:
        assert (shape["nearest to e"]["rank"], shape["best"]["rank"], shape["best whole"]["rank"]) == (100, 200, 50)
        assert shape["best"]["degree"] == math.prod(math.ceil(float(d)) for d in shape["best"]["degrees"].split(", "))
    assert "(80 parameters, degree 16)" in verdict.detail


def test_blocks_of_real_degree_that_do_not_train_are_told():
    stuck = lambda bad: rows(error=lambda config: bad if config["power"] == "signed" else 0.2)
    assert "Blocks of real degree train" in DECIDE(stuck(0.5)).detail
    assert "do not all train" in DECIDE(stuck(0.99)).detail
    assert "do not all train" in DECIDE(stuck(math.nan)).detail
    only_whole = rows(error=lambda config: 0.99 if config["degrees"] == [4, 4] else 0.2)
    assert "Blocks of real degree train" in DECIDE(only_whole).detail


def test_errors_are_compared_with_those_of_whole_degrees_seed_by_seed():
    verdict = DECIDE(rows(error=lambda config: 0.1 if config["power"] == "learnt" else 0.2))
    ratio = verdict.measured["error against 3,3,2"]["learnt from 2.67 × 3"]["rough, 8-D"]["ratio"]
    assert ratio == pytest.approx([0.5, 0.5, 0.5])


def test_all_lists_of_a_shape_are_measured_once_and_have_one_sum():
    for shape in real_degree._SHAPES:
        lists = real_degree._lists(shape)
        assert len(lists) == len(set(lists))
        assert all(sum(each) == pytest.approx(shape[2]) for each in lists)
        assert any(near_e(each) for each in lists)


def test_the_predicted_gain_is_that_of_ln_d_over_d():
    assert real_degree._gain() == pytest.approx(0.0046, abs=5e-5)
