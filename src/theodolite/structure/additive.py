"""A sum of functions of one variable each, in closed form: what a table gives without any interaction.

Every function is linear between knots, at quantiles of its variable. It is the sum of a straight line, of bends (a
change of slope at every knot, in proportion to the gap) and of steps (a rise between knots, in ranks). Each of these
has a precision of its own, which the evidence sets (MacKay 1992): a variable that tells nothing is left at zero, and a
straight line stays straight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.linalg.lapack import dpotri  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

from theodolite.errors import BadInput

Array = NDArray[np.float64]
KNOTS = 16  # of a variable,
MOST = 320  # and fewer where there would be more of them in all
ROUNDS = 40
SETTLED = 1e-3  # relative change of the number of parameters that count, to stop at
IDLE = 1e5  # a part of this precision is left out
_LEAST = 1e-12


@dataclass(frozen=True)
class Additive:
    """`offset` + Σ over variables of the function through (`knots`, `heights`), constant outside of these.

    Both arrays are (variable, knot); a variable with fewer knots repeats its last. `held_out`: of every training row,
    by the sum that did not see it, and `of_folds` what the sum of each fold says of it; None once read back."""

    knots: Array = field(repr=False)
    heights: Array = field(repr=False)
    offset: float
    held_out: Array | None = field(default=None, repr=False)
    of_folds: Array | None = field(default=None, repr=False)  # (fold, row)

    def predict(self, x: ArrayLike) -> Array:
        rows = np.asarray(x, dtype=np.float64)
        said = np.full(len(rows), self.offset)
        for column, knots, heights in zip(rows.T, self.knots, self.heights, strict=True):
            said += np.interp(column, knots, heights)
        return said

    def widened(self, places: NDArray[np.int64], count: int) -> Additive:
        """The same among `count` columns, in which those that it reads stand in these places."""
        knots, heights = (np.zeros((count, self.knots.shape[1])) for _ in range(2))
        knots[places], heights[places] = self.knots, self.heights
        return replace(self, knots=knots, heights=heights)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays, and a JSON document, that `from_state` makes the same predictions of."""
        return {"knots": self.knots, "heights": self.heights}, {"offset": self.offset}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], document: Mapping[str, Any], variables: int) -> Additive:
        knots, heights = (np.asarray(arrays[name], dtype=np.float64) for name in ("knots", "heights"))
        if knots.shape != heights.shape or knots.ndim != 2 or len(knots) != variables or not knots.size:
            raise BadInput(f"its additive model is not of {variables} variables")
        return cls(knots, heights, float(document["offset"]))


def fit_additive(x: Array, y: Array, fold: NDArray[np.int64]) -> Additive:
    """The mean over folds (numbered from 0) of sums, each fitted to the rows of the other folds.

    Examples:
        >>> x = np.random.default_rng(0).uniform(-1, 1, (300, 3))
        >>> found = fit_additive(x, np.abs(x[:, 0]) + 2 * x[:, 1], np.arange(300) % 4)
        >>> bool(np.abs(found.heights[2]).max() < 0.01)
        True
    """
    offset, spread = float(y.mean()), max(float(y.std()), 1e-300)
    target = (y - offset) / spread
    basis = _Basis.of(x)
    columns = np.concatenate([basis.columns(x), np.ones((len(y), 1)), target[:, None]], axis=1)
    products = [columns[fold == number].T @ columns[fold == number] for number in range(int(fold.max()) + 1)]
    whole = np.sum(products, axis=0)
    weights = np.stack([_evidence(whole - own, basis.group) for own in products])  # (fold, column and 1)
    said = offset + spread * (weights @ columns[:, :-1].T)
    mean = weights.mean(0)
    heights = spread * basis.heights(mean[:-1])
    middle = offset + spread * float(mean[-1])
    return Additive(basis.knots, heights, middle, held_out=said[fold, np.arange(len(y))], of_folds=said)


