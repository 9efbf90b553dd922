"""The second opinion: Python integers and fractions, numpy arrays of them, ranks and determinants by python-flint."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import torch
from flint import nmod_mat
from torch import Tensor

from theodolite.field import Modulus

NEAR_2_23 = 8388593
NEAR_2_25 = 33554393
PRIMES = (2, 3, 7, 101, 65537, NEAR_2_23, NEAR_2_25)

_remainder = np.frompyfunc(lambda value, p: residue(value, p), 2, 1)


def residue(value: int | Fraction, p: int) -> int:
    """0 … p − 1; a fraction is numerator over denominator."""
    value = Fraction(value)
    return value.numerator * pow(value.denominator, -1, p) % p


def residues(values: np.ndarray, p: int) -> np.ndarray:
    return np.asarray(_remainder(values, p), dtype=object)


def integers(seed: object, shape: tuple[int, ...], p: int) -> np.ndarray:
    """An object array of residues from −p/2 to p/2, every second one at an end of that range or at 0 or ±1."""
    rng = random.Random(repr(seed))
    half = p // 2
    ends = (half, -half, half - (p > 2), 0, 1, -1)
    array = np.empty(shape, dtype=object)
    for place in np.ndindex(*shape):
        array[place] = rng.choice(ends) if rng.random() < 0.5 else rng.randint(-half, half)
    return array


def tensor(values: np.ndarray) -> Tensor:
    """Integers of any array as float64; they must be small enough to be exact."""
    values = np.asarray(values, dtype=object)
    flat = [int(v) for v in values.reshape(-1)]
    assert all(abs(v) <= 1 << 53 for v in flat)
    return torch.tensor(flat, dtype=torch.float64).reshape(values.shape)


def plain(values: Tensor) -> list[list[int]]:
    return values.to(torch.int64).tolist()


def flint_matrix(matrix: Tensor, modulus: Modulus) -> nmod_mat:
    rows, columns = matrix.shape
    entries = [int(v) % modulus.p for v in matrix.flatten().tolist()]
    return nmod_mat(rows, columns, entries, modulus.p)


def flint_rank(matrix: Tensor, modulus: Modulus) -> int:
    return flint_matrix(matrix, modulus).rank() if matrix.numel() else 0
