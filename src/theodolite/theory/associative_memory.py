"""How many pairs of a key and a value one attention head keeps apart: keys and values are random directions in R^d.

A question is a direction at a given cosine ρ ("likeness") to the key it means, random otherwise; the answer is the
value whose direction the head's output is nearest to. All P pairs are candidates.

- Attention that is sharp enough looks at the nearest key alone. Every other key is nearer than the one that is meant
  with the chance that a random direction exceeds the cosine ρ, independently: recall = (1 − tail)^(P−1), exactly. The
  capacity grows like (1 − ρ²)^(−d/2), exponentially in d.
- Linear attention adds all values up, weighted by ⟨question, key⟩: one d × d matrix (Hebb). Its errors are sums of many
  small products; the capacity grows like ρ²d²/(4 ln P), as the numbers in that matrix.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from theodolite.errors import BadInput
from theodolite.theory.domain import whole

_NODES = 25
_COSINES = 201
_TABLE = 4001
_QUANTILES = 9  # of a χ², equally likely
_MOST = 1e15  # pairs


def likeness_tail(width: int, likeness: float) -> float:
    """The chance that a random direction in R^width has a cosine above `likeness` to a given one."""
    whole("width", width, least=2)
    _check(likeness)
    return float(special.betainc((width - 1) / 2, 0.5, 1 - likeness * likeness)) / 2


def sharp_recall(pairs: float, width: int, likeness: float) -> float:
    """Share of questions answered right by attention to the nearest key alone."""
    return math.exp((pairs - 1) * math.log1p(-likeness_tail(width, likeness)))


def linear_recall(pairs: float, width: int, likeness: float) -> float:
    """Share of questions answered right by r = Σ_j a_j v_j, a_j = ⟨question, k_j⟩, as a mean over sizes of crosstalk.

    With A = Σ a_j² over the other pairs, χ² of P − 1 entries of variance 1/d, the meant value scores t = ρ + N(0, A/d)
    and r has the length √(t² + A χ²/d), that of a sum of random directions. Any other value scores its own weight, the
    cosine of two random directions, plus that length times another such cosine; A is less its own share.
    """
    whole("width", width, least=4)
    _check(likeness)
    if pairs <= 1:
        return 1.0
    shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    total = 2 * special.gammaincinv((pairs - 1) / 2, shares) / width * ((pairs - 1) / pairs)
    stretch = 2 * special.gammaincinv((width - 1) / 2, shares) / width
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    total, stretch, nodes = np.meshgrid(total, stretch, nodes, indexing="ij")
    meant = likeness + np.sqrt(total / width) * nodes
    length = np.sqrt(meant**2 + total * stretch)
    cosines = np.linspace(-1, 1, _COSINES)
    density = (1 - cosines**2) ** ((width - 3) / 2)
    wrong = _above((meant[..., None] - cosines) / length[..., None], width) @ (density / density.sum())
    right = np.exp((pairs - 1) * np.log1p(-np.minimum(wrong, 1 - 1e-15)))
    return float((right @ weights).mean()) / math.sqrt(2 * math.pi)


def _above(cosine: np.ndarray, width: int) -> np.ndarray:
    """The chance that a random direction has a cosine above each of these to a given one, read off a fine table."""
    table = np.linspace(0, 1, _TABLE)
    half = special.betainc((width - 1) / 2, 0.5, 1 - table**2) / 2
    beyond = np.interp(np.abs(cosine), table, np.log(np.maximum(half, 1e-300)))
    return np.where(cosine >= 0, np.exp(beyond), -np.expm1(beyond))


def sharp_capacity(width: int, likeness: float, recall: float = 0.99) -> float:
    """The number of pairs at which attention to the nearest key still answers this share."""
    _check_share(recall)
    return 1 + math.log(recall) / math.log1p(-likeness_tail(width, likeness))


@lru_cache(maxsize=64)
def linear_capacity(width: int, likeness: float, recall: float = 0.99) -> float:
    """The number of pairs at which linear attention still answers this share; at least 1."""
    _check_share(recall)
    low, high = 1.0, 2.0
    while linear_recall(high, width, likeness) >= recall and high < _MOST:
        low, high = high, 2 * high
    while high > low * (1 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if linear_recall(middle, width, likeness) >= recall else (low, middle)
    return low


def growth_rate(likeness: float) -> float:
    """d ln(capacity)/d width of sharp attention for large widths: −½ ln(1 − ρ²)."""
    _check(likeness)
    return -0.5 * math.log(1 - likeness * likeness)


def _check(likeness: float) -> None:
    if not 0 < likeness < 1:
        raise BadInput(f"a likeness is a cosine above 0 and below 1, not {likeness!r}: with 1 nothing is confused")


def _check_share(recall: float) -> None:
    if not 0 < recall < 1:
        raise BadInput(f"recall must be a share above 0 and below 1, not {recall!r}")
