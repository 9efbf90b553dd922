"""Intervals against published numbers, their definitions, and by counting how often they hold what they should."""

# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import math
import statistics
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from theodolite.statistics.intervals import (
    chance_of_no_excess,
    difference_interval,
    mean_interval,
    paired_shares,
    sign_test,
    wilson,
)

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30)


@pytest.mark.parametrize("trials", [1, 2, 7, 16, 500])
def test_the_ends_of_wilsons_interval_are_the_shares_a_z_test_just_keeps(trials):
    for successes in range(0, trials + 1, max(1, trials // 16)):
        for end in wilson(successes, trials):
            if 0 < end < 1:
                z = (successes / trials - end) / math.sqrt(end * (1 - end) / trials)
                assert abs(z) == pytest.approx(1.959963984540054)


def test_wilson_of_no_trials_is_no_interval_and_the_ends_are_exact():
    assert wilson(0, 0) is None
    assert wilson(0, 9)[0] == 0.0
    assert wilson(9, 9)[1] == 1.0


@given(VALUES)
def test_the_interval_of_a_mean_is_that_of_students_test(values):
    low, high = mean_interval(values)
    mean = math.fsum(values) / len(values)
    assert low <= mean <= high
    if np.ptp(values) > 1e-6:  # scipy warns of values that are nearly equal
        expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-9)


def test_one_value_has_no_interval():
    assert mean_interval([0.5]) is None
    assert mean_interval([]) is None
    assert mean_interval([0.1] * 3) == pytest.approx((0.1, 0.1))


def test_the_interval_of_a_difference_is_welchs():
    """Against the formula: Satterthwaite's degrees of freedom."""
    random = np.random.default_rng(2)
    first, second = random.normal(1, 1, 7).tolist(), random.normal(0, 3, 12).tolist()
    a, b = statistics.variance(first) / 7, statistics.variance(second) / 12
    freedom = (a + b) ** 2 / (a**2 / 6 + b**2 / 11)
    middle = statistics.fmean(first) - statistics.fmean(second)
    for confidence in (0.9, 0.95):
        half = stats.t.ppf((1 + confidence) / 2, freedom) * math.sqrt(a + b)
        assert difference_interval(first, second, confidence) == pytest.approx((middle - half, middle + half))


@pytest.mark.filterwarnings("error")
def test_equal_values_on_one_side_or_both_are_no_mistake():
    assert difference_interval([1, 1], [0.5, 0.5]) == (0.5, 0.5)
    low, high = difference_interval([0.9] * 3, [0.1, 0.2, 0.3])
    assert (low, high) == pytest.approx(
        (0.7 - stats.t.ppf(0.975, 2) * 0.1 / 3**0.5, 0.7 + stats.t.ppf(0.975, 2) * 0.1 / 3**0.5)
    )


def test_an_excess_has_the_p_value_that_the_interval_of_the_mean_inverts():
    values = [0.3, 0.1, 0.25, 0.4, 0.05]
    low, high = mean_interval(values) or (0.0, 0.0)
    assert chance_of_no_excess(values, low) == pytest.approx(0.025)
    assert chance_of_no_excess(values, high) == pytest.approx(0.975)
    assert [chance_of_no_excess([0.2, 0.2], bound) for bound in (0.1, 0.2, 0.3)] == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, 2635–2650: the examples of the paper, method 10
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((18, 12, 2, 18), 0.0562, 0.3290),
        ((53, 0, 0, 1), -0.0729, 0.0729),
        ((0, 30, 0, 0), 0.8395, 1.0),
        # Fagerland, Lydersen & Laake 2017, Statistical Analysis of Contingency Tables, chapter 8: Cavo et al. 2012
        ((59, 6, 16, 80), -0.1186, -0.0046),
    ],
)
def test_paired_shares_are_newcombes_published_ones(table, low, high):
    both, only_one, only_other, neither = table  # there, the difference is the first minus the second
    difference, interval = paired_shares(both, only_other, only_one, neither)
    assert difference == pytest.approx((only_one - only_other) / sum(table))
    assert interval == pytest.approx((low, high), abs=6e-5)


def test_paired_shares_swap_with_their_sides_and_stay_within_bounds():
    assert paired_shares(0, 0, 0, 0) is None
    for a, b, c, d in product(range(5), repeat=4):
        if a + b + c + d == 0:
            continue
        difference, (low, high) = paired_shares(a, b, c, d)
        swapped, (other_low, other_high) = paired_shares(a, c, b, d)
        assert (swapped, other_low, other_high) == pytest.approx((-difference, -high, -low))
        assert -1 - 1e-12 <= low <= difference <= high <= 1 + 1e-12


@pytest.mark.parametrize(
    "chances", [(0.25, 0.25, 0.25, 0.25), (0.5, 0.1, 0.2, 0.2), (0.05, 0.05, 0.6, 0.3), (0.3, 0.05, 0.25, 0.4)]
)
def test_paired_shares_hold_the_true_difference_about_as_often_as_they_say(chances):
    """Over every table of 16 pairs with its exact probability, so nothing is left to luck."""
    n, truth, held = 16, chances[2] - chances[1], 0.0
    for a, b, c in product(range(n + 1), repeat=3):
        if (d := n - a - b - c) < 0:
            continue
        _, (low, high) = paired_shares(a, b, c, d)
        if low <= truth <= high:
            ways = math.factorial(n) / math.prod(map(math.factorial, (a, b, c, d)))
            held += ways * math.prod(p**k for p, k in zip(chances, (a, b, c, d), strict=True))
    assert 0.94 <= held <= 0.97


def test_the_sign_test_counts_splits_that_are_as_uneven():
    for wins, losses in product(range(9), repeat=2):
        n = wins + losses
        uneven = [k for k in range(n + 1) if math.comb(n, k) <= math.comb(n, wins)]
        assert sign_test(wins, losses) == pytest.approx(sum(math.comb(n, k) for k in uneven) / 2**n)
