"""Regression on functions whose separation rank and ε-rank are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import torch

from theodolite.errors import BadInput
from theodolite.partition import Partition
from theodolite.registry import unknown
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.rank_factors import Factors, Monomials, OrthonormalPolynomials, Waves, basis_size
from theodolite.tasks.shared.rank_functions import (
    SampledRank,
    SumOfProducts,
    Teacher,
    draw_points,
    sampled_ranks,
    truncated_rank,
)
from theodolite.theory.cap import polynomial_cap
from theodolite.theory.monomials import maximum_matching

KINDS = ("products", "monomials", "smooth", "rough", "network")
EPSILONS = (0.3, 0.1, 0.03, 0.01)
MOST_VARIABLES = 64
MOST_DEGREE = 20  # beyond it, moments and coefficients of polynomials leave what a float holds
MOST_TERMS = 4096


@dataclass(frozen=True)
class RankFacts:
    """What is known of a target. `separation_rank`, `spectrum` and `epsilon_ranks` are exact, None where nothing is in
    closed form; `upper_bound` holds for all. `sampled` was measured at that many points, resamples and seed."""

    separation_rank: int | None
    upper_bound: int
    spectrum: tuple[float, ...] | None
    epsilon_ranks: dict[float, int] | None
    sampled: tuple[SampledRank, ...]
    points: int
    resamples: int
    seed: int


@register("prescribed-rank", "a function of known separation rank between two groups of variables")
class PrescribedRank(Named):
    """f(x_A, x_B) of `rank` products, x uniform in [−1, 1]^`variables` or normal; `draw` numbers the functions.

    0.5  −0.5  0.25  0.75   (variables = 4, rank = 2: σ₁·g₁(x1, x2)·h₁(x3, x4) + σ₂·g₂(x1, x2)·h₂(x3, x4))
     └──A──┘    └───B──┘ → 0.31

    products    orthonormal polynomials g_r and h_r of total degree `degree`, σ_r ∝ exp(−decay·r): the spectrum is σ
    monomials   `rank` monomials, every variable to a power from 1 to `degree`, coefficients ± about exp(−decay·r)
    smooth      `rank` products of two waves of random direction whose phases move by about `degree`
    rough       the same with heavy-tailed frequencies: the spectrum falls slowly
    network     a block of `rank` products of `degree` linear forms of all variables

    Mean 0 and variance 1. `facts` says what rank and ε-rank the function has.
    """

    kind: str = "products"
    rank: int = 8
    variables: int = 8
    degree: int = 3
    decay: float = 0.0
    partition: str = "left-right"
    inputs: str = "uniform"
    draw: int = 0

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, rank=self.rank, degree=self.degree)
        check_at_least(self.name, 2, variables=self.variables)
        check_at_least(self.name, 0, draw=self.draw)
        if self.kind not in KINDS:
            raise BadInput(f"for the task '{self.name}': {unknown('kind', self.kind, KINDS)}")
        if self.inputs not in ("uniform", "normal"):
            raise BadInput(f"inputs={self.inputs} are unknown to the task '{self.name}': use uniform or normal")
        if not 0 <= self.decay <= 100:
            raise BadInput(f"decay={self.decay} is no rate of the task '{self.name}': use 0 to 100")
        most_of = {"variables": MOST_VARIABLES, "rank": MOST_TERMS, "degree": MOST_DEGREE}
        for field, most in most_of.items():
            value = getattr(self, field)
            if value > most:
                raise BadInput(f"{field}={value} is too large for the task '{self.name}': use {most} or less")
        if self.decay and self.kind not in ("products", "monomials"):
            raise BadInput(f"decay={self.decay} is for products and monomials, not for '{self.kind}': leave it out")
        self._check_room(Partition.parse(self.partition, self.variables))

    def _check_room(self, split: Partition) -> None:
        if self.kind == "products":
            room = basis_size(min(len(split.a), len(split.b)), self.degree)
            if self.rank > room:
                raise BadInput(
                    f"rank={self.rank} is more than the {room} orthonormal polynomials of degree={self.degree} on the "
                    f"smaller side: raise the degree or the variables of the task '{self.name}'"
                )
            most = basis_size(max(len(split.a), len(split.b)), self.degree)
            if most > MOST_TERMS:
                raise BadInput(
                    f"degree={self.degree} in {self.variables} variables takes {most:,} polynomials in the task "
                    f"'{self.name}': lower one of the two"
                )

    @property
    def _target(self) -> Target:
        return Target(**{f.name: getattr(self, f.name) for f in fields(self)})

    @property
    def function(self) -> SumOfProducts | Teacher:
        return draw_function(self._target)

    @property
    def facts(self) -> RankFacts:
        """Computed once for each function, in about a second."""
        return rank_facts(self._target)

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("vector", self.variables, 1, None, None, loss="square", chance=0.0, solved=0.99)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        points = draw_points((members, batch, self.variables), self.inputs, generator)
        targets = self.function(points.double()).float().unsqueeze(-1)
        return Batch(points, targets, torch.ones_like(targets, dtype=torch.bool))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return [self.function.by_hand(row)]


@dataclass(frozen=True)
class Target:
    """The fields of the task, as what a function is drawn from."""

    kind: str
    rank: int
    variables: int
    degree: int
    decay: float
    partition: str
    inputs: str
    draw: int

    @property
    def split(self) -> Partition:
        return Partition.parse(self.partition, self.variables)


@lru_cache(maxsize=64)
def draw_function(target: Target) -> SumOfProducts | Teacher:
    generator = np.random.default_rng([target.draw, target.variables, KINDS.index(target.kind)])
    if target.kind == "network":
        return Teacher(target.rank, target.variables, target.degree, target.inputs, generator)
    left, right = (_factors(target, len(side), generator) for side in (target.split.a, target.split.b))
    weights = np.exp(-target.decay * np.arange(target.rank))
    if target.kind != "products":
        weights = weights * generator.standard_normal(target.rank)
    return SumOfProducts(left, right, weights, target.split)


def _factors(target: Target, variables: int, generator: np.random.Generator) -> Factors:
    rank, degree, inputs = target.rank, target.degree, target.inputs
    if target.kind == "products":
        return OrthonormalPolynomials.draw(rank, variables, degree, inputs, generator)
    if target.kind == "monomials":
        return Monomials(generator.integers(1, degree + 1, (rank, variables)), inputs)
    return Waves.draw(rank, variables, degree, target.kind == "rough", inputs, generator)


@lru_cache(maxsize=64)
def rank_facts(target: Target, points: int = 256, resamples: int = 3, seed: int = 0) -> RankFacts:
    split, function = target.split, draw_function(target)
    sampled = tuple(sampled_ranks(function, split, EPSILONS, target.inputs, points, resamples, seed))
    if isinstance(function, Teacher):
        # A product of D sums u + v has 2^D terms and the mean is one more; no polynomial of degree D exceeds the cap.
        cap = polynomial_cap(target.degree, len(split.a), len(split.b))
        bound = min(target.rank * 2**target.degree + 1, cap)
        return RankFacts(None, bound, None, None, sampled, points, resamples, seed)
    exact = _separation_rank(function)
    spectrum = function.spectrum()
    ranks = {epsilon: truncated_rank(spectrum, epsilon) for epsilon in EPSILONS}
    return RankFacts(exact, exact, tuple(spectrum[:exact].tolist()), ranks, sampled, points, resamples, seed)


def _separation_rank(function: SumOfProducts) -> int:
    """Linearly independent factors: the number of terms whose weight is not 0. Monomials: their maximum matching, the
    mean that is taken off being one more monomial."""
    left, right, present = function.left, function.right, function.weights != 0
    if not (isinstance(left, Monomials) and isinstance(right, Monomials)):
        return int(present.sum())
    both = np.concatenate([left.exponents, right.exponents], axis=1)[present]
    if function.mean:
        both = np.concatenate([both, np.zeros_like(both[:1])])
    first = left.exponents.shape[1]
    return maximum_matching(both.tolist(), Partition(tuple(range(first)), tuple(range(first, both.shape[1]))))
