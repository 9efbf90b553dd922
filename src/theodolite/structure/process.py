"""A Gaussian process of all rows, to predict by: of smooth functions and few rows it is often as good as anything.

Covariance and lengths are those of the greatest evidence (`surrogate/gaussian_process.py`). What it says of a fold of
rows that it has not seen needs no second fit: with the inverse C of the covariance matrix it is y_f − C_ff⁻¹ (C y)_f.
That flatters where all rows choose the lengths; there each fold has lengths that the others choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.structure.surrogate.gaussian_process import (
    ENTRIES,
    QUIET,
    ROWS,
    Covariance,
    Learnt,
    covariance,
    factor_of,
    most_evident,
)

Array = NDArray[np.float64]
MOST = 3_000  # rows: their covariance matrix is inverted
FOLDS, FEW_FOLDS = 10, 4  # the latter of rows that all choose the lengths
ROUNDED, FIRMER = 8, 10.0  # times that the noise is raised, by this, where sums of large weights are rounded to more
LITTLE = 0.01  # than this part of what it misses
EPSILON = 4 * float(np.finfo(np.float64).eps)  # to which a covariance is known, of the greatest


@dataclass(frozen=True)
class GaussianProcess:
    """`offset` + Σ over training rows r of weight_r k(x, x_r). `rows` are these, less `centre` and times `rates`, one
    over the length of each variable, 0 of one that is not read. `held_out`: of every training row, without the rows of
    its fold; None once read back."""

    kind: Covariance
    centre: Array = field(repr=False)  # (variable,)
    rates: Array = field(repr=False)  # (variable,)
    rows: Array = field(repr=False)  # (row, variable)
    weights: Array = field(repr=False)  # (row,)
    offset: float
    held_out: Array | None = field(default=None, repr=False)

    def predict(self, x: ArrayLike) -> Array:
        scaled = (np.asarray(x, dtype=np.float64) - self.centre) * self.rates
        here, weights = torch.from_numpy(self.rows), torch.from_numpy(self.weights)
        parts = torch.from_numpy(scaled).split(max(1, ENTRIES // len(self.rows)))
        said = [covariance(self.kind, part, here) @ weights for part in parts]
        return self.offset + torch.cat(said).numpy() if said else np.empty(0)

    def widened(self, places: NDArray[np.int64], count: int) -> GaussianProcess:
        """The same among `count` columns, in which those that it reads stand in these places."""
        rows, centre, rates = np.zeros((len(self.rows), count)), np.zeros(count), np.zeros(count)
        rows[:, places], centre[places], rates[places] = self.rows, self.centre, self.rates
        return replace(self, rows=rows, centre=centre, rates=rates)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays, and a JSON document, that `from_state` makes the same predictions of."""
        arrays = {"centre": self.centre, "rates": self.rates, "rows": self.rows, "weights": self.weights}
        return arrays, {"kind": self.kind, "offset": self.offset}

    @classmethod
    def from_state(
        cls, arrays: Mapping[str, NDArray[Any]], document: Mapping[str, Any], variables: int
    ) -> GaussianProcess:
        names = ("centre", "rates", "rows", "weights")
        centre, rates, rows, weights = (np.asarray(arrays[name], dtype=np.float64) for name in names)
        if document["kind"] not in get_args(Covariance):
            raise BadInput(f"its Gaussian process has a covariance {document['kind']!r} that is not known")
        shapes = ((variables,), (variables,), (len(weights), variables), (len(weights),))
        if any(one.shape != shape for one, shape in zip((centre, rates, rows, weights), shapes, strict=True)):
            raise BadInput(f"its Gaussian process is not of {variables} variables")
        return cls(document["kind"], centre, rates, rows, weights, float(document["offset"]))


def fit_process(x: Array, y: Array, generator: np.random.Generator) -> GaussianProcess:
    """Of these rows, the lengths chosen by up to 600 of them.

    Examples:
        >>> draw = np.random.default_rng(0)
        >>> x = draw.uniform(-1, 1, (200, 3))
        >>> found = fit_process(x, np.sin(2 * x[:, 0]) * x[:, 1], draw)
        >>> new = draw.uniform(-1, 1, (100, 3))
        >>> bool(np.abs(found.predict(new) - np.sin(2 * new[:, 0]) * new[:, 1]).max() < 0.01)
        True
    """
    order = torch.from_numpy(generator.permutation(len(y)))
    centre, spread = x.mean(0), x.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    offset, size = float(y.mean()), float(y.std())
    rows, wanted = torch.from_numpy((x - centre) / spread), torch.from_numpy((y - offset) / size)
    learnt = most_evident(rows[order], wanted[order], QUIET, go_on=1)
    with torch.no_grad():
        solved = _solved(learnt, rows, wanted, order)
    missed = solved.missed if len(y) > ROWS else _missed(learnt.kind, rows, wanted, order)
    return GaussianProcess(
        learnt.kind,
        centre,
        1 / (spread * solved.lengths.numpy()),
        (rows / solved.lengths).numpy(),
        (size * solved.height * solved.weights).numpy(),
        offset,
        held_out=offset + size * (wanted - missed).numpy(),
    )


class _Solved(NamedTuple):
    """Lengths, height and weights of the rows, and what is missed of each without the rows of its fold."""

    lengths: Tensor
    height: Tensor
    weights: Tensor
    missed: Tensor


def _solved(learnt: Learnt, rows: Tensor, wanted: Tensor, order: Tensor) -> _Solved:
    """With more noise than learnt where sums of large weights would be rounded to more than is missed."""
    lengths, height, noise = learnt.read()
    near = height * covariance(learnt.kind, rows / lengths, rows / lengths)

    def solved() -> tuple[Tensor, Tensor, bool]:
        factor = factor_of(near + noise * torch.eye(len(wanted), dtype=near.dtype))
        inverse = torch.cholesky_inverse(factor)
        weights = torch.cholesky_solve(wanted[:, None], factor)[:, 0]
        missed = torch.empty_like(wanted)
        for own in order.chunk(FOLDS):
            missed[own] = torch.linalg.solve(inverse[own][:, own], weights[own])
        unsolved = (near @ weights + noise * weights - wanted).square().mean()
        rounding = (EPSILON * height) ** 2 * weights.square().sum()  # of a sum of so many covariances times weights
        return weights, missed, bool(unsolved + rounding <= LITTLE * missed.square().mean())

    weights, missed, sound = solved()
    for _ in range(ROUNDED):
        if sound:
            break
        noise = FIRMER * noise
        weights, missed, sound = solved()
    return _Solved(lengths, height, weights, missed)


def _missed(kind: Covariance, rows: Tensor, wanted: Tensor, order: Tensor) -> Tensor:
    """Of every row, without its fold: few rows would tell lengths that suit them, so each fold has its own."""
    missed = torch.empty_like(wanted)
    parts = order.chunk(FEW_FOLDS)
    for place, own in enumerate(parts):
        seen = torch.cat([*parts[:place], *parts[place + 1 :]])
        learnt = most_evident(rows[seen], wanted[seen], QUIET, [kind])
        with torch.no_grad():
            lengths, height, weights, _ = _solved(learnt, rows[seen], wanted[seen], torch.arange(len(seen)))
            near = height * covariance(learnt.kind, rows[own] / lengths, rows[seen] / lengths)
            missed[own] = wanted[own] - near @ weights
    return missed
