"""Where gradients come from: finite differences of a black box, or an ensemble fitted to data."""

from __future__ import annotations

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
