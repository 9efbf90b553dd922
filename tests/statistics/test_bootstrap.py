"""Resampled means against every possible resample, and against a paired t-test."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from theodolite.statistics import bootstrap
from theodolite.statistics.bootstrap import percentile_interval, resampled_means


def test_resampled_means_are_distributed_as_all_resamples_are() -> None:
    rows = np.array([0.0, 1.0, 10.0])
    means = resampled_means(rows, np.random.default_rng(0), 20_000)
    every = [np.mean(chosen) for chosen in itertools.product(rows, repeat=3)]
    for value in sorted(set(every)):
        share = every.count(value) / 27
        assert np.isclose(means, value).mean() == pytest.approx(share, abs=4 * np.sqrt(share / 20_000))


def test_rows_stay_together_and_parts_at_a_time_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(1).normal(size=(7, 2, 3))
    whole = resampled_means(rows, np.random.default_rng(2), 50)
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 3 * 7)
    np.testing.assert_array_equal(resampled_means(rows, np.random.default_rng(2), 50), whole)
    drawn = np.random.default_rng(2).integers(7, size=(50, 7))
    np.testing.assert_allclose(whole, rows[drawn].mean(axis=1))


def test_resampled_means_agree_with_a_paired_t_test() -> None:
    generator = np.random.default_rng(0)
    base = generator.exponential(size=2000)
    losses = np.stack([base, base + 0.02 + 0.3 * generator.normal(size=2000)], axis=1)
    means = resampled_means(losses, generator, 2000)
    exact = stats.ttest_rel(losses[:, 0], losses[:, 1], alternative="less").pvalue
    assert 1e-3 < exact < 0.2  # a case where it could go wrong
    assert abs(np.mean(means[:, 0] >= means[:, 1]) - exact) < 0.02
    np.testing.assert_allclose(means.std(0), losses.std(0) / np.sqrt(2000), rtol=0.1)
    student = stats.ttest_1samp(losses[:, 0], 0).confidence_interval()
    assert percentile_interval(means[:, 0]) == pytest.approx((student.low, student.high), abs=0.01)
