"""Where gradients come from: finite differences of a black box, or an ensemble fitted to data."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Gradients:
    """∂f/∂x at points (point, variable), each entry with its standard error: of the finite difference, or the spread of
    an ensemble's members over the root of their number."""

    value: Array
    error: Array


class OutOfTime(Exception):
    """The time that a search may take is over."""


class GradientSource(Protocol):
    """A function that can be asked for its gradient anywhere it is defined."""

    @property
    def variables(self) -> tuple[str, ...]: ...

    def points(self, count: int, generator: np.random.Generator) -> Array:
        """Points (count, variable) drawn from where the function is to be understood."""
        ...

    def values(self, points: Array) -> Array:
        """f at the points, (point,)."""
        ...

    def gradients(self, points: Array) -> Gradients: ...


@dataclass(frozen=True)
class Hurried:
    """A source that raises `OutOfTime` when asked for gradients after the moment `until` (of `time.monotonic`)."""

    source: GradientSource
    until: float

    @property
    def variables(self) -> tuple[str, ...]:
        return self.source.variables

    def points(self, count: int, generator: np.random.Generator) -> Array:
        return self.source.points(count, generator)

    def values(self, points: Array) -> Array:
        return self.source.values(points)

    def gradients(self, points: Array) -> Gradients:
        if time.monotonic() > self.until:
            raise OutOfTime
        return self.source.gradients(points)
