"""A certificate of growth: a zero of q(S) = aᵀF S Fᵀa over GF(p) where the Hessian of q is not singular.

F is the network's matrix at a base depth L₀ with drawn weights (Lemma 1 of docs/cap.md). Such a point, and a gradient
that is not 0 there, lift to the p-adic numbers by Hensel's lemma, and so to a point over a field of characteristic 0
with the same property: the premise of the theorem in docs/paper.md, proven for this shape by computation. Numbers
are hyper-dual: 1, ε₁, ε₂, ε₁ε₂ with ε² = 0, whose last part is the second derivative, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from theodolite.errors import BadInput
from theodolite.field import Modulus, eliminate

Residues = NDArray[np.int64]

PRIME = 32003  # entries below 2¹⁵: sums of 2³³ products stay exact in 64 bits, and all of GF(p) is quickly searched
_BATCH = 2048


@dataclass(frozen=True)
class GrowthCertificate:
    """`certified` when the Hessian has full rank, D = d(d+1)/2, at the point found, and the gradient is not 0 there."""

    width: int
    heads: int
    attention_width: int
    base: int
    prime: int
    seed: int
    hessian_rank: int
    entries: int  # D
    gradient: bool
    certified: bool


def measure_growth_certificate(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: width, heads, attention_width, base. The draw is numbered by the cell's seed."""
    return asdict(growth_certificate(**config, seed=seed))


def growth_certificate(
    width: int, heads: int = 1, attention_width: int | None = None, base: int = 2, seed: int = 0
) -> GrowthCertificate:
    """Draw weights, find a zero of q on a random line, and take the rank of the Hessian there."""
    inner = width // heads if attention_width is None else attention_width
    if min(width, heads, inner, base) < 1:
        raise BadInput(f"width {width}, heads {heads}, attention width {inner} and base {base} must be at least 1")
    random = np.random.default_rng(seed)
    form = _Form.draw(width, heads, inner, base, random)
    point = form.zero(random)
    hessian, gradient = form.second_derivatives(point)
    modulus, entries = Modulus(PRIME), len(hessian)
    rank = eliminate(modulus.reduce_(torch.from_numpy(hessian).double()), modulus, overwrite=True).rank
    return GrowthCertificate(
        width, heads, inner, base, PRIME, seed, rank, entries, gradient, gradient and rank == entries
    )


@dataclass(frozen=True)
class _Form:
    """q of a network: A_h = O_h V_h and B_h = K_hᵀQ_h of every layer, and the vector a."""

    layers: list[tuple[Residues, Residues]]
    vector: Residues

    @staticmethod
    def draw(width: int, heads: int, inner: int, base: int, random: np.random.Generator) -> _Form:
        def low_rank() -> Residues:
            left = random.integers(PRIME, size=(heads, width, inner))
            return left @ random.integers(PRIME, size=(heads, inner, width)) % PRIME

        return _Form([(low_rank(), low_rank()) for _ in range(base)], random.integers(PRIME, size=(1, width)))

    def __call__(self, s: Residues) -> Residues:
        """(part, batch, d, d) hyper-dual symmetric matrices to (part, batch)."""
        f = np.zeros_like(s)
        f[0] = np.eye(s.shape[-1], dtype=np.int64)
        for a, b in self.layers:
            gram = _product(_product(f, s), _transposed(f))
            heads = [_product(a[h] @ gram % PRIME, b[h] @ f % PRIME) for h in range(len(a))]
            f = np.sum(heads, axis=0) % PRIME
        row = self.vector @ f % PRIME
        return _product(_product(row, s), _transposed(row))[..., 0, 0]

    def zero(self, random: np.random.Generator) -> Residues:
        """A zero on a random line; about two lines in three have one over GF(p)."""
        width = self.vector.shape[1]
        while True:
            ends = random.integers(PRIME, size=(2, width, width))
            origin, direction = (ends + ends.transpose(0, 2, 1)) % PRIME
            for start in range(0, PRIME, _BATCH):
                steps = np.arange(start, min(PRIME, start + _BATCH))[:, None, None]
                line = (origin + steps * direction) % PRIME
                # one part suffices for values; the products of the others are left out
                values = self(np.stack([line]))[0]
                if (values == 0).any():
                    return line[int(np.argmax(values == 0))]

    def second_derivatives(self, point: Residues) -> tuple[Residues, bool]:
        """The Hessian in the D entries of a symmetric matrix, and whether the gradient is not 0."""
        width = len(point)
        rows, columns = np.triu_indices(width)
        basis = np.zeros((len(rows), width, width), dtype=np.int64)
        basis[np.arange(len(rows)), rows, columns] = basis[np.arange(len(rows)), columns, rows] = 1
        first, second = np.triu_indices(len(basis))
        hessian, slope = np.zeros((len(basis), len(basis)), dtype=np.int64), False
        for start in range(0, len(first), _BATCH):
            i, j = first[start : start + _BATCH], second[start : start + _BATCH]
            s = np.zeros((4, len(i), width, width), dtype=np.int64)
            s[0], s[1], s[2] = point, basis[i], basis[j]
            found = self(s)
            hessian[i, j] = hessian[j, i] = found[3]
            slope = slope or bool(found[1].any())
        return hessian, slope


def _product(x: Residues, y: Residues) -> Residues:
    """Product of hyper-dual matrices, or of plain ones (a single part), modulo p."""
    if len(x) == 1:
        return x @ y % PRIME
    mixed = (x[0] @ y[3] + x[3] @ y[0] + x[1] @ y[2] + x[2] @ y[1]) % PRIME
    return np.stack(
        [x[0] @ y[0] % PRIME, (x[0] @ y[1] + x[1] @ y[0]) % PRIME, (x[0] @ y[2] + x[2] @ y[0]) % PRIME, mixed]
    )


def _transposed(x: Residues) -> Residues:
    return np.swapaxes(x, -1, -2)
