"""Waves: the closed form beside drawn directions and beside the general estimator from drawn inputs; landscapes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from theodolite.claims.expressivity.landscape import cosine_landscape, landscape
from theodolite.claims.expressivity.linear_periodic import CosineNet, Slope, drawn_variance
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.gradient.signal import builder, signal
from theodolite.tasks.parity import Parity
from theodolite.theory.gradient import cosine_gradient_power, cosine_loss, cosine_variance


@pytest.mark.parametrize(("dimensions", "radius", "norm"), [(2, 1.0, 1.0), (5, 2.0, 1.5), (30, 3.0, 2.0)])
def test_drawn_directions_scatter_around_the_closed_form(dimensions, radius, norm):
    value, error = drawn_variance(dimensions, radius, norm, 40_000, seed=1)
    assert abs(value - cosine_variance(dimensions, radius, norm)) < 4 * error
    assert error < 0.1 * value


def test_the_estimator_from_drawn_inputs_finds_the_closed_form():
    module = CosineNet(3, norm=1.5)
    found = signal(module, family="linear-periodic", bits=3, radius=1.5, samples=1 << 15, members=400)
    truth = cosine_variance(3, 1.5, 1.5)
    assert not found.exact
    assert found.details["resolved"]
    assert not found.applies
    # The interval is for the members that were drawn; those differ from all of them by their own sampling.
    assert found.variance == pytest.approx(truth, rel=0.1)
    assert found.interval[0] < found.variance < found.interval[1] < 1.2 * truth
    assert found.gradient_power == pytest.approx(cosine_gradient_power(1.5, 3), rel=0.05)
    assert found.ratio <= 1


def test_a_variance_below_the_noise_is_said_to_be_swamped():
    found = signal("mlp", family="linear-periodic", bits=10, radius=6.0, samples=2048, members=64, width=16)
    assert not found.details["resolved"]
    assert found.interval[0] < 0 < found.interval[1]


def test_a_straight_line_through_logarithms():
    line = Slope.of([1, 2, 3, 4], [np.exp(-2 * x + 1) for x in (1, 2, 3, 4)])
    assert (line.slope, line.fit) == (pytest.approx(-2), pytest.approx(1))


def test_the_cosine_has_two_minima_and_is_flat_away_from_them():
    found = cosine_landscape((2.0, 2.0), reach=12.0, points=97)
    assert [place[:2] for place in found.minima] == [(-2.0, -2.0), (2.0, 2.0)]
    assert all(value == pytest.approx(0, abs=1e-12) for *_, value in found.minima)
    assert found.flat > 0.8
    i, j = found.xs.index(1.0), found.ys.index(-3.0)
    assert found.loss[i][j] == pytest.approx(float(cosine_loss(np.array([1.0, -3.0]), np.array([2.0, 2.0]))))


def test_the_slice_of_a_net_passes_through_its_loss():
    found = landscape("mlp", "parity", {"bits": 5, "relevant": 2}, points=5, samples=256, width=6, seed=2)
    module = builder("mlp", Parity(5, 2), {"width": 6})[1](2)
    batch = Parity(5, 2).sample(1, 256, None, torch.Generator().manual_seed(2))
    loss = torch.relu(1 - module(batch.inputs[0]) * batch.targets[0]).mean()
    assert found.loss[2][2] == pytest.approx(loss.item(), rel=1e-5)
    assert len({value for row in found.loss for value in row}) > 20
    assert json.dumps(found.to_json(), allow_nan=False)


def test_the_slope_of_a_slice_is_the_change_of_the_loss_along_it():
    reach = 1e-3
    found = landscape("mlp", "linear-periodic", {"dimensions": 3}, points=3, samples=512, width=6, reach=reach)
    weights = builder("mlp", Parity(3, 1), {"width": 6})[1](0).parameters()
    length = float(sum(p.detach().square().sum() for p in weights)) ** 0.5
    loss = np.array(found.loss)
    by_hand = np.hypot(loss[2, 1] - loss[0, 1], loss[1, 2] - loss[1, 0]) / (2 * reach * length)
    assert found.slope[1][1] == pytest.approx(by_hand, rel=0.05)


def test_what_has_no_landscape_is_refused():
    with pytest.raises(BadInput, match="reach"):
        cosine_landscape(reach=0.0)
    with pytest.raises(NotApplicable, match="tokens"):
        landscape("rnn", "copy")
