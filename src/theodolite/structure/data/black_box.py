"""A black box as a source of gradients: a callable is checked, its noise measured, its slopes taken by differences."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from theodolite.errors import BadInput
from theodolite.structure.data.noise import SPACING, TABLE, estimate_noise
from theodolite.structure.data.source import Array, Gradients

CHUNK = 1 << 16  # points in one call of the function
ASKED = 4_000  # points a variable that a search asks for,
CALLS = 15  # in so many calls
PATIENCE = 600.0  # seconds that asking may take, unless a time is given
CHECKED = 16  # points that the validation looks at
WIDEST_STEP = 0.04  # of the range, however noisy the function
FINEST_STEP = 1e-6
NARROWEST = 1e-8  # range over the size of its ends: the finest step would drown in their rounding
LARGEST = 1e100  # of values and ranges: squares of larger ones overflow


class CallableSource:
    """f : (point, variable) → (point,) on a box, asked only for values.

    Gradients are central differences at two step sizes; their mismatch (truncation) and the noise of f over the step
    make the standard error. The step balances the two: the cube root of the relative noise, in units of the range.
    """

    def __init__(
        self,
        function: Callable[[Array], Any],
        ranges: Any,
        variables: Sequence[str] | None = None,
        seed: int = 0,
        seconds: float | None = None,
    ) -> None:
        if not callable(function):
            raise BadInput(f"the black box must be a function of points, not {type(function).__name__}")
        if isinstance(function, type):
            raise BadInput(
                f"the black box '{function.__name__}' is a class: give a function, or an object to be called"
            )
        self._function = function
        self._variables, self._low, self._high = _box(ranges, variables)
        self._width = self._high - self._low
        self.evaluations = 0
        self._precision = float(np.finfo(np.float64).eps)
        generator = np.random.default_rng(seed)
        probe = self._inside(CHECKED, generator, margin=SPACING * TABLE)
        self._check_pace(probe, PATIENCE if seconds is None else seconds)
        seen = self._validate(probe, generator)
        lines = self._inside(CHECKED, generator, margin=SPACING * TABLE)
        rough = estimate_noise(self.values, lines, self._width, generator)
        self.noise = max(rough, 0.5 * self._precision * float(np.max(np.abs(seen))), np.finfo(np.float64).tiny)
        spread = max(float(np.std(seen)), self.noise)
        self.step = float(np.clip(np.cbrt(self.noise / spread), FINEST_STEP, WIDEST_STEP))

    @property
    def variables(self) -> tuple[str, ...]:
        return self._variables

    def points(self, count: int, generator: np.random.Generator) -> Array:
        """Uniform in the box, away from its faces by the widest stencil."""
        return self._inside(count, generator, margin=2 * self.step)

    def values(self, points: Array) -> Array:
        points = np.ascontiguousarray(points, dtype=np.float64)
        if not len(points):
            return np.empty(0)
        found = [self._call(points[start : start + CHUNK]) for start in range(0, len(points), CHUNK)]
        return np.concatenate(found)

    def gradients(self, points: Array) -> Gradients:
        count, variables = points.shape
        value, error = np.empty_like(points), np.empty_like(points)
        rows = max(1, CHUNK // (4 * variables))
        for start in range(0, count, rows):
            part = slice(start, start + rows)
            value[part], error[part] = self._differences(points[part])
        return Gradients(value, error)

    def _differences(self, points: Array) -> tuple[Array, Array]:
        count, variables = points.shape
        step = self.step * self._width
        shifts = np.array([1.0, -1.0, 2.0, -2.0])
        moved = np.repeat(points[:, None, None, :], 4, axis=1).repeat(variables, axis=2)  # point, shift, variable, :
        each = np.arange(variables)
        moved[:, :, each, each] += shifts[None, :, None] * step
        np.clip(moved, self._low, self._high, out=moved)
        f = self.values(moved.reshape(-1, variables)).reshape(count, 4, variables)
        near = (f[:, 0] - f[:, 1]) / (2 * step)
        far = (f[:, 2] - f[:, 3]) / (4 * step)
        truncation = (far - near) / 3  # Richardson: the error of `near`, an upper bound for that of the combination
        return near - truncation, np.sqrt(truncation**2 + (self.noise / step) ** 2)

    def _inside(self, count: int, generator: np.random.Generator, margin: float) -> Array:
        unit = generator.uniform(margin, 1 - margin, size=(count, len(self._variables)))
        return self._low + unit * self._width

    def _validate(self, points: Array, generator: np.random.Generator) -> Array:
        together = self._call(points)
        again = self._call(points)
        if not np.array_equal(together, again):
            raise BadInput(
                f"the black box is not deterministic: the same points gave values that differ by up to "
                f"{np.max(np.abs(together - again)):.3g}; fix its random seed, or pass data instead of a function"
            )
        order = generator.permutation(len(points))
        shuffled = np.empty_like(together)
        shuffled[order] = self._call(points[order])
        alone = np.concatenate([self._call(row[None, :]) for row in points[:4]])
        scale = max(float(np.max(np.abs(together))), np.finfo(np.float64).tiny)
        allowed = 64 * self._precision * scale  # a matrix product may round differently for other shapes
        wrong = max(np.max(np.abs(shuffled - together)), np.max(np.abs(alone - together[:4])))
        if wrong > allowed:
            raise BadInput(
                f"the black box is not vectorised: a row's value changes by up to {wrong:.3g} with the rows beside it; "
                "it must map each row of an array (points, variables) to its own value"
            )
        return together

    def _check_pace(self, points: Array, seconds: float) -> None:
        """Refuses a function that is too slow to be asked as often as the search does, by what a few calls took: of two
        points first, in case many take too long already. The first call of all may have something to load."""
        asked = ASKED * len(self._variables)
        first = self._timed(points[:1])
        one = min(first, self._timed(points[:1])) if first < seconds else first
        for count, sure in ((1, 1.0), (2, 10.0), (len(points), 1.0)):
            each = 0.0 if count == 1 else max(0.0, self._timed(points[:count]) - one) / (count - 1)
            needed = CALLS * one + asked * each
            if needed > sure * seconds:
                by_call = CALLS * one > asked * each
                pace = f"{one:.2g} s a call" if by_call else f"{each:.2g} s a point"
                raise BadInput(
                    f"the black box takes {pace} and the search asks for about {CALLS if by_call else asked:,}, "
                    f"together {needed:,.0f} s where {seconds:,.0f} s are allowed: make a table of a few "
                    "hundred of its values, or give more --seconds (seconds= in Python)"
                )

    def _timed(self, points: Array) -> float:
        began = time.monotonic()
        self._call(points)
        return time.monotonic() - began

    def _call(self, points: Array) -> Array:
        self.evaluations += len(points)
        try:
            returned = self._function(points.copy())
        except (Exception, SystemExit) as error:  # whatever a user's function may raise
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            raise BadInput(
                f"the black box failed on an array of shape {points.shape} ({said}): it must map (points, variables) "
                "to (points,)"
            ) from error
        found = _as_array(returned)
        if np.issubdtype(found.dtype, np.floating):
            self._precision = max(self._precision, float(np.finfo(found.dtype).eps))
        if found.shape == (len(points), 1):
            found = found[:, 0]
        if found.shape != (len(points),):
            raise BadInput(
                f"the black box returned the shape {found.shape} for {len(points)} points: it must return one value a "
                f"point, the shape ({len(points)},)"
            )
        found = found.astype(np.float64)
        bad = ~np.isfinite(found)
        if bad.any():
            where = ", ".join(f"{v}={x:.4g}" for v, x in zip(self._variables, points[bad.argmax()], strict=True))
            raise BadInput(f"the black box is not finite at {where[:200]}: narrow the ranges to where it is defined")
        if np.max(np.abs(found)) > LARGEST:
            raise BadInput(f"the black box returned {found[np.abs(found).argmax()]:.3g}: divide it by a constant")
        return found


def _as_array(returned: Any) -> np.ndarray:
    if hasattr(returned, "detach"):  # a torch tensor, on any device
        returned = returned.detach().cpu().numpy()
    try:
        found = np.asarray(returned)
    except ValueError as error:
        raise BadInput("the black box returned lists of unequal length: it must return one number a point") from error
    if found.dtype.kind not in "fiub":
        raise BadInput(f"the black box returned values of type {found.dtype}: it must return real numbers")
    return found


def _box(ranges: Any, variables: Sequence[str] | None) -> tuple[tuple[str, ...], Array, Array]:
    if isinstance(ranges, Mapping):
        names = tuple(str(name) for name in ranges)
        if variables is not None and set(variables) != set(names):
            odd = sorted(set(variables) ^ set(names))[0]
            raise BadInput(f"the ranges and the variables do not name the same: '{odd}' is in one of them only")
        names = tuple(variables) if variables is not None else names
        ranges = [ranges[name] for name in names]
    else:
        names = tuple(variables) if variables is not None else None
    try:
        box = np.asarray(ranges, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput("ranges must be a low and a high number for every variable, the shape (variables, 2)") from error
    if box.ndim != 2 or box.shape[1] != 2 or not len(box):
        raise BadInput(f"ranges have the shape {box.shape}: give a low and a high for every variable, (variables, 2)")
    if names is None:
        names = tuple(f"x{i + 1}" for i in range(len(box)))
    if len(names) != len(box):
        raise BadInput(f"{len(names)} variables are named but {len(box)} ranges given: give one range a variable")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the variable '{twice}' is named twice: every variable needs a name of its own")
    for name, (low, high) in zip(names, box, strict=True):
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise BadInput(f"the range of '{name}' is {low:g} to {high:g}: give finite numbers, low below high")
        if max(abs(low), abs(high)) > LARGEST:
            raise BadInput(f"the range of '{name}' is {low:g} to {high:g}, too wide to compute with: narrow it")
        if high - low < NARROWEST * max(abs(low), abs(high)):
            raise BadInput(
                f"the range of '{name}' is {low:.17g} to {high:.17g}, too narrow to take differences in: widen it"
            )
    return names, box[:, 0], box[:, 1]
