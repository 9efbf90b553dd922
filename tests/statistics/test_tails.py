"""Two tails against scipy's, and against whole numbers where those can be counted."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from theodolite.statistics.intervals import sign_test
from theodolite.statistics.tails import Z, halves_tail, student_quantile


@pytest.mark.parametrize("freedom", [*range(1, 40), 99, 100, 999, 1000, 1001, 5000, 10**6])
def test_students_quantile_is_that_of_the_library(freedom):
    assert student_quantile(freedom) == pytest.approx(special.stdtrit(freedom, 0.975), rel=1e-13)


def test_students_quantile_comes_to_the_normal_ones():
    assert special.ndtri(0.975) == Z
    assert student_quantile(10**9) == pytest.approx(Z, rel=1e-8)


@given(st.integers(0, 400), st.integers(0, 400))
def test_few_throws_are_counted_exactly(fewer, more):
    trials = fewer + more
    counted = Fraction(sum(math.comb(trials, k) for k in range(fewer + 1)), 2**trials)
    assert halves_tail(fewer, trials) == pytest.approx(float(counted), rel=1e-12)


@pytest.mark.parametrize(("fewer", "trials"), [(1001, 2100), (1100, 2500), (2400, 5001)])
def test_many_throws_are_as_if_counted(fewer, trials):
    term = total = 1
    for k in range(1, fewer + 1):
        term = term * (trials - k + 1) // k
        total += term
    assert halves_tail(fewer, trials) == pytest.approx(total / 2**trials, rel=1e-12)


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_the_sign_test_is_that_of_the_library(wins, losses):
    expected = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == pytest.approx(expected, rel=1e-9)
