"""Tasks that look at their input in one direction: y = g(scale · Σ x), with g known on an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite.tasks.contract import Task
from theodolite.tasks.linear_periodic import LinearPeriodic
from theodolite.tasks.sawtooth import Sawtooth

_WIDEST = 4.5  # standard deviations: a Gaussian leaves this interval 7 times in a million
_AIM = 0.995  # explained variance that an approximation is made for, above the 0.99 of a solved task


@dataclass(frozen=True, eq=False)
class Profile:
    """`g` on [`low`, `high`] as a function of s = scale·Σ x; `density` weighs s; `knots` are where g bends, None for a
    curve that is bent everywhere."""

    g: Callable[[np.ndarray], np.ndarray]
    scale: float
    low: float
    high: float
    density: Callable[[np.ndarray], np.ndarray]
    knots: np.ndarray | None

    def grid(self, points: int = 4001) -> np.ndarray:
        return np.linspace(self.low, self.high, points)

    def explained(self, values: np.ndarray, grid: np.ndarray) -> float:
        """The share of the variance of g that `values` on the grid explain."""
        truth, weight = self.g(grid), self.density(grid)
        mean = np.average(truth, weights=weight)
        return 1 - np.average((values - truth) ** 2, weights=weight) / np.average((truth - mean) ** 2, weights=weight)


def profile(task: Task) -> Profile | None:
    given: Any = task  # its fields are those of its own kind
    if isinstance(task, Sawtooth):
        teeth = 2**given.folds
        knots = np.arange(teeth + 1) / teeth
        return Profile(lambda s: 1 - np.abs((s * teeth) % 2 - 1), 1.0, 0.0, 1.0, np.ones_like, knots)
    if isinstance(task, LinearPeriodic):
        turn = 2 * math.pi * given.frequency
        return Profile(
            lambda s: np.cos(turn * s),
            1 / math.sqrt(given.dimensions),
            -_WIDEST,
            _WIDEST,
            lambda s: np.exp(-(s**2) / 2),
            None,
        )
    return None


@dataclass(frozen=True, eq=False)
class Broken:
    """A broken line: offset + Σ slopes · relu(s − knots)."""

    knots: np.ndarray
    slopes: np.ndarray
    offset: float


def broken_line(curve: Profile, most: int = 4096) -> Broken | None:
    """g itself where it is a broken line; else the coarsest even interpolation that explains enough of its variance."""
    if curve.knots is not None:
        return _through(curve.knots, curve.g(curve.knots)) if len(curve.knots) <= most + 1 else None
    grid = curve.grid()
    for pieces in range(2, most + 1):
        knots = np.linspace(curve.low, curve.high, pieces + 1)
        if curve.explained(np.interp(grid, knots, curve.g(knots)), grid) >= _AIM:
            return _through(knots, curve.g(knots))
    return None


def _through(knots: np.ndarray, values: np.ndarray) -> Broken:
    slopes = np.diff(values) / np.diff(knots)
    return Broken(knots[:-1], np.diff(slopes, prepend=0.0), float(values[0]))


@dataclass(frozen=True, eq=False)
class Smooth:
    """offset + Σ read · unit(gain·(s − centres)) for a smooth step `unit`."""

    gain: float
    centres: np.ndarray
    read: np.ndarray
    offset: float


@lru_cache(maxsize=16)
def smooth_steps(task: Task, unit: Callable[[np.ndarray], np.ndarray], most: int = 256) -> Smooth | None:
    """The fewest evenly spaced smooth steps whose best combination explains enough of g, by least squares."""
    curve = profile(task)
    if curve is None:
        return None
    grid = curve.grid()
    weight = np.sqrt(curve.density(grid))
    for count in range(2, most + 1):
        step = (curve.high - curve.low) / count
        centres = curve.low + step * (np.arange(count) + 0.5)
        gain = 1.0 / step
        features = np.concatenate((unit(gain * (grid[:, None] - centres)), np.ones((len(grid), 1))), axis=1)
        read = np.linalg.lstsq(features * weight[:, None], curve.g(grid) * weight, rcond=1e-10)[0]
        if curve.explained(features @ read, grid) >= _AIM:
            return Smooth(gain, centres, read[:-1], float(read[-1]))
    return None
