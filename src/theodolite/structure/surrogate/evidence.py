"""What gradients say about a function's structure: relevance, interactions, and which variable entangles which two.

x_k *entangles* x_i and x_j when it changes the ratio ∂_i f : ∂_j f. A group enters f through one scalar exactly when
no variable outside entangles two inside (weak separability: Leontief 1947, Sono 1961, Gorman 1968).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from theodolite.errors import BadInput
from theodolite.structure.data.source import Array, GradientSource

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Evidence:
    """Gradients at base points, and at each of them with one variable redrawn, each entry with its standard error.

    A change is measured in standard errors at every point. What counts is the `witnesses`-th largest over the points,
    so that one bad error bar proves nothing; under the null its tail is binomial, which gives the threshold for a
    level that is corrected for the number of tests (`threshold`). Change the level and the decisions move.
    """

    variables: tuple[str, ...]
    base: Array  # gradient at the base points: (point, variable)
    base_error: Array
    moved: Array  # with variable k redrawn: (point, k, variable)
    moved_error: Array
    shift: Array  # f with x_k redrawn minus f: (point, k)
    noise: float  # standard error of a value of f; 0 when it is not known
    scale: Array  # standard deviation of each variable, to compare slopes of different units
    witnesses: int = 2

    @property
    def points(self) -> int:
        return len(self.base)

    def rows(self, chosen: NDArray[np.intp]) -> Evidence:
        """The same evidence from some of the base points."""
        arrays = {name: getattr(self, name)[chosen] for name in ("base", "base_error", "moved", "moved_error", "shift")}
        return replace(self, **arrays)

    def threshold(self, level: float, tests: int) -> float:
        """How many standard errors `witnesses` of the points must exceed for the chance of it under the null, times
        the number of tests, to be the level."""
        rate = stats.beta.ppf(level / max(tests, 1), self.witnesses, max(self.points - self.witnesses + 1, 1))
        return float(stats.norm.isf(rate / 2))

    @cached_property
    def relevance(self) -> Array:
        """In standard errors of ∂_i f being zero: (variable,)."""
        return self._witnessed(np.abs(self.base) / _positive(self.base_error))

    @cached_property
    def finite_change(self) -> Array:
        """In standard errors of f not changing when x_k is redrawn: (variable,); zero where values carry no error."""
        if self.noise <= 0:
            return np.zeros(len(self.variables))
        return self._witnessed(np.abs(self.shift) / (self.noise * np.sqrt(2.0)))

    @cached_property
    def interaction(self) -> Array:
        """In standard errors of ∂_i f not changing when x_k is redrawn, the larger of both ways: (i, k)."""
        change = self.moved - self.base[:, None, :]
        error = np.sqrt(self.moved_error**2 + self.base_error[:, None, :] ** 2)
        found = self._witnessed(np.abs(change) / _positive(error))
        np.fill_diagonal(found, 0.0)
        return np.maximum(found, found.T)

    @cached_property
    def interaction_strength(self) -> Array:
        """The root mean square change of ∂_i f · sd(x_i) when x_k is redrawn, over the spread of f; both ways averaged
        geometrically: (variable, variable)."""
        change = self.moved - self.base[:, None, :]
        error = self.moved_error**2 + self.base_error[:, None, :] ** 2
        square = np.maximum(np.mean(change**2 - error, axis=0), 0.0) * self.scale[None, :] ** 2
        np.fill_diagonal(square, 0.0)
        spread = np.mean(self.shift**2) or 1.0
        return np.sqrt(np.sqrt(square * square.T) / spread)

    @cached_property
    def entanglement(self) -> Array:
        """In standard errors of the ratio ∂_i f : ∂_j f not changing when x_k is redrawn: (i, j, k)."""
        found = np.zeros((len(self.variables),) * 3)
        for k in range(len(self.variables)):
            cross, error = self._cross(k)
            found[:, :, k] = self._witnessed(np.abs(cross) / error)
        return _without_diagonals(found)

    @cached_property
    def entanglement_strength(self) -> Array:
        """Root mean square sine of the angle by which (∂_i f, ∂_j f) turns when x_k is redrawn: (i, j, k)."""
        found = np.zeros((len(self.variables),) * 3)
        for k in range(len(self.variables)):
            cross, _ = self._cross(k)
            square = (self.base * self.scale) ** 2
            square_moved = (self.moved[:, k] * self.scale) ** 2
            before = square[:, :, None] + square[:, None, :]
            after = square_moved[:, :, None] + square_moved[:, None, :]
            unit = self.scale[:, None] * self.scale[None, :]
            sine = np.abs(cross) * unit / _positive(np.sqrt(before * after))
            found[:, :, k] = np.sqrt(np.mean(sine**2, axis=0))
        return _without_diagonals(found)

    def relevant(self, level: float) -> Flags:
        """Variables that f depends on: its gradient is not zero, or a finite change shows (a step)."""
        tests = 2 * len(self.variables)
        bar = self.threshold(level, tests)
        return (self.relevance > bar) | (self.finite_change > bar)

    def interacting(self, level: float, floor: float = 0.0) -> Flags:
        count = len(self.variables)
        significant = self.interaction > self.threshold(level, count * (count - 1))
        return significant & (self.interaction_strength >= floor)

    def entangled(self, level: float, floor: float = 0.0) -> Flags:
        """(i, j, k): whether x_k entangles x_i and x_j, at a level corrected for all triples; `floor` is the least
        turn of the ratio that counts, for sources whose error bars leave something out."""
        count = len(self.variables)
        significant = self.entanglement > self.threshold(level, count * (count - 1) * (count - 2) // 2)
        if floor <= 0:
            return significant
        return significant & (self.entanglement_strength >= floor)

    def _cross(self, k: int) -> tuple[Array, Array]:
        """g_i g'_j − g_j g'_i at every point, and its standard error: (point, i, j)."""
        g, e, h, d = self.base, self.base_error, self.moved[:, k], self.moved_error[:, k]
        forward = g[:, :, None] * h[:, None, :]
        cross = forward - forward.transpose(0, 2, 1)
        # the second-order term keeps points silent at which both slopes vanish
        variance = (g**2 + e**2)[:, :, None] * (d**2)[:, None, :] + (e**2)[:, :, None] * (h**2)[:, None, :]
        return cross, _positive(np.sqrt(variance + variance.transpose(0, 2, 1)))

    def _witnessed(self, ratios: Array) -> Array:
        """The `witnesses`-th largest over the points."""
        return np.partition(ratios, -self.witnesses, axis=0)[-self.witnesses]


def gather(source: GradientSource, generator: np.random.Generator, points: int = 64) -> Evidence:
    """Gradients at `points` base points and, for each variable, at the same points with that variable redrawn: a finite
    change, so that kinks and piecewise linear functions are seen too. (variables + 1) · points gradients in all."""
    if points < 4:
        raise BadInput(f"{points} base points are too few to tell anything: use at least 4")
    base = source.points(points, generator)
    other = source.points(points, generator)
    count = base.shape[1]
    moved = np.repeat(base[:, None, :], count, axis=1)
    each = np.arange(count)
    moved[:, each, each] = other
    everything = np.concatenate([base, moved.reshape(-1, count)])
    slopes = source.gradients(everything)
    values = source.values(everything)
    shape = (points, count, count)
    return Evidence(
        variables=source.variables,
        base=slopes.value[:points],
        base_error=slopes.error[:points],
        moved=slopes.value[points:].reshape(shape),
        moved_error=slopes.error[points:].reshape(shape),
        shift=values[points:].reshape(points, count) - values[:points, None],
        noise=float(getattr(source, "noise", 0.0)),
        scale=np.std(np.concatenate([base, other]), axis=0),
    )


def _positive(values: Array) -> Array:
    return np.maximum(values, np.finfo(np.float64).tiny)


def _without_diagonals(tensor: Array) -> Array:
    each = np.arange(len(tensor))
    tensor[each, each, :] = 0.0
    tensor[each, :, each] = 0.0
    tensor[:, each, each] = 0.0
    return tensor
