"""Whether a node adds or multiplies its inputs, seen from the slopes over a grid of two of them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import stats

from theodolite.structure.data.source import Array
from theodolite.structure.search.explain import Grid

HUGE = 1e60  # the error of what is unknown
Link = Literal["sum", "product", "linked sum", "linked product"]


def seen_kind(grid: Grid, first: int, second: int, level: float, associative: bool) -> Link | None:
    """What f is over two inputs, all else fixed, the two variables standing for them.

    sum: neither slope changes with the other input. product (plus a constant): each slope is a function of the one
    input times a function of the other. For inputs of an associative node, under an unknown outer function: the ratio
    of the slopes is such a product (`linked`).
    """
    a, b = _slopes(grid, first), _slopes(grid, second)
    if not (_departs(*a, level) and _departs(*b, level)):
        return None  # a step: no slope tells anything
    if not _departs(*_change(*a), level) and not _departs(*_change(*b, across=True), level):
        return "sum"
    if not _departs(*_minor(*a), level) and not _departs(*_minor(*b), level):
        return "product"
    ratio, error = _ratio(*a, *b)
    if not associative or np.mean(error < HUGE) < 0.5 or _departs(*_minor(ratio, error), level):
        return None
    return "linked product" if _vanishes(a[0], b[0]) else "linked sum"


def _slopes(grid: Grid, variable: int) -> tuple[Array, Array]:
    shape = (len(grid.value), grid.side, grid.side)
    return grid.value[:, :, variable].reshape(shape), grid.error[:, :, variable].reshape(shape)


def _change(value: Array, error: Array, across: bool = False) -> tuple[Array, Array]:
    """How the slope changes with the setting of the other input."""
    axis = 1 if across else 2
    rolled, rolled_error = np.roll(value, 1, axis), np.roll(error, 1, axis)
    return value - rolled, np.hypot(error, rolled_error)


def _minor(value: Array, error: Array) -> tuple[Array, Array]:
    """2 × 2 minors of neighbouring rows and columns: zero for a product."""
    right, down = np.roll(value, 1, 2), np.roll(value, 1, 1)
    both = np.roll(down, 1, 2)
    e_right, e_down = np.roll(error, 1, 2), np.roll(error, 1, 1)
    e_both = np.roll(e_down, 1, 2)
    variance = (value**2 + error**2) * e_both**2 + (both * error) ** 2
    variance += (right**2 + e_right**2) * e_down**2 + (down * e_right) ** 2
    return value * both - right * down, np.sqrt(variance)


def _ratio(a: Array, a_error: Array, b: Array, b_error: Array) -> tuple[Array, Array]:
    """a : b where neither vanishes; elsewhere, as for a maximum, of which one slope is always zero, it is unknown."""
    safe = (np.abs(a) > 10 * a_error) & (np.abs(b) > 10 * b_error)
    below = np.where(safe, b, 1.0)
    ratio = np.where(safe, a / below, 0.0)
    return ratio, np.where(safe, np.hypot(a_error, ratio * b_error) / np.abs(below), HUGE)


def _departs(value: Array, error: Array, level: float) -> bool:
    ratios = np.sort((np.abs(value) / np.maximum(error, np.finfo(float).tiny)).ravel())
    bar = stats.norm.isf(stats.beta.ppf(level, 2, max(len(ratios) - 1, 1)) / 2)
    return bool(ratios[-2] > bar)


def _vanishes(a: Array, b: Array) -> bool:
    """For a product, ∂_b : ∂_a changes its sign through zero (where the first factor is zero); in a sum it does so, if
    at all, through infinity (where ∂_a is zero)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num((b / a)[:, :, 0], posinf=0.0, neginf=0.0)
    size = np.abs(ratio) / np.maximum(np.median(np.abs(ratio), axis=1, keepdims=True), np.finfo(float).tiny)
    flips = np.any(np.sign(ratio) != np.sign(ratio[:, :1]))
    seen = size[size > 0]
    return bool(flips and len(seen) and np.log(seen).min() < -np.log(seen).max())
