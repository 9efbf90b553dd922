"""Gradient-boosted trees: what a table gives to the method most people would try first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theodolite.errors import BadInput
from theodolite.structure.workers import by_workers

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

Array = NDArray[np.float64]
Places = NDArray[np.int64]
LEAVES = (8, 31)
RATES = (0.05, 0.15)
_ARRAYS = {
    **{"feature": np.int64, "threshold": np.float64, "left": np.int64, "right": np.int64},
    **{"value": np.float64, "roots": np.int64},
}
_PART = 2_000_000  # of rows times trees that are looked up at once


def boosted(x: Array, y: Array, seed: int) -> HistGradientBoostingRegressor:
    """Scikit-learn's histogram boosting in the setting that is best on a tenth held out; its own early stopping on that
    tenth sets the number of trees."""
    return best_stopped(by_workers(settings(x, y, seed)))


def settings(x: Array, y: Array, seed: int) -> list[Callable[[], HistGradientBoostingRegressor]]:
    """Calls that fit trees of these rows, each in its own setting."""
    stopping = {"max_iter": 1000, "early_stopping": True, "n_iter_no_change": 15}
    return [partial(_fitted, x, y, seed, rate, leaves, **stopping) for leaves in LEAVES for rate in RATES]


def best_stopped(found: Iterable[HistGradientBoostingRegressor]) -> HistGradientBoostingRegressor:
    return max(found, key=lambda trees: float(np.max(trees.validation_score_)))


def stopping_error(trees: HistGradientBoostingRegressor) -> float:
    """Mean squared error on the tenth that set the number of trees (scikit-learn's loss is half of it, negative)."""
    return -2 * float(np.max(trees.validation_score_))


@dataclass(frozen=True)
class Forest:
    """`offset` + the value of the leaf that a row reaches in each tree: to the left where the variable `feature` of a
    node is at most its `threshold`. A leaf leads to itself. `held_out`: of every training row, by trees that did not
    see it, and `of_folds` what the trees of each fold say of it; None once read back."""

    feature: Places = field(repr=False)  # (node,), and so are the next four
    threshold: Array = field(repr=False)
    left: Places = field(repr=False)
    right: Places = field(repr=False)
    value: Array = field(repr=False)
    roots: Places = field(repr=False)  # (tree,)
    depth: int
    offset: float
    held_out: Array | None = field(default=None, repr=False)
    of_folds: Array | None = field(default=None, repr=False)  # (fold, row)

    def predict(self, x: ArrayLike) -> Array:
        rows = np.asarray(x, dtype=np.float64)
        step = max(1, _PART // max(1, len(self.roots)))
        return np.concatenate([self._said(rows[at : at + step]) for at in range(0, max(len(rows), 1), step)])

    def widened(self, places: Places) -> Forest:
        """The same among more columns, in which those that it reads stand in these places."""
        return replace(self, feature=places[self.feature])

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays, and a JSON document, that `from_state` makes the same predictions of."""
        return {name: getattr(self, name) for name in _ARRAYS}, {"depth": self.depth, "offset": self.offset}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], document: Mapping[str, Any], variables: int) -> Forest:
        given = [np.asarray(arrays[name], dtype=kind) for name, kind in _ARRAYS.items()]
        feature, _, left, right, _, roots = given
        depth, offset = int(document["depth"]), float(document["offset"])
        nodes = len(feature)
        if any(one.shape != (nodes,) for one in given[:-1]) or roots.ndim != 1:
            raise BadInput("its trees have nodes that lack a value")
        ends = ((feature, variables), (left, nodes), (right, nodes), (roots, nodes))
        if any(len(one) and not 0 <= one.min() <= one.max() < end for one, end in ends) or not 0 <= depth <= nodes:
            raise BadInput("its trees lead to nodes or variables that are not there")
        return cls(*given, depth=depth, offset=offset)

    def _said(self, rows: Array) -> Array:
        at = np.tile(self.roots, (len(rows), 1))
        for _ in range(self.depth):
            below = np.take_along_axis(rows, self.feature[at], axis=1) <= self.threshold[at]
            at = np.where(below, self.left[at], self.right[at])
        return self.offset + self.value[at].sum(1)


def fold_trees(x: Array, y: Array, fold: Places, like: HistGradientBoostingRegressor, seed: int) -> Forest:
    """The mean over folds of `trees_of_folds`, as one forest."""
    found = trees_of_folds(x, y, fold, like, seed)
    said = np.stack([trees.predict(x) for trees in found])
    return replace(_forest(found), held_out=said[fold, np.arange(len(y))], of_folds=said)


def trees_of_folds(
    x: Array, y: Array, fold: Places, like: HistGradientBoostingRegressor, seed: int
) -> list[HistGradientBoostingRegressor]:
    """Of every fold (numbered from 0) trees that have not seen its rows, in the setting and of as many rounds as those
    of `boosted`."""
    options = {"max_iter": like.n_iter_, "early_stopping": False}
    setting = (seed, like.learning_rate, like.max_leaf_nodes)
    others = (fold != number for number in range(int(fold.max()) + 1))
    return list(by_workers(partial(_fitted, x[rows], y[rows], *setting, **options) for rows in others))


def _forest(several: list[HistGradientBoostingRegressor]) -> Forest:
    """The mean of these as one."""
    nodes = [tree.nodes for trees in several for (tree,) in trees._predictors]
    first = np.cumsum([0, *(len(one) for one in nodes)])
    every = np.concatenate(nodes)
    leaf = every["is_leaf"].astype(bool)
    own, shift = np.arange(len(every)), np.repeat(first[:-1], [len(one) for one in nodes])
    return Forest(
        feature=np.where(leaf, 0, every["feature_idx"]).astype(np.int64),
        threshold=np.where(leaf, 0.0, every["num_threshold"]).astype(np.float64),
        left=np.where(leaf, own, every["left"] + shift).astype(np.int64),
        right=np.where(leaf, own, every["right"] + shift).astype(np.int64),
        value=np.where(leaf, every["value"] / len(several), 0.0),
        roots=first[:-1].astype(np.int64),
        depth=int(every["depth"].max(initial=0)),
        offset=float(np.mean([np.squeeze(trees._baseline_prediction) for trees in several])),
    )


def _fitted(x: Array, y: Array, seed: int, rate: float, leaves: Any, **options: Any) -> HistGradientBoostingRegressor:
    from sklearn.ensemble import HistGradientBoostingRegressor

    least = min(20, max(2, len(x) // 50))
    return HistGradientBoostingRegressor(
        learning_rate=rate, max_leaf_nodes=leaves, min_samples_leaf=least, random_state=seed, **options
    ).fit(x, y)
