"""Closed-form spectra against quadrature and series; the quarter circle against drawn matrices."""

import math

import pytest
import torch

from theodolite.claims.degree.known_functions import grid_matrix, value_of
from theodolite.errors import BadInput
from theodolite.theory.operator_spectra import (
    MEHLER_RATIO,
    epsilon_rank_of,
    known_spectra,
    mean_epsilon_rank_of,
    smoothness_exponent,
    white_noise_rank,
)


@pytest.mark.parametrize("name", [n for n in known_spectra if n != "mehler"])
def test_the_tail_and_the_energy_are_those_of_a_fine_grid(name):
    known = known_spectra[name]
    grid = grid_matrix(known, name, 256)
    energy = torch.linalg.svdvals(grid).square()
    assert float(grid.square().mean()) == pytest.approx(known.energy, rel=0.01)
    for r in (1, 2, 3, 5):
        assert math.sqrt(float(energy[r:].sum() / energy.sum())) == pytest.approx(known.tail(r), rel=0.01)


def test_mehlers_kernel_is_its_series():
    a, b = torch.linspace(-2, 2, 9, dtype=torch.float64), torch.linspace(-1.5, 2, 9, dtype=torch.float64)
    before, now = torch.zeros(2, 9, dtype=torch.float64), torch.ones(2, 9, dtype=torch.float64)
    x, total = torch.stack([a, b]), torch.zeros(9, dtype=torch.float64)
    for k in range(20):  # He_{k+1} = x·He_k − k·He_{k−1}
        total += MEHLER_RATIO**k * now[0] * now[1] / math.factorial(k)
        before, now = now, x * now - k * before
    assert torch.allclose(value_of("mehler", a[:, None], b[:, None]), total, atol=1e-6)
    known = known_spectra["mehler"]
    assert known.energy == pytest.approx(sum(MEHLER_RATIO ** (2 * k) for k in range(50)))


def test_epsilon_ranks_of_flat_spectra_count_what_may_be_left_out():
    steps = known_spectra["steps"]
    assert [epsilon_rank_of(steps, e) for e in (0.8, 0.5, 0.1)] == [3, 6, 8]  # 8·(1 − ε²), rounded up
    assert [mean_epsilon_rank_of(steps, e) for e in (0.8, 0.5, 0.1)] == [2, 4, 8]  # 8·(1 − ε)
    assert mean_epsilon_rank_of(known_spectra["brownian"], 0.1) is None


def test_white_noise_has_the_rank_of_the_quarter_circle_law():
    drawn = torch.randn(300, 300, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    energy = torch.linalg.svdvals(drawn).square()
    tail = (energy.flip(0).cumsum(0).flip(0) / energy.sum()).sqrt()
    for epsilon in (0.5, 0.2, 0.05):
        assert int((tail > epsilon).sum()) / 300 == pytest.approx(white_noise_rank(epsilon), abs=0.015)


def test_more_variables_cost_and_smoothness_saves():
    assert smoothness_exponent(2.5, 1) == pytest.approx(0.4)
    assert smoothness_exponent(2.5, 2) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon_rank_of(known_spectra["steps"], 0), "between 0 and 1"),
        (lambda: white_noise_rank(1.0), "between 0 and 1"),
        (lambda: smoothness_exponent(0, 1), "must be positive"),
        (lambda: known_spectra["stepps"], "did you mean 'steps'"),
    ],
)
def test_what_is_not_there_is_named(call, message):
    with pytest.raises(BadInput, match=message):
        call()
