"""Inverse of a square matrix modulo p by halving, without pivoting.

[[P, Q], [R, S]] is inverted through P and the Schur complement S − R·P⁻¹·Q, which needs every leading minor that is
met to be non-zero. At random points that holds but for a chance of about size/p; the caller pivots when it does not.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from theodolite.field import kernels
from theodolite.field.modulus import Modulus
from theodolite.field.product import product

_BASE = 32


def inverse(matrix: Tensor, modulus: Modulus) -> Tensor | None:
    """The inverse, or None if a leading minor vanishes. One host synchronisation on a GPU, whatever the size."""
    if matrix.device.type == "cpu":
        return _halve_cpu(matrix, modulus)
    singular = torch.zeros(1, dtype=torch.int32, device=matrix.device)
    result = _halve_cuda(matrix, modulus, singular)
    return None if int(singular) else result


def _halve_cpu(matrix: Tensor, modulus: Modulus) -> Tensor | None:
    n = matrix.shape[0]
    if n <= _BASE:
        result = _gauss_jordan(matrix.numpy().copy(), modulus.p)
        return None if result is None else torch.from_numpy(result)
    half = n // 2
    first = _halve_cpu(matrix[:half, :half], modulus)
    if first is None:
        return None
    assembled = _schur(matrix, first, half, modulus)
    second = _halve_cpu(assembled.complement, modulus)
    return None if second is None else assembled.inverse(second)


def _halve_cuda(matrix: Tensor, modulus: Modulus, singular: Tensor) -> Tensor:
    n = matrix.shape[0]
    if n <= kernels.LARGEST_INVERSE:
        if kernels.available():
            return kernels.invert(matrix, modulus.p, singular)
        return _gauss_jordan_on_device(matrix, modulus, singular)
    half = kernels.LARGEST_INVERSE
    while 2 * half < n:
        half *= 2
    assembled = _schur(matrix, _halve_cuda(matrix[:half, :half], modulus, singular), half, modulus)
    return assembled.inverse(_halve_cuda(assembled.complement, modulus, singular))


class _schur:
    """The pieces of a 2×2 block inverse that are known once the first block is inverted."""

    def __init__(self, matrix: Tensor, first: Tensor, half: int, modulus: Modulus) -> None:
        self.first, self.half, self.modulus = first, half, modulus
        self.left = product(matrix[half:, :half], first, modulus)  # R·P⁻¹
        self.right = product(first, matrix[:half, half:], modulus)  # P⁻¹·Q
        self.complement = modulus.reduce_(matrix[half:, half:] - product(self.left, matrix[:half, half:], modulus))

    def inverse(self, second: Tensor) -> Tensor:
        half, m = self.half, self.modulus
        n = half + second.shape[0]
        result = second.new_empty(n, n)
        corner = -product(self.right, second, m)
        result[:half, half:] = corner
        result[half:, :half] = -product(second, self.left, m)
        result[:half, :half] = m.reduce_(self.first - product(corner, self.left, m))
        result[half:, half:] = second
        return result


def _gauss_jordan(a: np.ndarray, p: int) -> np.ndarray | None:
    """In place on a small array: each step clears one column with one outer product."""
    scale = 1.0 / p
    for k in range(a.shape[0]):
        pivot = int(a[k, k]) % p
        if pivot == 0:
            return None
        row = a[k] * float(_centre(pow(pivot, -1, p), p))
        row -= np.rint(row * scale) * p
        row[k] = _centre(pow(pivot, -1, p), p)
        column = a[:, k].copy()
        column[k] = 0.0
        a[:, k] = 0.0
        a[k] = 0.0
        a -= column[:, None] * row
        a -= np.rint(a * scale) * p
        a[k] = row
    return a


def _centre(residue: int, p: int) -> int:
    return residue - p if residue > p // 2 else residue


def _gauss_jordan_on_device(matrix: Tensor, modulus: Modulus, singular: Tensor) -> Tensor:
    """The same steps as `_gauss_jordan`, with the pivots left on the device."""
    a = matrix.clone()
    for k in range(a.shape[0]):
        pivot = a[k, k].clone()
        singular |= (pivot == 0).to(torch.int32)
        inverted = modulus.inverses(pivot)
        row = modulus.reduce_(a[k] * inverted)
        row[k] = inverted
        column = a[:, k].clone()
        column[k] = 0.0
        a[:, k] = 0.0
        a[k] = 0.0
        modulus.reduce_(a.sub_(column[:, None] * row))
        a[k] = row
    return a
