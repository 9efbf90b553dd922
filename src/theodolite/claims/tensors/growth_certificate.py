"""A certificate of growth: a zero of q(S) = aᵀF S Fᵀa over GF(p) where the Hessian of q is not singular.

F is the network's matrix at a base depth L₀ with drawn weights (Lemma 1 of docs/cap.md). Such a point, and a gradient
that is not 0 there, lift to the p-adic numbers by Hensel's lemma, and so to a point over a field of characteristic 0
with the same property: the premise of the theorem in docs/paper.md, proven for this shape by computation. Numbers
are hyper-dual: 1, ε₁, ε₂, ε₁ε₂ with ε² = 0, whose last part is the second derivative, exactly. Every number is drawn by
the draw rule: `<seed>/growth/weights/…` as in `self-attention`, `<seed>/growth/vector` for a, and the lines that are
searched for the zero; the document states the point itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from theodolite.errors import BadInput, CertificateRefused
from theodolite.field import Modulus, eliminate
from theodolite.field.draw import RULE, draw_words
from theodolite.field.modulus import is_prime
from theodolite.instruments.rank.certificate import flint_rank
from theodolite.instruments.rank.document import opened, seal, whole
from theodolite.notebook import Shown

Residues = NDArray[np.int64]

FORMAT, VERSION = "theodolite-growth-certificate", 1
PRIME = 32003  # entries below 2¹⁵: sums of 2³³ products stay exact in 64 bits, and all of GF(p) is quickly searched
_BATCH = 2048
_SHAPE = ("width", "heads", "attention_width", "base")
_FIELDS = {*_SHAPE, "prime", "draw_rule", "seed", "point"}
_LARGEST_SHAPE, _LARGEST_BASE = 64, 4


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
    point: tuple[int, ...]  # the entries of S₀ on and above the diagonal, row by row

    def document(self) -> dict[str, Any]:
        """What `theodolite verify` checks."""
        if not self.certified:
            raise BadInput(f"the Hessian has rank {self.hessian_rank} of {self.entries}: try another seed or base")
        kept = {name: getattr(self, name) for name in (*_SHAPE, "prime", "seed")}
        return seal(FORMAT, VERSION, header={**kept, "draw_rule": RULE, "point": list(self.point)})


@dataclass(frozen=True)
class GrowthVerified(Shown):
    """The premise of the theorem on growth, proven for a shape and all that have its heads among theirs."""

    width: int
    heads: int
    attention_width: int
    base: int
    prime: int
    method: str
    error_probability: float
    seconds: float

    @property
    def statement(self) -> str:
        entries = self.width * (self.width + 1) // 2
        return (
            f"self-attention (width {self.width}, heads {self.heads}, attention width {self.attention_width}): "
            f"the theorem on growth holds from base depth {self.base}, log₃ sep = {entries}·L + O(1)"
        )

    def to_json(self) -> dict[str, Any]:
        return {"valid": True, "kind": "growth", **asdict(self), "statement": self.statement}


def measure_growth_certificate(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: width, heads, attention_width, base. The draw is numbered by the cell's seed."""
    return asdict(growth_certificate(**config, seed=seed))


def growth_certificate(
    width: int, heads: int = 1, attention_width: int | None = None, base: int = 2, seed: int = 0
) -> GrowthCertificate:
    """Draw weights, find a zero of q on a drawn line, and take the rank of the Hessian there."""
    inner = width // heads if attention_width is None else attention_width
    if min(width, heads, inner, base) < 1:
        raise BadInput(f"width {width}, heads {heads}, attention width {inner} and base {base} must be at least 1")
    form = _Form.drawn(width, heads, inner, base, PRIME, seed)
    point = form.zero(seed)
    hessian, gradient = form.second_derivatives(point)
    modulus, entries = Modulus(PRIME), len(hessian)
    rank = eliminate(modulus.reduce_(torch.from_numpy(hessian).double()), modulus, overwrite=True).rank
    certified = gradient and rank == entries
    kept = tuple(int(v) for v in point[np.triu_indices(width)])
    return GrowthCertificate(width, heads, inner, base, PRIME, seed, rank, entries, gradient, certified, kept)


