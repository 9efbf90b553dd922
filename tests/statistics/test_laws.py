"""The law of a curve against curves whose law is known."""

from __future__ import annotations

import numpy as np
import pytest

from theodolite.statistics.laws import choose_law

X = np.array([8.0, 16, 32, 64, 128])


@pytest.mark.parametrize("seed", range(5))
def test_a_law_is_found_under_noise_and_no_other_is_told_beside_it(seed):
    noise = 0.1 * np.random.default_rng(seed).standard_normal(len(X))
    power = choose_law(X, -1.5 * np.log(X) + noise, 0.1)
    assert (power.shape, power.half_life) == ("power", None)
    assert power.exponent == pytest.approx(-1.5, abs=0.2)
    falling = choose_law(X, -np.log(2) * X / 3 + noise, 0.1)
    assert (falling.shape, falling.exponent) == ("exponential", None)
    assert falling.half_life == pytest.approx(3, rel=0.1)
    assert choose_law(X, noise, 0.1).shape == "flat"


def test_neither_is_said_where_neither_foretells_what_was_held_out():
    jump = np.array([0.0, -9.0, -9.0, -9.0, -9.0])
    found = choose_law(X, jump)
    assert found.shape is found.exponent is found.half_life is None
    assert min(found.errors.values()) > 0.5
    assert choose_law(X[:2], jump[:2]).shape is None, "two points are on every curve"