@dataclass(frozen=True)
class _Basis:
    """Of every part, a line, bends or steps of a variable, heights at the knots (knot, column), so that the columns of
    a part vary by 1 in all over the rows; `group` numbers the part of every column."""

    knots: Array
    parts: tuple[tuple[int, Array], ...]

    @staticmethod
    def of(x: Array) -> _Basis:
        knots = _knots(x)
        parts = []
        for place, (own, column) in enumerate(zip(knots, x.T, strict=True)):
            for part in _parts(np.unique(own)):
                size = float((_hats(own, column) @ _padded(part, len(own))).var(0).sum())
                if size > _LEAST:
                    parts.append((place, _padded(part, len(own)) / np.sqrt(size)))
        return _Basis(knots, tuple(parts))

    @property
    def group(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.parts)), [part.shape[1] for _, part in self.parts])

    def columns(self, x: Array) -> Array:
        found = [np.empty((len(x), 0))]
        for place, own in enumerate(self.knots):
            parts = [part for of, part in self.parts if of == place]
            found += [_hats(own, x[:, place]) @ np.concatenate(parts, axis=1)] if parts else []
        return np.concatenate(found, axis=1)

    def heights(self, weights: Array) -> Array:
        found = np.zeros_like(self.knots)
        for number, (place, part) in enumerate(self.parts):
            found[place] += part @ weights[self.group == number]
        return found


def _knots(x: Array) -> Array:
    count = int(np.clip(MOST // x.shape[1], 2, KNOTS))
    found = np.empty((x.shape[1], count))
    for place, column in enumerate(x.T):
        values = np.unique(column)
        if len(values) > count:
            values = np.unique(np.quantile(column, np.linspace(0, 1, count)))
        found[place] = np.append(values, np.full(count - len(values), values[-1]))
    return found


def _parts(knots: Array) -> list[Array]:
    """Heights of a line, of bends and of steps, each (knot, column)."""
    count = len(knots)
    if count == 1:
        return []
    scaled = (knots - knots.mean()) / knots.std()
    line = scaled[:, None]
    if count == 2:
        return [line]
    bends = np.maximum(scaled[:, None] - scaled[1:-1], 0.0) * np.sqrt((scaled[2:] - scaled[:-2]) / 2)
    steps = (np.arange(count)[:, None] > np.arange(count - 1)).astype(np.float64)
    return [line, bends, steps]


def _padded(part: Array, count: int) -> Array:
    return np.concatenate([part, np.repeat(part[-1:], count - len(part), axis=0)])


def _hats(knots: Array, column: Array) -> Array:
    """(row, knot): what each knot's height counts in the value between two of them."""
    last = int(np.argmax(knots))  # the first of those that repeat it
    column = np.clip(column, knots[0], knots[-1])
    below = np.clip(np.searchsorted(knots[: last + 1], column, side="right") - 1, 0, max(last - 1, 0))
    found, rows = np.zeros((len(column), len(knots))), np.arange(len(column))
    if last == 0:
        found[:, 0] = 1.0
        return found
    share = (column - knots[below]) / (knots[below + 1] - knots[below])
    found[rows, below], found[rows, below + 1] = 1 - share, share
    return found


def _evidence(products: Array, group: NDArray[np.int64]) -> Array:
    """Weights of the columns and of 1, from the sums of products of (columns, 1, target): ridge, where the precision of
    every group and of the noise are those that the evidence gives."""
    rows = products[-2, -2]
    means = products[-2, :-2] / rows
    gram = products[:-2, :-2] - rows * np.outer(means, means)
    told = products[:-2, -1] - means * products[-2, -1]
    total = float(products[-1, -1] - products[-2, -1] ** 2 / rows)
    groups = int(group.max()) + 1 if len(group) else 0
    summed = lambda numbers, of: np.bincount(of, weights=numbers, minlength=groups)
    precision, noise, counted = np.full(groups, float(groups)), rows / max(total, _LEAST), 0.0
    weights = np.zeros(len(group))
    for _ in range(ROUNDS):
        live = precision[group] < IDLE
        if not live.any():
            weights[:] = 0.0
            break
        of = group[live]
        inverse = noise * gram[np.ix_(live, live)]
        inverse[np.diag_indices_from(inverse)] += precision[of]
        factor = linalg.cho_factor(inverse, lower=True, check_finite=False)
        weights[~live], weights[live] = 0.0, noise * linalg.cho_solve(factor, told[live], check_finite=False)
        variances = np.diag(dpotri(factor[0], lower=1)[0])
        used = np.maximum(summed(np.ones(len(of)), of) - precision * summed(variances, of), _LEAST)
        kept = np.isin(np.arange(groups), of)
        squares = np.maximum(summed(weights[live] ** 2, of), 1e-300)
        precision = np.where(kept, np.clip(used / squares, 1e-6, 1e12), precision)
        missed = max(total - 2 * weights @ told + weights @ gram @ weights, _LEAST * max(total, _LEAST))
        before, counted = counted, float(used[kept].sum())
        noise = max(rows - counted, 1.0) / missed
        if abs(counted - before) < SETTLED * max(1.0, counted):
            break
    return np.append(weights, products[-2, -1] / rows - means @ weights)