def verify_growth(document: Any) -> GrowthVerified:
    """Check the zero, the gradient and the Hessian. Raises `CertificateRefused` with the reason."""
    started = time.perf_counter()
    header = opened(document, FORMAT, VERSION, ("header",), _FIELDS)
    whole(header, (*_SHAPE, "prime", "seed"))
    p, width = header["prime"], header["width"]
    if not is_prime(p) or not 2 < p < 1 << 15:
        raise CertificateRefused(f"the modulus {p} is not an odd prime below 2^15")
    if not all(1 <= header[name] <= _LARGEST_SHAPE for name in _SHAPE) or header["base"] > _LARGEST_BASE or width < 2:
        raise CertificateRefused(
            f"its shape is outside what is checked: width 2 to {_LARGEST_SHAPE}, base up to {_LARGEST_BASE}"
        )
    entries, given = width * (width + 1) // 2, header["point"]
    if not isinstance(given, list) or len(given) != entries or any(type(v) is not int for v in given):
        raise CertificateRefused(f"its point is not a list of {entries} whole numbers")
    if not all(0 <= v < p for v in given):
        raise CertificateRefused(f"its point holds what is not a residue from 0 to {p - 1}")
    point = np.zeros((width, width), dtype=np.int64)
    point[np.triu_indices(width)] = given
    point = np.triu(point) + np.triu(point, 1).T
    form = _Form.drawn(width, header["heads"], header["attention_width"], header["base"], p, header["seed"])
    if int(form(point[None, None])[0, 0]):
        raise CertificateRefused("its point is no zero of q")
    hessian, gradient = form.second_derivatives(point)
    rank = flint_rank(torch.from_numpy(hessian % p), p)
    if rank != entries:
        raise CertificateRefused(f"the Hessian at its point has rank {rank}, not {entries}")
    if not gradient:
        raise CertificateRefused("the gradient is 0 at its point, so that the point need not lift")
    kept = {name: header[name] for name in _SHAPE}
    method = "zero, gradient and Hessian recomputed, its rank with python-flint"
    return GrowthVerified(**kept, prime=p, method=method, error_probability=0.0, seconds=time.perf_counter() - started)


@dataclass(frozen=True)
class _Form:
    """q of a network: A_h = O_h V_h and B_h = K_hᵀQ_h of every layer, and the vector a."""

    layers: list[tuple[Residues, Residues]]
    vector: Residues
    prime: int

    @staticmethod
    def drawn(width: int, heads: int, inner: int, base: int, prime: int, seed: int) -> _Form:
        """Weights under the names that they have in the net `self-attention`."""
        layers = []
        for layer in range(base):
            stream = f"{seed}/growth/weights/layers.{layer}"
            query, key, value = _residues(f"{stream}.project.weight", (3, heads, inner, width), prime)
            out = _residues(f"{stream}.combine.weight", (width, heads, inner), prime).transpose(1, 0, 2)
            layers.append((out @ value % prime, key.transpose(0, 2, 1) @ query % prime))
        return _Form(layers, _residues(f"{seed}/growth/vector", (1, width), prime), prime)

    def __call__(self, s: Residues) -> Residues:
        """(part, batch, d, d) hyper-dual symmetric matrices to (part, batch)."""
        p, times = self.prime, self._product
        f = np.zeros_like(s)
        f[0] = np.eye(s.shape[-1], dtype=np.int64)
        for a, b in self.layers:
            gram = times(times(f, s), _transposed(f))
            heads = [times(a[h] @ gram % p, b[h] @ f % p) for h in range(len(a))]
            f = np.sum(heads, axis=0) % p
        row = self.vector @ f % p
        return times(times(row, s), _transposed(row))[..., 0, 0]

    def zero(self, seed: int) -> Residues:
        """A zero on a drawn line; about two lines in three have one over GF(p)."""
        width, p, line = self.vector.shape[1], self.prime, 0
        while True:
            ends = _residues(f"{seed}/growth/line/{line}", (2, width, width), p)
            origin, direction = (ends + ends.transpose(0, 2, 1)) % p
            for start in range(0, p, _BATCH):
                steps = np.arange(start, min(p, start + _BATCH))[:, None, None]
                places = (origin + steps * direction) % p
                # one part suffices for values; the products of the others are left out
                values = self(np.stack([places]))[0]
                if (values == 0).any():
                    return places[int(np.argmax(values == 0))]
            line += 1

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

    def _product(self, x: Residues, y: Residues) -> Residues:
        """Product of hyper-dual matrices, or of plain ones (a single part), modulo p."""
        p = self.prime
        if len(x) == 1:
            return x @ y % p
        mixed = (x[0] @ y[3] + x[3] @ y[0] + x[1] @ y[2] + x[2] @ y[1]) % p
        first, second = (x[0] @ y[k] + x[k] @ y[0] for k in (1, 2))
        return np.stack([x[0] @ y[0] % p, first % p, second % p, mixed])


def _residues(stream: str, shape: tuple[int, ...], prime: int) -> Residues:
    """Residues from 0 to p − 1 by the draw rule, row by row."""
    return draw_words(stream, int(np.prod(shape))).numpy().reshape(shape) % prime


def _transposed(x: Residues) -> Residues:
    return np.swapaxes(x, -1, -2)
