"""Resampling: what a mean would have been over other rows of the same kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_AT_ONCE = 2**22  # counts held at a time


def resampled_means(rows: ArrayLike, generator: np.random.Generator, resamples: int = 1000) -> NDArray[np.float64]:
    """Means (resample, …) over as many rows, drawn with replacement; what stands in one row stays together."""
    values = np.asarray(rows, dtype=np.float64)
    n = len(values)
    means = np.empty((resamples, *values.shape[1:]))
    step = max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = generator.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        means[start : start + size] = np.tensordot(counts, values, axes=1) / n
    return means


def percentile_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """The middle part of resampled values."""
    low, high = np.quantile(np.asarray(values, dtype=float), ((1 - confidence) / 2, (1 + confidence) / 2))
    return float(low), float(high)
