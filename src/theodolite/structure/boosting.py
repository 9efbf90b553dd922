"""Gradient-boosted trees, to compare with: what a table gives to the method most people would try first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

Array = NDArray[np.float64]
LEAVES = (8, 31)
RATES = (0.05, 0.15)
FOLDS = 4


def boosted(x: Array, y: Array, seed: int, **options: Any) -> HistGradientBoostingRegressor:
    """Scikit-learn's histogram boosting in the setting that is best on a tenth held out; its own early stopping on that
    tenth sets the number of trees."""
    found = [
        _trees(len(x), seed, rate, leaves, max_iter=1000, early_stopping=True, n_iter_no_change=15, **options).fit(x, y)
        for leaves in LEAVES
        for rate in RATES
    ]
    return max(found, key=lambda trees: float(np.max(trees.validation_score_)))


def boosting_error(x_train: Array, y_train: Array, x_test: Array, y_test: Array, seed: int) -> float:
    """Mean squared error on the test rows over their variance."""
    return float(np.mean((boosted(x_train, y_train, seed).predict(x_test) - y_test) ** 2) / np.var(y_test))


@dataclass(frozen=True)
class FoldTrees:
    """Trees of every fold of the rows, each fitted to the other folds; their mean predicts."""

    trees: tuple[HistGradientBoostingRegressor, ...]
    held_out: Array = field(repr=False)  # of every row, by the trees that did not see it

    def predict(self, x: Array) -> Array:
        return np.mean([one.predict(x) for one in self.trees], axis=0)


def fold_trees(x: Array, y: Array, seed: int, *, additive: bool = False) -> FoldTrees:
    """In the setting, and of as many rounds, as is best on a tenth held out. `additive`: sums of functions of one
    variable each."""
    options: dict[str, Any] = {"interaction_cst": "no_interactions"} if additive else {}
    whole = boosted(x, y, seed, **options)
    options |= {"max_iter": whole.n_iter_, "early_stopping": False}
    fold = np.random.default_rng(seed).permutation(len(y)) % FOLDS
    unseen, found = np.empty(len(y)), []
    for place in range(FOLDS):
        rows = fold != place
        trees = _trees(int(rows.sum()), seed, whole.learning_rate, whole.max_leaf_nodes, **options)
        found.append(trees.fit(x[rows], y[rows]))
        unseen[~rows] = trees.predict(x[~rows])
    return FoldTrees(tuple(found), unseen)


def _trees(rows: int, seed: int, rate: float, leaves: Any, **options: Any) -> HistGradientBoostingRegressor:
    from sklearn.ensemble import HistGradientBoostingRegressor

    least = min(20, max(2, rows // 50))
    return HistGradientBoostingRegressor(
        learning_rate=rate, max_leaf_nodes=leaves, min_samples_leaf=least, random_state=seed, **options
    )
