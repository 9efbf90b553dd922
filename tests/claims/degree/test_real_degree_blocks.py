"""Ranks and training of blocks whose degree is not whole."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from theodolite.claims.degree.real_degree_blocks import draw_targets, spread_degree, whole_degrees
from theodolite.errors import BadInput
from theodolite.measures import measure

CPU = torch.device("cpu")


def ranked(features, width, degrees, points=200):
    config = {"features": features, "width": width, "degrees": degrees, "points": points, "repeats": 1}
    return measure("real-degree-rank", config, 0, "cpu")


@pytest.mark.parametrize(("total", "width"), [(8, 4), (5, 6), (7, 3)])
def test_spread_degrees_sum_to_the_total_in_whole_units_and_differ_by_one_at_most(total, width):
    for depth in range(1, total + 1):
        units = [d * width for d in spread_degree(total, depth, width)]
        assert len(units) == depth
        assert sum(units) == pytest.approx(total * width)
        assert all(abs(u - round(u)) < 1e-9 for u in units)
        assert max(units) - min(units) < 1 + 1e-9
        assert units == sorted(units, reverse=True)
    with pytest.raises(BadInput, match=f"{total + 1} blocks of degree 1 or more cannot sum to {total}"):
        spread_degree(total, total + 1, width)


@pytest.mark.parametrize("total", [4, 5, 8])
def test_whole_degrees_are_all_lists_of_that_sum(total):
    brute = {
        each
        for depth in range(1, total)
        for each in itertools.product(range(2, total + 1), repeat=depth)
        if sum(each) == total
    }
    found = list(whole_degrees(total))
    assert set(found) == brute
    assert len(found) == len(brute)


def test_the_rank_of_a_share_block_is_that_of_a_matrix_of_its_coefficients():
    """One layer of width 2 on 1|1 inputs with one unit of degree 3 and one of 2: y = a·(cubic) + b·(square), whose
    coefficients of x^i z^j are a 4 × 4 matrix with nothing past i + j = 3, of rank 4 in general."""
    found = ranked(2, 2, [2.5], points=30)
    assert (found["rank"], found["degree"], found["at_least"]) == (4, 3, False)
    assert found["parameters"] == 2.5 * 4 + 2


def test_equal_sums_have_equal_parameters_and_a_few_units_of_higher_degree_have_more_rank():
    whole = [ranked(4, 4, list(degrees)) for degrees in whole_degrees(5)]
    real = ranked(4, 4, spread_degree(5, 2, 4))
    assert {r["parameters"] for r in whole} == {real["parameters"]}
    assert real["rank"] > max(r["rank"] for r in whole)
    assert all(r["rank"] <= r["cap"] for r in [*whole, real])


def test_a_rank_that_fills_its_points_is_called_a_lower_bound():
    assert ranked(4, 4, [3, 3], points=12)["at_least"]


@pytest.mark.parametrize("kind", ["smooth", "rough"])
def test_targets_are_standard_differ_from_seed_to_seed_and_are_as_rough_as_their_name(kind):
    x, y = draw_targets(kind, 1, 3, CPU)
    assert x.shape == (3, 5000, 1)
    torch.testing.assert_close(y.mean(dim=1), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.std(dim=1), torch.ones(3), atol=1e-5, rtol=0)
    again, _ = draw_targets(kind, 1, 2, CPU)
    assert torch.equal(again, x[:2])
    assert not torch.equal(x[0], x[1])
    # The degree-40 polynomial that fits best: exact for waves, never for kinks.
    grid = x[0, :, 0].double() / math.sqrt(3)
    basis = torch.cos(torch.arange(41) * torch.acos(grid.clamp(-1, 1))[:, None])
    left = y[0].double()[:, None] - basis @ torch.linalg.lstsq(basis, y[0].double()[:, None]).solution
    assert (float(left.std()) < 1e-5) == (kind == "smooth")


def test_an_unknown_target_is_refused():
    with pytest.raises(BadInput, match="there is no target 'spiky': use smooth or rough"):
        draw_targets("spiky", 1, 1, CPU)


def test_members_trained_together_are_those_trained_alone():
    config = {
        "targets": ["smooth", "rough"],
        "features": 2,
        "width": 4,
        "degrees": [2.5],
        "power": "learnt",
        "seeds": 2,
        "steps": 12,
        "batch": 16,
        "rates": [0.001, 0.02],
    }
    together = measure("real-degree-training", config, 3, "cpu")
    alone = measure("real-degree-training", {**config, "rates": [0.02]}, 3, "cpu")
    assert together["errors"]["rough"][1] == pytest.approx(alone["errors"]["rough"][0], rel=1e-4)
    assert together["errors"]["rough"][0] != pytest.approx(alone["errors"]["rough"][0], rel=1e-3)
    assert len(alone["exponents"]) == 3
    assert alone["degrees"] != pytest.approx([2.5], abs=1e-6)
    assert all(0 < e < 3 for by in together["errors"].values() for seeds in by for e in seeds)


def test_training_lowers_the_error():
    config = {
        "targets": ["smooth"],
        "features": 1,
        "width": 8,
        "degrees": [2.5],
        "power": "share",
        "seeds": 2,
        "batch": 32,
        "rates": [0.02],
    }
    few, many = (
        measure("real-degree-training", {**config, "steps": n}, 0, "cpu")["errors"]["smooth"][0] for n in (1, 80)
    )
    assert max(many) < 0.5 * min(few)
