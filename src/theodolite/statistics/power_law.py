"""Power laws over lengths, from several draws: values of (draw, length), their curve and the fitted exponent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.statistics.intervals import mean_interval

FEWEST = 3  # lengths for a slope


def power_law(
    values: np.ndarray, lengths: Sequence[int], floor: float, generator: np.random.Generator
) -> tuple[float | None, tuple[float, float] | None, list[int]]:
    """Exponent, its interval and the lengths it was fitted on: those where every draw lies above the floor.

    Least squares on the mean logarithm over draws; draws are resampled whole. None where too few lengths are left.
    """
    usable = np.all(values > floor, axis=0)
    fitted = [n for n, use in zip(lengths, usable, strict=True) if use]
    if len(fitted) < FEWEST:
        return None, None, fitted
    logs, x = np.log(values[:, usable]), np.log(fitted)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    slopes = logs @ weights  # the slope is linear in the logarithms: that of the mean is the mean of the slopes
    return float(slopes.mean()), percentile_interval(resampled_means(slopes, generator)), fitted


def curve(values: np.ndarray, lengths: Sequence[int]) -> list[dict[str, Any]]:
    """By length: the geometric mean over draws with Student's interval, or median and range where some are 0."""
    rows = []
    for n, column in zip(lengths, values.T, strict=True):
        if np.all(column > 0):
            logs = np.log(column).tolist()
            low, high = mean_interval(logs) or (logs[0], logs[0])
            rows.append({"tokens": n, "change": math.exp(math.fsum(logs) / len(logs)),
                         "low": math.exp(low), "high": math.exp(high)})  # fmt: skip
        else:
            rows.append({"tokens": n, "change": float(np.median(column)),
                         "low": float(column.min()), "high": float(column.max())})  # fmt: skip
    return rows
