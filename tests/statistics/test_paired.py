"""Paired errors against scipy's test of pairs, and the correction for many of them against its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from theodolite.statistics.paired import above_zero, against, error_ratio, holm, signs


def test_the_ratio_of_errors_is_the_paired_t_test_of_their_logarithms() -> None:
    random = np.random.default_rng(0)
    first = random.normal(size=16)
    second = first + random.normal(0.05, 0.1, size=16)
    found = error_ratio(first.tolist(), second.tolist())
    expected = stats.ttest_rel(first, second)
    assert found.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert np.log(found.interval) == pytest.approx([interval.low, interval.high])
    assert found.value == pytest.approx(math.exp((first - second).mean()))
    assert error_ratio([1.0, 2.0], [1.0, 2.0]).p == 1.0


def test_one_pair_tells_nothing() -> None:
    alone = error_ratio([0.0], [5.0])
    assert alone.interval == (0.0, math.inf)
    assert signs([alone]) == [0]


def test_holm_rejects_what_testing_every_intersection_rejects() -> None:
    """Holm is the closure of Bonferroni: a hypothesis falls if every set that holds it has a p ≤ level / its size."""
    random = np.random.default_rng(1)
    for _ in range(50):
        p = (random.random(5) ** 4).tolist()
        sets = [s for size in range(1, 6) for s in itertools.combinations(range(5), size)]
        falls = {s: min(p[i] for i in s) <= 0.05 / len(s) for s in sets}
        assert holm(p) == [all(falls[s] for s in sets if i in s) for i in range(5)]
    assert holm([]) == []


def test_a_mean_above_zero_is_seen_by_chance_as_often_as_the_level_says() -> None:
    random = np.random.default_rng(2)
    samples = random.exponential(size=(4000, 400)) - 1
    share = np.mean([above_zero(sample, 0.1) for sample in samples])
    assert share == pytest.approx(0.1, abs=4 * math.sqrt(0.1 * 0.9 / 4000) + 0.01)  # and the skew of 400 values
    assert above_zero(samples[0] + 0.5)


def test_a_mean_against_a_bound_has_students_p_value() -> None:
    """With 3 degrees of freedom P(|T| > t) = 1 − 2/π·(arctan(t/√3) + (t/√3)/(1 + t²/3))."""
    mean, p = against([1.0, 2.0, 3.0, 4.0], 1.0)
    t = 1.5 / math.sqrt(5 / 3 / 4)
    z = t / math.sqrt(3)
    assert mean == 2.5
    assert p == pytest.approx(1 - 2 / math.pi * (math.atan(z) + z / (1 + z * z)))
    assert against([2.0, 2.0], 2.0) == (2.0, 1.0)
    assert against([2.0, 2.0], 1.0) == (2.0, 0.0)
