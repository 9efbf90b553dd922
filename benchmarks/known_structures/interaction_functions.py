"""F1–F10, the functions by which detectors of statistical interactions are compared (Tsang, Cheng and Liu 2018, from
Sorokina et al. 2008 and Lou et al. 2013), with the sets of variables that interact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SYMMETRIC = ((-1.0, 1.0),) * 10
_WIDE, _NARROW = (0.0, 1.0), (0.6, 1.0)


@dataclass(frozen=True)
class InteractionFunction:
    """y(x) for rows x, the range each variable is drawn from, and the maximal sets that interact (counted from 0)."""

    name: str
    function: Callable[[Array], Array]
    sets: tuple[tuple[int, ...], ...]
    ranges: tuple[tuple[float, float], ...] = _SYMMETRIC

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(f"x{index + 1}" for index in range(len(self.ranges)))

    @cached_property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """The pairs i < j that interact: those inside a set."""
        return frozenset(pair for members in self.sets for pair in combinations(sorted(members), 2))

    def sample(self, rows: int, generator: np.random.Generator, noise: float = 0.0) -> tuple[Array, Array]:
        """Rows drawn uniformly from the ranges, and y plus Gaussian noise of `noise` standard deviations of y."""
        low, high = np.array(self.ranges).T
        x = low + (high - low) * generator.random((rows, len(self.ranges)))
        y = self.function(x)
        return x, y + noise * y.std() * generator.standard_normal(rows)


def _f1(x: Array) -> Array:
    x1, x2, x3, x4, x5, _, x7, x8, x9, x10 = x.T
    return (
        np.pi ** (x1 * x2) * np.sqrt(2 * x3) - np.arcsin(x4) + np.log(x3 + x5) - x9 / x10 * np.sqrt(x7 / x8) - x2 * x7
    )


def _f2(x: Array) -> Array:
    x1, x2, x3, x4, x5, _, x7, x8, x9, x10 = x.T
    return (
        np.pi ** (x1 * x2) * np.sqrt(2 * np.abs(x3))
        - np.arcsin(x4 / 2)
        + np.log(np.abs(x3 + x5) + 1)
        + x9 / (1 + np.abs(x10)) * np.sqrt(np.abs(x7) / (1 + np.abs(x8)))
        - x2 * x7
    )


def _f3(x: Array) -> Array:
    x1, x2, x3, x4, x5, _, x7, x8, x9, x10 = x.T
    return (
        np.exp(np.abs(x1 - x2))
        + np.abs(x2 * x3)
        - (x3**2) ** np.abs(x4)
        + np.log(x4**2 + x5**2 + x7**2 + x8**2)
        + x9
        + 1 / (1 + x10**2)
    )


def _f4(x: Array) -> Array:
    return _f3(x) + (x[:, 0] * x[:, 3]) ** 2


def _f5(x: Array) -> Array:
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = x.T
    return 1 / (1 + x1**2 + x2**2 + x3**2) + np.sqrt(np.exp(x4 + x5)) + np.abs(x6 + x7) + x8 * x9 * x10


def _f6(x: Array) -> Array:
    x1, x2, x3, x4, x5, x6, _, x8, x9, x10 = x.T
    return (
        np.exp(np.abs(x1 * x2) + 1)
        - np.exp(np.abs(x3 + x4) + 1)
        + np.cos(x5 + x6 - x8)
        + np.sqrt(x8**2 + x9**2 + x10**2)
    )


def _f7(x: Array) -> Array:
    x1, x2, x3, x4, x5, x6, x7, x8, x9, _ = x.T
    return (
        (np.arctan(x1) + np.arctan(x2)) ** 2
        + np.maximum(x3 * x4 + x6, 0)
        - 1 / (1 + (x4 * x5 * x6 * x7 * x8) ** 2)
        + (np.abs(x7) / (1 + np.abs(x9))) ** 5
        + x.sum(1)
    )


def _f8(x: Array) -> Array:
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = x.T
    return (
        x1 * x2 + 2 ** (x3 + x5 + x6) + 2 ** (x3 + x4 + x5 + x7) + np.sin(x7 * np.sin(x8 + x9)) + np.arccos(0.9 * x10)
    )


def _f9(x: Array) -> Array:
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = x.T
    return (
        np.tanh(x1 * x2 + x3 * x4) * np.sqrt(np.abs(x5))
        + np.exp(x5 + x6)
        + np.log((x6 * x7 * x8) ** 2 + 1)
        + x9 * x10
        + 1 / (1 + np.abs(x10))
    )


def _f10(x: Array) -> Array:
    x1, x2, x3, x4, x5, _, x7, _, x9, _ = x.T
    return np.sinh(x1 + x2) + np.arccos(np.tanh(x3 + x5 + x7)) + np.cos(x4 + x5) + 1 / np.cos(x7 * x9)


INTERACTION_FUNCTIONS: dict[str, InteractionFunction] = {
    target.name: target
    for target in (
        InteractionFunction(
            "F1",
            _f1,
            ((0, 1, 2), (2, 4), (6, 7, 8, 9), (1, 6)),
            (_WIDE, _WIDE, _WIDE, _NARROW, _NARROW, _WIDE, _WIDE, _NARROW, _WIDE, _NARROW),
        ),
        InteractionFunction("F2", _f2, ((0, 1, 2), (2, 4), (6, 7, 8, 9), (1, 6))),
        InteractionFunction("F3", _f3, ((0, 1), (1, 2), (2, 3), (3, 4, 6, 7))),
        InteractionFunction("F4", _f4, ((0, 1), (1, 2), (2, 3), (0, 3), (3, 4, 6, 7))),
        InteractionFunction("F5", _f5, ((0, 1, 2), (3, 4), (5, 6), (7, 8, 9))),
        InteractionFunction("F6", _f6, ((0, 1), (2, 3), (4, 5, 7), (7, 8, 9))),
        InteractionFunction("F7", _f7, ((0, 1), (2, 3, 5), (3, 4, 5, 6, 7), (6, 8))),
        InteractionFunction("F8", _f8, ((0, 1), (2, 4, 5), (2, 3, 4, 6), (6, 7, 8))),
        InteractionFunction("F9", _f9, ((0, 1, 2, 3, 4), (4, 5), (5, 6, 7), (8, 9))),
        InteractionFunction("F10", _f10, ((0, 1), (2, 4, 6), (3, 4), (6, 8))),
    )
}
