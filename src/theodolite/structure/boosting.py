"""Gradient-boosted trees, to compare with: what a table gives to the method most people would try first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

Array = NDArray[np.float64]
LEAVES = (8, 31)
RATES = (0.05, 0.15)
FOLDS = 4


def boosted(x: Array, y: Array, seed: int) -> HistGradientBoostingRegressor:
    """Scikit-learn's histogram boosting in the setting that is best on a tenth held out; its own early stopping on that
    tenth sets the number of trees."""
    found = [
        _trees(len(x), seed, rate, leaves, max_iter=1000, early_stopping=True, n_iter_no_change=15).fit(x, y)
        for leaves in LEAVES
        for rate in RATES
    ]
    return max(found, key=lambda trees: float(np.max(trees.validation_score_)))


def boosting_error(x_train: Array, y_train: Array, x_test: Array, y_test: Array, seed: int) -> float:
    """Mean squared error on the test rows over their variance."""
    return float(np.mean((boosted(x_train, y_train, seed).predict(x_test) - y_test) ** 2) / np.var(y_test))


def held_out_by_boosting(x: Array, y: Array, seed: int) -> tuple[HistGradientBoostingRegressor, Array]:
    """Trees fitted to all rows, and the prediction of every row by trees of as many rounds that did not see it."""
    whole = boosted(x, y, seed)
    fold = np.random.default_rng(seed).permutation(len(y)) % FOLDS
    unseen = np.empty(len(y))
    for place in range(FOLDS):
        rows = fold != place
        rounds: dict[str, Any] = {"max_iter": whole.n_iter_, "early_stopping": False}
        trees = _trees(int(rows.sum()), seed, whole.learning_rate, whole.max_leaf_nodes, **rounds)
        unseen[~rows] = trees.fit(x[rows], y[rows]).predict(x[~rows])
    return whole, unseen


def _trees(rows: int, seed: int, rate: float, leaves: Any, **options: Any) -> HistGradientBoostingRegressor:
    from sklearn.ensemble import HistGradientBoostingRegressor

    least = min(20, max(2, rows // 50))
    return HistGradientBoostingRegressor(
        learning_rate=rate, max_leaf_nodes=leaves, min_samples_leaf=least, random_state=seed, **options
    )
