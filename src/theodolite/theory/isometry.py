"""How near a matrix of given rank can come to an isometry of sparse vectors: the restricted isometry constant.

δ_s is the least δ with (1 − δ)‖z‖² ≤ ‖cAz‖² ≤ (1 + δ)‖z‖² for all z with at most s entries that are not 0, the scale c
chosen best: with Λ and λ the largest and the smallest eigenvalue of any s × s principal block of AᵀA,
δ_s = (Λ − λ) / (Λ + λ). Two lower bounds hold for every matrix of T columns and rank d, whatever its scale:

- δ_s ≥ δ₂ ≥ μ ≥ √((T − d) / (d(T − 1))), Welch's bound on the coherence μ: of all scalings of two columns the one to
  equal length has the least condition number, and then δ₂ of the pair is their cosine.
- δ_s² ≥ u / (u + r), u = T/d − 1, r = (T − 1)/(s − 1): for G = c²AᵀA every block has ‖G_S − I‖_F² ≤ sδ²; summed over
  all supports, with ‖G‖_F² ≥ (tr G)²/d, and minimised over tr G.
"""

from __future__ import annotations

import math

import numpy as np

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole

RECOVERY = 1 / math.sqrt(2)  # δ_2k below it: every k-sparse vector is found again by ℓ₁ minimisation (Cai & Zhang 2014)


def welch(columns: int, rank: int) -> float:
    """The least coherence of so many columns in so many dimensions; 0 where they can be orthogonal."""
    whole("columns", columns)
    whole("rank", rank)
    return math.sqrt(max(0, columns - rank) / (rank * (columns - 1))) if columns > rank else 0.0


def least_constant(columns: int, rank: int, order: int) -> float:
    """No matrix of so many columns and that rank has a smaller restricted isometry constant of that order."""
    whole("order", order)
    if order > columns:
        raise OutsideDomain(f"order = {order} is outside the domain: a matrix of {columns} columns has no such support")
    if order == 1 or columns <= rank:
        return 0.0
    if order > rank:
        return 1.0  # some support has dependent columns
    excess, spread = columns / rank - 1, (columns - 1) / (order - 1)
    return max(welch(columns, rank), math.sqrt(excess / (excess + spread)))


def equiangular(prime: int) -> np.ndarray:
    """(prime + 1)/2 × (prime + 1): columns of length 1 whose coherence is Welch's bound, 1/√prime.

    From Paley's conference matrix C, symmetric for primes 5, 13, 17, 29, … (1 modulo 4): C² = prime · I, so that
    I + C/√prime is twice a projection of half the rank, and its square root has the columns asked for.
    """
    if prime < 5 or prime % 4 != 1 or any(prime % k == 0 for k in range(2, math.isqrt(prime) + 1)):
        raise OutsideDomain(
            f"prime = {prime!r} is outside the domain: pass 5, 13, 17, 29, …, a prime that is 1 modulo 4"
        )
    squares = {k * k % prime for k in range(1, prime)}
    conference = np.ones((prime + 1, prime + 1)) - np.eye(prime + 1)
    for i in range(prime):
        for j in range(prime):
            conference[i + 1, j + 1] = 0 if i == j else 1 if (i - j) % prime in squares else -1
    values, vectors = np.linalg.eigh(np.eye(prime + 1) + conference / math.sqrt(prime))
    kept = values > 0.5
    return np.sqrt(values[kept])[:, None] * vectors[:, kept].T
