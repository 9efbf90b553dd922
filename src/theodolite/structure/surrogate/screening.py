"""Which of many columns are worth a search: by ranks, alone or with another, or by boosted trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from theodolite.statistics.paired import LEVEL
from theodolite.structure.fit.dependence import dependence, polynomials

Array = NDArray[np.float64]
MOST = 24  # columns that are searched: pairs and triples of them are looked at
PAIRED = 2  # degrees of two columns together
ROWS = 4_000  # of each half, to learn from and to look at


def screened(x: Array, y: Array, generator: np.random.Generator, most: int = MOST) -> list[int]:
    """At most so many columns, in their order: all of them where there are no more.

    A column counts by the surest of three signs: the target depends on its ranks, or on those of it and another column
    together, or boosted trees of one half of the rows predict the other half worse where it is shuffled. Kept are those
    with a sign, at a level by which of columns that mean nothing one is expected to have it, and two at least.
    """
    columns = x.shape[1]
    if columns <= most:
        return list(range(columns))
    order = generator.permutation(len(y))
    half = min(ROWS, len(y) // 2)
    learnt, looked = order[:half], order[half : 2 * half]
    centred = (y - y.mean()) / y.std()
    both = order[: 2 * half]
    bases = [polynomials(column) for column in x[both].T]
    alone = np.array([dependence(centred[both], basis)[0] for basis in bases])
    used = stats.norm.sf(_used_by_trees(x, centred, learnt, looked, generator))
    p = np.minimum.reduce([alone, used, _with_another(centred[both], np.stack(bases))])
    order = np.argsort(p, kind="stable")[:most]
    bar = min(LEVEL, 1 / (3 * columns))  # three signs each
    return sorted(int(place) for rank, place in enumerate(order) if rank < 2 or p[place] < bar)


def _with_another(y: Array, bases: Array) -> Array:
    """Of every column (column, row, degree) the least p-value of E[y φ(x_i) ψ(x_j)] = 0 over the other columns and the
    polynomials of degree 1 and 2, times the number of these."""
    columns, count, _ = bases.shape
    least = np.ones(columns)
    for a in range(PAIRED):
        for b in range(a, PAIRED):
            mean = (bases[:, :, a] * y) @ bases[:, :, b].T / count
            square = (bases[:, :, a] * y) ** 2 @ (bases[:, :, b] ** 2).T / count
            p = 2 * stats.norm.sf(np.abs(mean) * np.sqrt(count / np.maximum(square, np.finfo(np.float64).tiny)))
            np.fill_diagonal(p, 1.0)
            least = np.minimum(least, np.minimum(p.min(0), p.min(1)))
    return np.minimum(1.0, least * columns * PAIRED * PAIRED)


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
