"""Factors of functions of known separation rank: functions of one side, with means and Gram matrices in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]


def moment(power: int, inputs: str) -> float:
    """E xᵏ for x uniform in [−1, 1], or standard normal."""
    if power % 2:
        return 0.0
    return 1.0 / (power + 1) if inputs == "uniform" else float(math.prod(range(1, power, 2)))


class Factors(Protocol):
    """Functions g_1 … g_R of the variables of one side, with their means and Gram matrix under the inputs' law."""

    @property
    def tables(self) -> tuple[np.ndarray, ...]: ...

    def of(self, x: Tensor, tables: Sequence[Tensor]) -> Tensor:
        """(variable, point) to (factor, point)."""
        ...

    def by_hand(self, row: Sequence[float]) -> list[float]:
        """One point in plain Python, by another formula."""
        ...

    def means(self) -> Array: ...

    def gram(self) -> Array: ...


@dataclass(frozen=True)
class OrthonormalPolynomials:
    """g_r = Σ_k mix[r, k] ∏_i P_{degrees[k, i]}(x_i), P orthonormal under the inputs' law, no constant among them."""

    degrees: np.ndarray  # (basis, variable)
    mix: Array  # (factor, basis), orthonormal rows
    inputs: str

    @classmethod
    def draw(
        cls, factors: int, variables: int, degree: int, inputs: str, generator: np.random.Generator
    ) -> OrthonormalPolynomials:
        """Random ones of total degree 1 … `degree`; as much of each total degree as of any other, if there is room."""
        degrees = total_degrees(variables, degree)
        total = degrees.sum(axis=1)
        share = 1 / np.sqrt(np.bincount(total)[total])
        drawn = generator.standard_normal((factors, len(degrees))) * share
        mix, triangle = np.linalg.qr(drawn.T)
        return cls(degrees, (mix * np.sign(np.diag(triangle))).T.copy(), inputs)

    @property
    def tables(self) -> tuple[np.ndarray, ...]:
        return self.degrees.T.copy(), self.mix

    def of(self, x: Tensor, tables: Sequence[Tensor]) -> Tensor:
        degrees, mix = tables
        values = [torch.ones_like(x), x * (math.sqrt(3) if self.inputs == "uniform" else 1.0)]
        plain = [values[0], x]
        for k in range(1, int(self.degrees.max())):  # the recurrences of Legendre and of Hermite
            if self.inputs == "uniform":
                plain.append(((2 * k + 1) * x * plain[k] - k * plain[k - 1]) / (k + 1))
                values.append(plain[-1] * math.sqrt(2 * k + 3))
            else:
                plain.append(x * plain[k] - k * plain[k - 1])
                values.append(plain[-1] / math.sqrt(math.factorial(k + 1)))
        return mix @ _products(values, degrees)

    def by_hand(self, row: Sequence[float]) -> list[float]:
        explicit = _legendre if self.inputs == "uniform" else _hermite
        basis = [math.prod(explicit(int(k), x) for k, x in zip(term, row, strict=True)) for term in self.degrees]
        return [math.fsum(w * y for w, y in zip(weights, basis, strict=True)) for weights in self.mix.tolist()]

    def means(self) -> Array:
        return np.zeros(len(self.mix))

    def gram(self) -> Array:
        return self.mix @ self.mix.T


@dataclass(frozen=True)
class Monomials:
    """g_r = ∏_i x_i^exponents[r, i], divided by its root mean square."""

    exponents: np.ndarray  # (factor, variable)
    inputs: str

    @property
    def tables(self) -> tuple[np.ndarray, ...]:
        return self.exponents.T.copy(), self.sizes[:, None]

    @cached_property
    def sizes(self) -> Array:
        return np.sqrt([math.prod(moment(2 * int(k), self.inputs) for k in term) for term in self.exponents])

    def of(self, x: Tensor, tables: Sequence[Tensor]) -> Tensor:
        exponents, sizes = tables
        powers = [torch.ones_like(x)]
        for _ in range(int(self.exponents.max())):
            powers.append(powers[-1] * x)
        return _products(powers, exponents) / sizes

    def by_hand(self, row: Sequence[float]) -> list[float]:
        raw = [math.prod(x ** int(k) for k, x in zip(term, row, strict=True)) for term in self.exponents]
        return [y / size for y, size in zip(raw, self.sizes.tolist(), strict=True)]

    def means(self) -> Array:
        return self._moments(self.exponents) / self.sizes

    def gram(self) -> Array:
        return self._moments(self.exponents[:, None] + self.exponents[None]) / np.outer(self.sizes, self.sizes)

    def _moments(self, powers: np.ndarray) -> Array:
        table = np.array([moment(k, self.inputs) for k in range(int(powers.max()) + 1)])
        return table[powers].prod(axis=-1)


