"""Which of many columns are worth a search: those that the target depends on by ranks, or that boosted trees use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from theodolite.statistics.paired import LEVEL
from theodolite.structure.fit.dependence import dependence, polynomials

Array = NDArray[np.float64]
MOST = 24  # columns that are searched: pairs and triples of them are looked at
ROWS = 5_000  # of each half, to learn from and to look at


def screened(x: Array, y: Array, generator: np.random.Generator, most: int = MOST) -> list[int]:
    """At most so many columns, in their order: all of them where there are no more.

    A column counts by the surer of two signs: the target depends on its ranks, or boosted trees of one half of the rows
    predict the other half worse where it is shuffled. Kept are columns with a sign, at 5 % each, and two at least.
    """
    if x.shape[1] <= most:
        return list(range(x.shape[1]))
    order = generator.permutation(len(y))
    half = min(ROWS, len(y) // 2)
    learnt, looked = order[:half], order[half : 2 * half]
    centred = (y - y.mean()) / y.std()
    both = order[: 2 * half]
    p = np.array([dependence(centred[both], polynomials(column))[0] for column in x[both].T])
    sure = np.maximum(stats.norm.isf(np.maximum(p, 1e-300)), _used_by_trees(x, centred, learnt, looked, generator))
    signs = np.argsort(-sure, kind="stable")[:most]
    kept = [int(place) for rank, place in enumerate(signs) if rank < 2 or sure[place] > stats.norm.isf(LEVEL)]
    return sorted(kept)


def _used_by_trees(
    x: Array, y: Array, learnt: NDArray[np.int64], looked: NDArray[np.int64], generator: np.random.Generator
) -> Array:
    """z of the rise in squared error on rows that the trees have not seen, where a column is shuffled."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(
        max_iter=100,
        max_leaf_nodes=16,
        early_stopping=False,  # pyright: ignore[reportArgumentType]
        random_state=0,
    ).fit(x[learnt], y[learnt])
    rows = x[looked]
    before = (trees.predict(rows) - y[looked]) ** 2
    found = np.zeros(x.shape[1])
    for place in range(x.shape[1]):
        moved = rows.copy()
        moved[:, place] = generator.permutation(rows[:, place])
        rise = (trees.predict(moved) - y[looked]) ** 2 - before
        spread = rise.std()
        found[place] = rise.mean() / spread * np.sqrt(len(rise)) if spread > 0 else 0.0
    return found
