"""The published fit against what its paper states of it, and its algebra against plain arithmetic."""

from __future__ import annotations

import math

import pytest

from theodolite.errors import OutsideDomain
from theodolite.theory.shapes import (
    EFFECT_RANGE,
    EFFECT_SHAPES,
    Fit,
    boundary_depth,
    dense_parameters,
    depth_interval,
    fitted_depth,
)


def test_a_trillion_parameters_get_the_published_width_of_thirty_thousand():
    depth = fitted_depth(1e12)
    assert Fit().width(depth) == pytest.approx(30_000, rel=0.02)


def test_gpt3_is_too_deep_for_its_size_as_published():
    low, high = depth_interval(dense_parameters(96, 12288))
    assert low < 81 < high < 96


def test_the_fitted_depth_spends_exactly_the_budget():
    for parameters in (1e5, 8.5e7, 1e9, 3e11):
        for fit in (Fit(), Fit(ratio=10)):
            depth = fitted_depth(parameters, fit)
            assert 12 * depth * fit.width(depth) ** 2 == pytest.approx(parameters, rel=1e-9)
            assert fit.depth(fit.width(depth)) == pytest.approx(depth)


def test_the_coefficients_are_the_published_ones():
    assert math.log(Fit().width(0)) == pytest.approx(5.039)
    assert math.log(Fit().width(10) / Fit().width(0)) == pytest.approx(0.555)


def test_images_have_ten_times_the_depth_to_width_ratio_at_the_same_size():
    language, image = Fit(), Fit(ratio=10)
    for parameters in (1e8, 1e10):
        ratios = [fitted_depth(parameters, fit) / fit.width(fitted_depth(parameters, fit)) for fit in (language, image)]
        assert ratios[1] / ratios[0] == pytest.approx(10)


def test_the_interval_contains_every_fit_within_the_published_uncertainty():
    low, high = depth_interval(1e9)
    for a in (-1, -0.3, 0, 0.8, 1):
        for b in (-1, 0, 0.5, 1):
            depth = fitted_depth(1e9, Fit(5.039 + 0.030 * a, 0.0555 + 0.0013 * b))
            assert low - 1e-9 <= depth <= high + 1e-9
    assert low < fitted_depth(1e9) < high


@pytest.mark.parametrize(("depth", "outside"), [(5.9, True), (6, False), (47.9, False), (48.1, True)])
def test_depths_outside_six_to_forty_eight_are_extrapolated(depth, outside):
    assert Fit().extrapolates(depth) is outside
    assert Fit(ratio=8).extrapolates(4 * depth + 1e-9) is outside  # 8^(2/3) = 4


def test_the_ends_of_the_fitted_depths_are_fitted():
    assert not Fit().extrapolates(6)
    assert not Fit().extrapolates(48)


def test_the_boundary_is_where_three_to_the_depth_is_the_width():
    for depth in (1, 4, 9):
        assert boundary_depth(3**depth) == pytest.approx(depth)


@pytest.mark.parametrize("parameters", [0, -1, math.nan, math.inf])
def test_a_budget_that_is_no_size_is_refused(parameters):
    with pytest.raises(OutsideDomain, match="positive"):
        fitted_depth(parameters)


def test_the_published_pair_of_shapes_is_of_one_size():
    """Kaplan et al. 2020: 6 layers of width 4288 beside 48 of width 1600, of nearly equal N."""
    (first, wide), (last, narrow) = EFFECT_SHAPES
    assert dense_parameters(first, wide) == pytest.approx(dense_parameters(last, narrow), rel=0.12)
    assert pytest.approx((wide / first) / (narrow / last)) == EFFECT_RANGE
