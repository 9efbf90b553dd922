"""Sums of monomials: which have a separation rank as large as their number of terms, and how many of them do.

Every monomial a·x^α is an edge between α restricted to side A and α restricted to side B. Monomials are linearly
independent functions, so the separation rank is the rank of the matrix of the coefficients, rows for A-exponents and
columns for B-exponents. A k×k minor is a signed sum of products of coefficients over the perfect matchings of its rows
with its columns; different matchings use different sets of edges, so nothing cancels identically, and the minor is 0
as a polynomial in the coefficients exactly where there is no such matching (Edmonds). A polynomial that is not 0
vanishes only on a set of measure 0. Hence **the rank of almost all members is the maximum matching, and no member
exceeds it**. It equals the number of terms exactly where no two terms share their A-part and no two their B-part; the
matrix is then a diagonal with rows and columns reordered, and every choice of coefficients other than 0 has that rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from theodolite.errors import OutsideDomain
from theodolite.partition import Partition
from theodolite.theory.domain import whole


def maximum_matching(exponents: Sequence[Sequence[int]], partition: str | Partition = "left-right") -> int:
    """The separation rank of Σ_l a_l ∏_i x_i^exponents[l][i] for almost all coefficients, and the most for any."""
    import numpy as np
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not exponents:
        return 0
    sites = len(exponents[0])
    for term in exponents:
        if len(term) != sites:
            raise OutsideDomain(f"the monomials have {sites} and {len(term)} exponents: give all the same number")
        for exponent in term:
            whole("exponent", int(exponent), least=0)
    split = Partition.parse(partition, sites)
    rows: dict[tuple[int, ...], int] = {}
    columns: dict[tuple[int, ...], int] = {}
    edges = {
        (
            rows.setdefault(tuple(int(term[i]) for i in split.a), len(rows)),
            columns.setdefault(tuple(int(term[i]) for i in split.b), len(columns)),
        )
        for term in exponents
    }
    of_row, of_column = zip(*sorted(edges), strict=True)
    graph = coo_matrix((np.ones(len(edges)), (of_row, of_column)), shape=(len(rows), len(columns))).tocsr()
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


def share_of_full_rank(terms: int, largest: int, variables_a: int, variables_b: int) -> float:
    """The share of sums of `terms` monomials, exponents uniform in 1 … `largest`, whose rank is `terms`.

    The birthday problem on each side: all A-parts differ, of which there are largest^variables_a, and all B-parts.
    """
    whole("terms", terms)
    whole("largest", largest)
    log = 0.0
    for variables in (variables_a, variables_b):
        parts = largest ** whole("variables", variables)
        if terms > parts:
            return 0.0
        log += math.fsum(math.log1p(-i / parts) for i in range(terms))
    return math.exp(log)


def matched_share(density: float) -> float:
    """Rank over the number N of parts a side has, where N is large and the terms are density·N, drawn uniformly.

    Karp and Sipser's law of the maximum matching of a sparse random graph, on its bipartite kind:
    2 − (γ + γ′ + γγ′)/c with γ the smallest root of γ = c·exp(−c·exp(−γ)) and γ′ = c·exp(−γ).
    """
    if not 0 < density < math.inf:
        raise OutsideDomain(f"density = {density!r} is outside the domain: pass a number above 0")
    small = 0.0
    for _ in range(100_000):  # from below the iteration rises to the smallest root
        following = density * math.exp(-density * math.exp(-small))
        if abs(following - small) <= 1e-15 * max(1.0, following):
            break
        small = following
    large = density * math.exp(-small)
    return 2.0 - (small + large + small * large) / density


def largest_epsilon_rank(rank: int, epsilon: float) -> int:
    """The largest ε-rank that a function of this separation rank can have, attained where its spectrum is flat.

    The smallest m of R squared singular values add up to at most m/R of all, so those with m/R ≤ ε² can go. From
    R = 1/ε² on, no function has an ε-rank as large as its separation rank.
    """
    whole("rank", rank)
    exact = Fraction(epsilon).limit_denominator(10**12)
    if not 0 < exact < 1:
        raise OutsideDomain(f"epsilon = {epsilon!r} is outside the domain: pass a number between 0 and 1")
    return rank - int(rank * exact * exact)


def orthogonal_share(epsilon: float) -> float:
    """ε-rank over the number of terms, where the terms are many, orthogonal, and have normal coefficients.

    What is left out are the coefficients below t in size, with E[a²; |a| < t] = ε²: P(|a| > t) remain.
    """
    if not 0 < epsilon < 1:
        raise OutsideDomain(f"epsilon = {epsilon!r} is outside the domain: pass a number between 0 and 1")
    low, high = 0.0, 40.0
    for _ in range(200):
        t = (low + high) / 2
        inside = math.erf(t / math.sqrt(2)) - t * math.sqrt(2 / math.pi) * math.exp(-t * t / 2)
        low, high = (t, high) if inside < epsilon**2 else (low, t)
    return math.erfc(low / math.sqrt(2))
