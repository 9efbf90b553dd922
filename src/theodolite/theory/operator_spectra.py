"""Functions of two variables whose singular values are known, and what their ε-ranks must therefore be.

Every entry gives tail(r), the relative d₂ error of the best function of separation rank r; its least r with tail(r) ≤ ε
is the ε-rank. Inputs of each side are independent and have the law named.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from theodolite.errors import BadInput
from theodolite.registry import Registry

Law = Literal["normal", "uniform", "signs"]


@dataclass(frozen=True)
class KnownSpectrum:
    formula: str
    inputs: Law  # normal: N(0, 1); uniform: over [0, 1]; signs: ±1
    energy: float  # the expectation of y²
    tail: Callable[[int], float]
    mean_tail: Callable[[int], float] | None = None  # the relative d₁ error, where that is known too
    variables: int = 1  # of each side
    source: str = ""


def epsilon_rank_of(known: KnownSpectrum, epsilon: float) -> int:
    """The least r with tail(r) ≤ ε."""
    return _first(known.tail, epsilon)


def mean_epsilon_rank_of(known: KnownSpectrum, epsilon: float) -> int | None:
    """The same under d₁, where it is known."""
    return None if known.mean_tail is None else _first(known.mean_tail, epsilon)


def white_noise_rank(epsilon: float) -> float:
    """The ε-rank of a large square matrix of independent entries, as a share of its side, under d₂.

    Its singular values follow the quarter circle law on [0, 2]; those below s have the share (s√(4−s²)/2 +
    2·arcsin(s/2))/π of their number and (2·arcsin(s/2) − s√(4−s²)(2−s²)/4)/π of their energy.
    """
    if not 0 < epsilon < 1:
        raise BadInput(f"epsilon {epsilon} is not between 0 and 1: it is an error relative to the function's size")
    low, high = 0.0, 2.0
    for _ in range(80):
        s = (low + high) / 2
        root = s * math.sqrt(4 - s * s)
        energy = (2 * math.asin(s / 2) - root * (2 - s * s) / 4) / math.pi
        low, high = (s, high) if energy < epsilon**2 else (low, s)
    return 1 - (low * math.sqrt(4 - low * low) / 2 + 2 * math.asin(low / 2)) / math.pi


def smoothness_exponent(smoothness: float, variables: int) -> float:
    """ε-rank ~ ε^−x of a generic function of finite smoothness s with `variables` on each side: x = variables/s.

    Frequencies up to Ω of one side are Ω^variables products, and what lies above has root mean square Ω^−s.
    """
    if smoothness <= 0 or variables < 1:
        raise BadInput(f"smoothness {smoothness} with {variables} variables a side: both must be positive")
    return variables / smoothness


def _first(tail: Callable[[int], float], epsilon: float) -> int:
    if not 0 < epsilon < 1:
        raise BadInput(f"epsilon {epsilon} is not between 0 and 1: it is an error relative to the function's size")
    r = 0
    while tail(r) > epsilon:
        r += 1
    return r


def _squares(total: float, value: Callable[[int], float]) -> Callable[[int], float]:
    """The tail of singular values value(1), value(2), … whose squares sum to `total`."""
    return lambda r: math.sqrt(max(0.0, 1 - math.fsum(value(k) ** 2 for k in range(1, r + 1)) / total))


def _gaussian_ratio(scale: float) -> float:
    """Ratio of successive singular values of exp(−(a−b)²/(2·scale²)) under N(0, 1)."""
    alpha, beta = 0.25, 0.5 / scale**2
    return beta / (alpha + beta + math.sqrt(alpha**2 + 2 * alpha * beta))


def _poisson(ratio: float) -> Callable[[int], float]:
    """1, ρ, ρ, ρ², ρ², …: both waves of each frequency."""
    return _squares((1 + ratio**2) / (1 - ratio**2), lambda k: ratio ** (k // 2))


GAUSSIAN_SCALE, MEHLER_RATIO, POISSON_RATIO, FLAT_TERMS, STEPS = 0.5, 0.3, 0.7, 8, 8

known_spectra: Registry[KnownSpectrum] = Registry("known spectrum")

for _name, _known in {
    "gaussian": KnownSpectrum(
        "exp(−(a−b)²/(2·0.5²))",
        "normal",
        1 / math.sqrt(1 + 4 / GAUSSIAN_SCALE**2),
        lambda r: _gaussian_ratio(GAUSSIAN_SCALE) ** r,
        source="Rasmussen and Williams, Section 4.3.1",
    ),
    "mehler": KnownSpectrum(
        "Σ_k ρ^k He_k(a) He_k(b)/k!, ρ = 0.3",
        "normal",
        1 / (1 - MEHLER_RATIO**2),
        lambda r: MEHLER_RATIO**r,
        source="Mehler 1866",
    ),
    "brownian": KnownSpectrum("min(a, b)", "uniform", 1 / 6, _squares(1 / 6, lambda k: ((k - 0.5) * math.pi) ** -2)),
    "bridge": KnownSpectrum("min(a, b) − a·b", "uniform", 1 / 90, _squares(1 / 90, lambda k: (k * math.pi) ** -2)),
    "order": KnownSpectrum("1 where a < b", "uniform", 1 / 2, _squares(1 / 2, lambda k: 1 / ((k - 0.5) * math.pi))),
    "poisson": KnownSpectrum(
        "(1−ρ²)/(1 − 2ρ·cos 2π(a−b) + ρ²), ρ = 0.7",
        "uniform",
        (1 + POISSON_RATIO**2) / (1 - POISSON_RATIO**2),
        _poisson(POISSON_RATIO),
    ),
    "flat": KnownSpectrum(
        "Σ_k a_k·b_k over 8 signs",
        "signs",
        FLAT_TERMS,
        lambda r: math.sqrt(max(0.0, 1 - r / FLAT_TERMS)),
        variables=FLAT_TERMS,
    ),
    "steps": KnownSpectrum(
        "1 where a and b lie in the same eighth",
        "uniform",
        1 / STEPS,
        lambda r: math.sqrt(max(0.0, 1 - r / STEPS)),
        mean_tail=lambda r: max(0.0, 1 - r / STEPS),
    ),
}.items():
    known_spectra.add(_name, _known)
