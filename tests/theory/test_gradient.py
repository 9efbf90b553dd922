"""Formulas of the gradient signal against sums, integrals and derivatives taken another way."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from theodolite.errors import OutsideDomain
from theodolite.theory.gradient import (
    cosine_gradient_power,
    cosine_loss,
    cosine_loss_gradient,
    cosine_variance,
    cosine_variance_by_quadrature,
    largest_cosine_variance,
    parity_correlation,
    variance_bound,
)


def test_the_corrected_product_is_the_correlation_of_parities_and_the_printed_one_is_not():
    bits = 4
    inputs = list(itertools.product((0, 1), repeat=bits))
    wrong = 0
    for v in inputs:
        for other in inputs:
            signs = [(-1) ** int(np.dot(x, v) + np.dot(x, other)) for x in inputs]
            assert parity_correlation(v, other) == sum(signs) / len(inputs)
            wrong += parity_correlation(v, other, printed=True) != sum(signs) / len(inputs)
    assert wrong == len(inputs) * (len(inputs) - 1)  # right only where v = v′


def test_parities_of_different_lengths_are_refused():
    with pytest.raises(OutsideDomain, match="3 and 2 bits"):
        parity_correlation((0, 1, 1), (0, 1))


def test_the_bound_falls_with_the_class_and_grows_with_its_largest_eigenvalue():
    assert variance_bound(8.0, 4) == 2.0
    assert variance_bound(8.0, 4, largest=3.0) == 6.0


def normal_grid(points: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Hermite nodes and weights for two standard normal variables."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    x = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    return x, np.outer(weights, weights).ravel() / (2 * math.pi)


@pytest.mark.parametrize("w", [(0.3, -0.7), (2.0, 2.0), (-1.5, 0.4)])
def test_the_loss_of_a_cosine_is_its_integral_and_the_gradient_its_derivative(w):
    v = np.array([2.0, 2.0])
    x, weights = normal_grid()
    integral = float(weights @ (np.cos(x @ np.array(w)) - np.cos(x @ v)) ** 2)
    assert cosine_loss(np.array(w), v) == pytest.approx(integral, abs=1e-9)
    slope = approx_fprime(np.array(w), lambda place: float(cosine_loss(place, v)), 1e-7)
    assert cosine_loss_gradient(np.array(w), v) == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize(
    ("dimensions", "radius", "norm"),
    [(2, 1.0, 1.0), (3, 8.0, 8.0), (5, 2.0, 2.0), (8, 0.5, 0.3), (20, 3.0, 2.0), (100, 2.0, 1.0), (1000, 4.0, 4.0)],
)
def test_the_variance_in_closed_form_equals_the_quadrature(dimensions, radius, norm):
    closed = cosine_variance(dimensions, radius, norm)
    assert closed == pytest.approx(cosine_variance_by_quadrature(dimensions, radius, norm), rel=1e-8)
    assert closed > 0


def test_the_variance_in_two_dimensions_is_the_mean_over_the_circle():
    angles = np.linspace(0, 2 * math.pi, 2000, endpoint=False)
    v = 1.7 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    w = np.array([0.9, 0.0])
    # F_v of the theorem has ½ before the square: half of the gradient; what does not depend on v drops out.
    gradients = cosine_loss_gradient(np.broadcast_to(w, v.shape), v) / 2
    spread = ((gradients - gradients.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert cosine_variance(2, 1.7, 0.9) == pytest.approx(spread, rel=1e-9)


def test_the_power_of_the_gradient_is_its_integral():
    x, weights = normal_grid()
    w = np.array([0.8, -0.6])
    integral = float(weights @ (np.sin(x @ w) ** 2 * (x**2).sum(axis=1)))
    assert cosine_gradient_power(1.0, 2) == pytest.approx(integral, rel=1e-9)


def test_the_largest_variance_is_reached_between_the_ends_and_falls_with_the_dimension():
    few, many = largest_cosine_variance(4, 8.0), largest_cosine_variance(12, 8.0)
    assert few[0] > 1e3 * many[0]
    assert 0 < few[1] < 11
    assert few[0] >= max(cosine_variance(4, 8.0, norm) for norm in (1.0, 4.0, 8.0, 9.5))


@pytest.mark.parametrize("bad", [(1, 1.0, 1.0), (3, 0.0, 1.0), (3, 1.0, -1.0)])
def test_what_spans_no_sphere_is_refused(bad):
    with pytest.raises(OutsideDomain):
        cosine_variance(*bad)