@dataclass(frozen=True)
class Waves:
    """g_r = √2·(cos(⟨frequencies_r, x⟩ + phases_r) − its mean): many make a Gaussian process."""

    frequencies: Array  # (factor, variable)
    phases: Array
    inputs: str

    @classmethod
    def draw(
        cls, factors: int, variables: int, degree: int, rough: bool, inputs: str, generator: np.random.Generator
    ) -> Waves:
        """Phases that move by about `degree`. Frequencies normal: a kernel exp(−|x − x′|²/2ℓ²); or Student's t of
        three degrees of freedom: Matérn's kernel of smoothness 3/2, whose functions have one derivative."""
        spread = 1 / math.sqrt(3) if inputs == "uniform" else 1.0
        drawn = generator.standard_normal((factors, variables)) * (degree / (2 * spread * math.sqrt(variables)))
        if rough:
            drawn /= np.sqrt(generator.chisquare(3, (factors, 1)) / 3)
        return cls(drawn, generator.uniform(0, 2 * math.pi, factors), inputs)

    @property
    def tables(self) -> tuple[np.ndarray, ...]:
        return self.frequencies, self.phases[:, None], self.means_of_cosines[:, None]

    @cached_property
    def means_of_cosines(self) -> Array:
        return np.cos(self.phases) * self._damping(self.frequencies)

    def of(self, x: Tensor, tables: Sequence[Tensor]) -> Tensor:
        frequencies, phases, means = tables
        return math.sqrt(2) * ((frequencies @ x + phases).cos() - means)

    def by_hand(self, row: Sequence[float]) -> list[float]:
        found = []
        for w, phase, mean in zip(self.frequencies.tolist(), self.phases, self.means_of_cosines, strict=True):
            angle = math.fsum(a * x for a, x in zip(w, row, strict=True))
            turned = math.cos(angle) * math.cos(phase) - math.sin(angle) * math.sin(phase)
            found.append(math.sqrt(2) * (turned - mean))
        return found

    def means(self) -> Array:
        return np.zeros(len(self.phases))

    def gram(self) -> Array:
        """2·Cov(cos u, cos v) = E cos(u + v) + E cos(u − v) − 2·E cos u·E cos v."""
        found = -2 * np.outer(self.means_of_cosines, self.means_of_cosines)
        for sign in (1, -1):
            w = self.frequencies[:, None] + sign * self.frequencies[None]
            phase = self.phases[:, None] + sign * self.phases[None]
            found += np.cos(phase) * self._damping(w)
        return found

    def _damping(self, w: Array) -> Array:
        """E exp(i⟨w, x⟩), which is real."""
        if self.inputs == "uniform":
            return np.sinc(w / math.pi).prod(axis=-1)
        return np.exp(-np.square(w).sum(axis=-1) / 2)


def _products(values: Sequence[Tensor], degrees: Tensor) -> Tensor:
    """∏_i values[degrees[i, k]][i], for every k: (factor, point)."""
    table = torch.stack(tuple(values), dim=1)  # (variable, degree, point)
    found = table[0].index_select(0, degrees[0])
    for i in range(1, len(degrees)):
        found = found * table[i].index_select(0, degrees[i])
    return found


def total_degrees(variables: int, degree: int) -> np.ndarray:
    """Every exponent vector of total degree 1 … `degree`, the lower degrees first."""
    found = []
    for total in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(variables), total):
            found.append([chosen.count(i) for i in range(variables)])
    return np.array(found)


def basis_size(variables: int, degree: int) -> int:
    """How many exponent vectors `total_degrees` has."""
    return math.comb(variables + degree, degree) - 1


def _legendre(k: int, x: float) -> float:
    terms = (
        (-1) ** j * math.comb(k, j) * math.comb(2 * k - 2 * j, k) * x ** (k - 2 * j) / 2**k for j in range(k // 2 + 1)
    )
    return math.sqrt(2 * k + 1) * math.fsum(terms)


def _hermite(k: int, x: float) -> float:
    factorial = math.factorial
    terms = (
        (-1) ** j * factorial(k) / (factorial(j) * factorial(k - 2 * j) * 2**j) * x ** (k - 2 * j)
        for j in range(k // 2 + 1)
    )
    return math.fsum(terms) / math.sqrt(factorial(k))
