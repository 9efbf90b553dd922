"""What the mean over folds misses on new rows, told by rows that the network of one fold has not seen.

On a row held out, the network of one fold errs by e_k; what predicts is the mean over folds, Σ s_j e_j. As
2 e_j e_k = e_j² + e_k² − (e_j − e_k)², its square is Σ s_j e_j² less D = Σ_{j<k} s_j s_k (e_j − e_k)², and how far two
networks differ needs no target. A dense network's folds differ more than a graph's, and by its error on rows held out
alone it would seem worse than it is. But the rows held out also stop a network's training and choose among its starts.
Of networks that differ by D, the errors E on n rows differ by 2 √(E D / n), and about so much is gained by the choice;
what is gained by chance is not there on new rows. So D less 2 √(E D / n) is taken off. (Of a mean of models it is the
part of each by its weight, as in Mallows' criterion, Hansen 2007.) Trees and additive models are not stopped by the
rows held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theodolite.structure.additive import Additive
from theodolite.structure.boosting import Forest
from theodolite.structure.fit.fitting import Fitted

Array = NDArray[np.float64]
COUNTED = 0.1  # of the largest share: the network of a fold with less was caught in a poor minimum
LEAST_COUNTED = 0.25  # of the rows
TREES = 0.5  # of how far trees of two folds differ on rows that one has learnt, which they follow, is on new ones


class Model(Protocol):
    @property
    def held_out(self) -> Array | None: ...

    def predict(self, x: ArrayLike) -> Array: ...


def unseen(model: Model) -> Array:
    """What is said of every training row by a part that has not seen it."""
    assert model.held_out is not None
    return model.held_out


def error_products(models: Mapping[str, Model], x: Array, y: Array, of_mean: bool = True) -> Array:
    """(row, model, model), the last the target's mean: products of errors, whose mean over rows is that on new rows, of
    means over folds, or of a part of them."""
    errors = np.stack([*(unseen(model) - y for model in models.values()), y.mean() - y], axis=1)
    found = errors[:, :, None] * errors[:, None, :]
    folds = [*(_Folds.of(model, x) for model in models.values()), None]
    if not of_mean:
        networks = [one for one in folds if one is not None and one.stopped]
        return found * _counted(networks, len(y))[:, None, None]
    weights = [np.ones(len(y)) if one is None else one.weight for one in folds]
    chance = [0.0 if one is None else one.chance(y) for one in folds]
    for i, j in product(range(len(folds)), repeat=2):
        a, b = folds[i], folds[j]
        if a is not None and b is not None and np.array_equal(a.fold, b.fold):
            found[:, i, j] = (weights[i] + weights[j]) / 2 * found[:, i, j] - a.differ(b)
        else:
            found[:, i, j] *= weights[i] * weights[j]
        found[:, i, j] += (chance[i] + chance[j]) / 2
    return found


def _counted(networks: Sequence[_Folds], rows: int) -> Array:
    """A weight of every row, 1 on the average, 0 of those whose held-out predictions are by networks that hardly count
    in the mean over folds; of all alike where there are few others."""
    kept = np.ones(rows, dtype=bool)
    for one in networks:
        kept &= one.shares[one.fold] >= COUNTED * one.shares.max()
    return kept / kept.mean() if kept.mean() > LEAST_COUNTED else np.ones(rows)


@dataclass(frozen=True)
class _Folds:
    """What the network of every fold says of every row, its share of the mean, and the fold of every row."""

    said: Array
    shares: Array
    fold: NDArray[np.int64]
    stopped: bool  # by the rows held out
    counts: float = 1.0  # of how far they differ

    @staticmethod
    def of(model: Model, x: Array) -> _Folds | None:
        """None where nothing is known of folds."""
        if isinstance(model, Fitted):
            each, shares, counts = np.stack([one(x) for one in model.guide().functions]), model.shares, 1.0
        elif isinstance(model, Forest | Additive) and model.of_folds is not None:
            each, counts = model.of_folds, TREES if isinstance(model, Forest) else 1.0
            shares = np.full(len(each), 1 / len(each))
        else:
            return None
        # the one that has not seen a row is the one that said what was held out
        return _Folds(each, shares, np.abs(each - unseen(model)).argmin(0), isinstance(model, Fitted), counts)

    @property
    def unseen(self) -> Array:
        return self.said[self.fold, np.arange(len(self.fold))]

    @cached_property
    def weight(self) -> Array:
        """Of every row, 1 on the average: a fold's rows count as much as its network does in the mean."""
        count = np.bincount(self.fold, minlength=len(self.shares))
        return (self.shares * len(self.fold) / np.maximum(count, 1))[self.fold]

    def differ(self, other: _Folds) -> Array:
        """Σ_{j<k} s_j s_k (e_j − e_k)² of two models, its mean over rows that one of j and k has not seen: on those
        that both have learnt from they differ less than on new ones."""
        found = np.zeros(len(self.fold))
        for j, k in combinations(range(len(self.said)), 2):
            some = (self.fold == j) | (self.fold == k)
            share = (self.shares[j] * other.shares[k] + self.shares[k] * other.shares[j]) / 2
            apart = (self.said[j] - self.said[k]) * (other.said[j] - other.said[k])
            found += share * apart * some / max(some.mean(), 1e-300)
        return self.counts * found

    def chance(self, y: Array) -> float:
        """What the choice by the rows held out gains there alone; never more than folds differ."""
        if not self.stopped:
            return 0.0
        differ = float(self.differ(self).mean())
        error = float((self.weight * (self.unseen - y) ** 2).mean())
        return min(differ, 2 * float(np.sqrt(error * differ * len(self.shares) / len(self.fold))))
