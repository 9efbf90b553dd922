"""Functions of a known separation rank: sums of products of one function of side A and one of side B.

For f = Σ_r c_r g_r(a) h_r(b), the singular values of f as an operator are those of Rᵀ·diag(c)·S, where R·Rᵀ and S·Sᵀ
are the Gram matrices E g_r g_s and E h_r h_s. All factors have them in closed form, so spectrum and ε-rank are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.partition import Partition
from theodolite.tasks.shared.rank_factors import Array, Factors
from theodolite.tasks.shared.tables import on_device


class SumOfProducts:
    """f = (Σ_r weights_r g_r(a) h_r(b) − mean) / scale, of mean 0 and variance 1."""

    def __init__(self, left: Factors, right: Factors, weights: Array, partition: Partition) -> None:
        self.left, self.right, self.weights, self.partition = left, right, weights, partition
        self.mean = float((weights * left.means() * right.means()).sum())
        square = float(weights @ (left.gram() * right.gram()) @ weights)
        self.scale = math.sqrt(square - self.mean**2)
        self._count = len(left.tables)
        self._on_device: dict[torch.device, list[Tensor]] = {}

    def __call__(self, points: Tensor) -> Tensor:
        """(…, variable), float64, to (…)."""
        tables = self._tables(points.device)
        columns = points.reshape(-1, points.shape[-1]).T
        a = self.left.of(columns.index_select(0, tables[-2]), tables[: self._count])
        b = self.right.of(columns.index_select(0, tables[-1]), tables[self._count : -3])
        return ((tables[-3] @ (a * b) - self.mean) / self.scale).reshape(points.shape[:-1])

    def by_hand(self, row: Sequence[float]) -> float:
        left = self.left.by_hand([row[i] for i in self.partition.a])
        right = self.right.by_hand([row[i] for i in self.partition.b])
        products = (w * g * h for w, g, h in zip(self.weights.tolist(), left, right, strict=True))
        return (math.fsum(products) - self.mean) / self.scale

    def spectrum(self) -> Array:
        """The singular values of f, the largest first; their squares add up to 1."""
        weights = np.append(self.weights, -self.mean) / self.scale  # the mean is one more product, of constants
        left, right = (_with_constant(side.gram(), side.means()) for side in (self.left, self.right))
        return operator_spectrum(left, right, weights)

    def _tables(self, device: torch.device) -> list[Tensor]:
        if device not in self._on_device:
            sides = [np.array(side) for side in (self.partition.a, self.partition.b)]
            held = (*self.left.tables, *self.right.tables, self.weights, *sides)
            self._on_device[device] = [on_device(np.ascontiguousarray(table), device) for table in held]
        return self._on_device[device]


class Teacher:
    """f = (Σ_r weights_r ∏_k (1 + ⟨forms_{r,k}, x⟩) − mean) / scale: a block of products, mean and scale sampled."""

    SAMPLE = 1 << 16

    def __init__(self, width: int, variables: int, degree: int, inputs: str, generator: np.random.Generator) -> None:
        forms = generator.standard_normal((variables, degree, width))
        spread = 1 / math.sqrt(3) if inputs == "uniform" else 1.0
        self.forms = forms / np.linalg.norm(forms, axis=0) / spread
        self.weights = generator.choice([-1.0, 1.0], width) * generator.uniform(0.5, 1.5, width)
        self.mean, self.scale = 0.0, 1.0
        self._on_device: dict[torch.device, tuple[Tensor, Tensor]] = {}
        points = draw_points((self.SAMPLE, variables), inputs, torch.Generator().manual_seed(0), torch.float64)
        values = self(points)
        self.mean, self.scale = float(values.mean()), float(values.std())

    def __call__(self, points: Tensor) -> Tensor:
        if points.device not in self._on_device:
            forms, weights = (on_device(table, points.device) for table in (self.forms.copy(), self.weights))
            self._on_device[points.device] = forms, weights
        forms, weights = self._on_device[points.device]
        rows = points.reshape(-1, points.shape[-1])
        factors = (1 + rows @ forms.flatten(1)).unflatten(1, forms.shape[1:])
        found = factors[:, 0]
        for k in range(1, factors.shape[1]):
            found = found * factors[:, k]
        return ((found @ weights - self.mean) / self.scale).reshape(points.shape[:-1])

    def by_hand(self, row: Sequence[float]) -> float:
        found = []
        for r, weight in enumerate(self.weights.tolist()):
            forms = self.forms[:, :, r].T.tolist()
            found.append(weight * math.prod(1 + math.fsum(w * x for w, x in zip(f, row, strict=True)) for f in forms))
        return (math.fsum(found) - self.mean) / self.scale


def draw_points(
    shape: tuple[int, ...], inputs: str, generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Tensor:
    if inputs == "normal":
        return torch.randn(shape, generator=generator, device=generator.device, dtype=dtype)
    return 2 * torch.rand(shape, generator=generator, device=generator.device, dtype=dtype) - 1


@dataclass(frozen=True)
class SampledRank:
    """`rank` is the median over resamples of the first truncation whose held-out error is at most ε, None where none
    is. `interval`: the least rank that the sample's own tail allows, which is biased low, to the largest held-out one.
    """

    epsilon: float
    rank: int | None
    interval: tuple[int, int | None]


def sampled_ranks(
    function: Callable[[Tensor], Tensor],
    partition: Partition,
    epsilons: Sequence[float],
    inputs: str,
    points: int = 256,
    resamples: int = 3,
    seed: int = 0,
) -> list[SampledRank]:
    """ε-ranks by singular values of the function at random pairs of points, the error measured at held-out ones."""
    generator = torch.Generator().manual_seed(seed)
    curves = [_truncations(function, partition, inputs, points, generator) for _ in range(resamples)]
    found = []
    for epsilon in epsilons:
        held = [_first(out, epsilon) for _, out in curves]
        low = min(_first(inside, epsilon) or 0 for inside, _ in curves)
        reached = sorted(r for r in held if r is not None)
        complete = len(reached) == resamples
        found.append(
            SampledRank(
                epsilon, reached[resamples // 2] if complete else None, (low, reached[-1] if complete else None)
            )
        )
    return found


def _truncations(
    function: Callable[[Tensor], Tensor], partition: Partition, inputs: str, points: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Relative root mean square errors of rank 0, 1, … in the sample, and at half as many points held out."""
    count = points + points // 2
    a = draw_points((count, len(partition.a)), inputs, generator, torch.float64)
    b = draw_points((count, len(partition.b)), inputs, generator, torch.float64)
    x = torch.empty(count, count, partition.sites, dtype=torch.float64)
    x[:, :, list(partition.a)] = a[:, None]
    x[:, :, list(partition.b)] = b[None]
    matrix = torch.cat([function(rows.flatten(0, 1)).view(-1, count) for rows in x.split(32)])
    u, sigma, vt = torch.linalg.svd(matrix[:points, :points])
    usable = int((sigma > points * torch.finfo(torch.float64).eps * sigma[0]).sum())
    left = matrix[points:, :points] @ vt[:usable].T / sigma[:usable]
    right = u[:, :usable].T @ matrix[:points, points:]
    rest = matrix[points:, points:].clone()
    held = [rest.square().sum()]
    for r in range(usable):
        rest -= left[:, r : r + 1] * right[r : r + 1]
        held.append(rest.square().sum())
    out = torch.stack(held)
    tail = torch.cat([sigma.square().flip(0).cumsum(0).flip(0), sigma.new_zeros(1)])
    return (tail / tail[0]).sqrt(), (out / out[0]).sqrt()


def truncated_rank(spectrum: Array, epsilon: float) -> int:
    """The least r with Σ_{k>r} σ_k² ≤ ε²·Σ σ_k²: no function of a smaller separation rank is within ε (Schmidt)."""
    tail = np.append(np.cumsum(np.square(spectrum)[::-1])[::-1], 0.0)
    return int((tail > epsilon**2 * tail[0] * (1 + 1e-12)).sum())


def _first(errors: Tensor, epsilon: float) -> int | None:
    reached = (errors <= epsilon).nonzero()
    return int(reached[0, 0]) if len(reached) else None


def operator_spectrum(left: Array, right: Array, weights: Array) -> Array:
    """The singular values of Σ_r weights_r g_r(a) h_r(b), the largest first, from the Gram matrices of g and of h."""
    return np.linalg.svd(_root(left).T * weights @ _root(right), compute_uv=False).astype(np.float64)


def _with_constant(gram: Array, means: Array) -> Array:
    return np.block([[gram, means[:, None]], [means[None], np.ones((1, 1))]])


def _root(gram: Array) -> Array:
    """R with R·Rᵀ = gram; what rounding left below 0 is cut off."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(values.clip(min=0))
