"""How likely is it that a measured rank R is below the rank of almost all real weights? Every source of error counted.

Suppose that rank is larger: some minor of R + 1 rows of y's table of coefficients, a row for each monomial of A and a
column for each of B, is a polynomial in the weights, with integer coefficients, that is not 0. A draw still finds at
most R only if

- the prime divides all of its coefficients. They are at most (Y/(R+1))^(R+1), Y the sum of all coefficients of y's
  terms in absolute value: a minor's terms are at most the product of its rows' sums, and the mean bounds the product.
  Of primes above P at most log(that)/log P divide it, and the draw rule gives each the gap to its successor as weight;
- or the drawn weights are a zero of it modulo p: at most (R+1)·(degree of y in the weights)/p (Schwartz–Zippel);
- or the drawn points miss some of the function's rank: add them pair by pair; while the rank is short, the minor that
  the new pair borders is a polynomial in it of degree at most 2·degree, not 0, so a pair fails with probability at most
  2·degree/p, and s = K − R of the K pairs failed: at most binom(K, s)·(2·degree/p)^s.

Draws with fresh primes, weights and points are independent, so their bounds multiply. The draw rule counts as chance.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from theodolite.field.draw import PRIMES_FROM, PRIMES_TO
from theodolite.field.modulus import prime_below

Covered = tuple[str, ...]  # of points, weights, primes


@dataclass(frozen=True)
class Drawn:
    """One draw: its points a side, its prime, and what bounds the other errors; None where nothing does."""

    points: int
    prime: int
    weight_degree: int | None = None
    coefficients_log2: float | None = None  # log₂ Y, where the prime was drawn


def missed_rank(rank: int, degree: int, draws: Sequence[Drawn]) -> tuple[float, Covered]:
    """The chance that all draws find at most `rank` where it is larger, and what this number counts."""
    weights = all(draw.weight_degree is not None for draw in draws)
    primes = weights and all(draw.coefficients_log2 is not None for draw in draws)
    total = 0.0
    for draw in draws:
        one = by_points(draw.points, rank, degree, draw.prime)
        if weights and draw.weight_degree is not None:
            one += by_weights(rank, draw.weight_degree, draw.prime)
        if primes and draw.coefficients_log2 is not None:
            one += by_primes(rank, draw.coefficients_log2)
        total += math.log(min(1.0, one))
    covered = ("points", *(["weights"] if weights else []), *(["primes"] if primes else []))
    return max(math.exp(total), sys.float_info.min), covered  # 0 is kept for what is proven


def by_points(points: int, rank: int, degree: int, prime: int) -> float:
    """That drawn points miss some of the function's rank; 1 when there are no surplus points."""
    surplus = points - rank
    if surplus <= 0 or 2 * degree >= prime:
        return 1.0
    choices = math.lgamma(points + 1) - math.lgamma(surplus + 1) - math.lgamma(points - surplus + 1)
    exponent = min(0.0, choices + surplus * math.log(2 * max(degree, 1) / prime))
    return max(math.exp(exponent), sys.float_info.min)


def by_weights(rank: int, weight_degree: int, prime: int) -> float:
    """That drawn weights have less rank than almost all others modulo the prime."""
    return min(1.0, (rank + 1) * weight_degree / prime)


def by_primes(rank: int, coefficients_log2: float) -> float:
    """That almost all weights have less rank modulo the drawn prime than over the reals."""
    size = rank + 1
    bits = size * (coefficients_log2 - math.log2(size))
    shares = _shares()
    divisors = max(0, math.floor(bits / math.log2(prime_below(PRIMES_FROM))))
    return float(shares[:divisors].sum()) if divisors < len(shares) else 1.0


@functools.cache
def _shares() -> np.ndarray:
    """The chance of each prime that the draw rule gives, the largest first: the gap to its successor over the range."""
    low, high = prime_below(PRIMES_FROM), PRIMES_TO
    sieve = np.ones(high, dtype=bool)
    sieve[:2] = False
    for k in range(2, math.isqrt(high) + 1):
        if sieve[k]:
            sieve[k * k :: k] = False
    primes = np.flatnonzero(sieve)
    edges = np.append(primes[primes >= low], high - 1)
    # a number n in [from, to) gives the largest prime below n
    counts = np.diff(np.clip(edges + 1, PRIMES_FROM, PRIMES_TO))
    return np.sort(counts)[::-1] / (PRIMES_TO - PRIMES_FROM)
