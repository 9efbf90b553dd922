"""Waves: the closed form beside drawn directions and beside the general estimator from drawn inputs; landscapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from theodolite.claims.expressivity.landscape import cosine_landscape
from theodolite.claims.expressivity.linear_periodic import Slope, drawn_variance
from theodolite.errors import BadInput
from theodolite.instruments.gradient.signal import signal
from theodolite.theory.gradient import cosine_gradient_power, cosine_loss, cosine_variance


@pytest.mark.parametrize(("dimensions", "radius", "norm"), [(2, 1.0, 1.0), (5, 2.0, 1.5), (30, 3.0, 2.0)])
def test_drawn_directions_scatter_around_the_closed_form(dimensions, radius, norm):
    value, error = drawn_variance(dimensions, radius, norm, 40_000, seed=1)
    assert abs(value - cosine_variance(dimensions, radius, norm)) < 4 * error
    assert error < 0.1 * value


class Cosine(nn.Module):
    """p(x) = cos⟨w, x⟩."""

    def __init__(self, features: int = 8, norm: float = 1.0) -> None:
        super().__init__()
        drawn = torch.randn(1, features)
        self.weight = nn.Parameter(norm * drawn / drawn.norm())

    def forward(self, x: Tensor) -> Tensor:
        return torch.cos(x @ self.weight.T)


def test_the_estimator_from_drawn_inputs_finds_the_closed_form():
    module = Cosine(3, norm=1.5)
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


def test_what_has_no_landscape_is_refused():
    with pytest.raises(BadInput, match="reach"):
        cosine_landscape(reach=0.0)
