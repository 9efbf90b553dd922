"""Does a column of numbers depend on a variable, or on two together? By orthonormal polynomials of their ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
DEGREE = 5  # of the polynomials of one variable, and of two together


def dependence(left: Array, basis: Array) -> tuple[float, float]:
    """The p-value of E[r φ_k] = 0 for all columns φ_k of the basis, and an unbiased estimate of Σ (E[r φ_k])², which
    for orthonormal φ is the share of r's variance that they explain.

    n·Σ (mean r φ_k)² is under the null about a weighted sum of χ², the weights being the eigenvalues of E[r² φ φᵀ]; a
    scaled χ² of the same mean and variance stands for it (Satterthwaite).

    Examples:
        >>> x = np.random.default_rng(0).uniform(-1, 1, 400)
        >>> p, share = dependence(0.1 * x, np.sqrt(3) * x[:, None])
        >>> p < 1e-6, round(share, 4)
        (True, 0.0032)
    """
    weighted = left[:, None] * basis
    count = len(left)
    moment = weighted.T @ weighted / count
    total, square = float(np.trace(moment)), float(np.sum(moment**2))
    if square == 0:
        return 1.0, 0.0
    size = float(np.sum(weighted.mean(0) ** 2))
    p = float(stats.chi2.sf(count * size * total / square, total**2 / square))
    return p, (size - total / count) * count / (count - 1)


def polynomials(column: Array) -> Array:
    """Legendre's of the ranks, orthonormal for a column without ties: (row, degree)."""
    ranks = stats.rankdata(column) / len(column) * 2 - 1
    if np.ptp(ranks) == 0:
        return np.zeros((len(column), DEGREE))
    return np.polynomial.legendre.legvander(ranks, DEGREE)[:, 1:] * np.sqrt(2 * np.arange(1, DEGREE + 1) + 1)


def products(a: Array, b: Array) -> Array:
    """Of a polynomial of each, up to DEGREE in all."""
    return np.stack([a[:, i] * b[:, j] for i in range(DEGREE) for j in range(DEGREE - 1 - i)], axis=1)
