"""Tasks on vectors against what mathematics says of the functions."""

from __future__ import annotations

import math

import pytest
import torch

from theodolite.tasks.linear_periodic import LinearPeriodic
from theodolite.tasks.majority import Majority
from theodolite.tasks.sawtooth import Sawtooth


@pytest.mark.parametrize("folds", [1, 2, 3, 6])
def test_a_sawtooth_has_two_to_the_folds_linear_pieces(folds):
    """Read off sorted draws: the slope is ±2^folds, and changes sign once at the end of each piece but the last."""
    drawn = Sawtooth(folds).sample(1, 20_000, None, torch.Generator().manual_seed(0))
    x, order = drawn.inputs.double().flatten().sort()
    y = drawn.targets.double().flatten()[order]
    apart = x.diff() > 1e-5
    slopes = y.diff()[apart] / x.diff()[apart]
    steep = slopes[slopes.abs() > 0.999 * 2**folds]  # the others reach over a tooth
    assert len(slopes) - len(steep) < 2**folds
    assert float(steep.abs().max()) <= 2**folds * 1.001
    assert 1 + int((steep.sign().diff() != 0).sum()) == 2**folds
    assert 0 <= float(y.min()) < 0.01
    assert 0.99 < float(y.max()) <= 1
    assert float(y.var()) == pytest.approx(1 / 12, rel=0.05)


def test_folding_once_more_is_the_tent_map_of_the_sawtooth():
    draw = lambda folds: Sawtooth(folds).sample(2, 100, None, torch.Generator().manual_seed(1)).targets
    assert torch.equal(draw(4), 1 - (1 - 2 * draw(3)).abs())


@pytest.mark.parametrize("frequency", [0.1, 0.25, 0.5, 3.0])
def test_a_periodic_function_has_the_variance_of_a_cosine_of_a_gaussian(frequency):
    """E cos(ωz) = e^(−ω²/2) and E cos²(ωz) = (1 + e^(−2ω²))/2 for z ~ N(0, 1)."""
    drawn = LinearPeriodic(7, frequency).sample(4, 10_000, None, torch.Generator().manual_seed(2))
    omega = 2 * math.pi * frequency
    mean = math.exp(-(omega**2) / 2)
    assert float(drawn.targets.mean()) == pytest.approx(mean, abs=0.02)
    assert float(drawn.targets.var()) == pytest.approx((1 + math.exp(-2 * omega**2)) / 2 - mean**2, abs=0.02)
    torch.testing.assert_close(drawn.inputs.flatten(0, 1).T.cov(), torch.eye(7), atol=0.05, rtol=0)


def test_only_one_direction_matters_to_a_periodic_function():
    task = LinearPeriodic(4, 0.7)
    row = [0.3, -1.2, 0.8, 0.5]
    moved = [0.3 + 1.0, -1.2 - 1.0, 0.8 + 0.25, 0.5 - 0.25]
    assert task.solve(moved) == pytest.approx(task.solve(row))
    period = math.sqrt(4) / 0.7
    assert task.solve([row[0] + period, *row[1:]]) == pytest.approx(task.solve(row))
    assert task.solve([row[0] + period / 2, *row[1:]]) == pytest.approx([-task.solve(row)[0]])


def test_a_tie_goes_to_plus():
    drawn = Majority(2).sample(1, 200, None, torch.Generator().manual_seed(3))
    tied = drawn.inputs.sum(dim=-1) == 0
    assert tied.any()
    assert bool((drawn.targets[tied] == 1).all())
