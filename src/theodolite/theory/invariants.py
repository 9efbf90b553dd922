"""How many linearly independent polynomials in S = X Xᵀ there are, X being d × n (n tokens of width d).

Over the orthogonal group O(n) acting on the tokens, the polynomials in S are the invariants of X, and the functions
q(S)·x^i are the i-th components of the equivariant maps X ↦ ℝⁿ. Both are counted by Schur functors S_λ(ℂ^d); the
proof is in docs/cap.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from theodolite.theory.domain import whole


def invariants(degree: int, width: int, tokens: int) -> int:
    """h_n(c): dimension of the polynomials of degree c in the entries of S, a d × d symmetric matrix of rank ≤ n.

    The sum of dim S_{2λ}(ℂ^d) over the partitions λ of c into at most min(n, d) parts.
    """
    whole("degree", degree, 0)
    if whole("tokens", tokens) == 1:
        return math.comb(whole("width", width) + 2 * degree - 1, 2 * degree)
    if tokens >= whole("width", width):
        return math.comb(_entries(width) + degree - 1, degree)
    return _sum_over_even(degree, width, tokens)


def covariants(degree: int, width: int, tokens: int) -> int:
    """a_n(k): dimension of the span of q(S)·x^i_p over all p and all q of degree k, x^i one of the n tokens.

    The sum of dim S_λ(ℂ^d) over the partitions λ of 2k + 1 into at most min(n, d) parts, exactly one of them odd.
    Those are λ = 2ν minus one box, ν a partition of k + 1, the box at the end of a row longer than the next.
    """
    whole("degree", degree, 0)
    if whole("tokens", tokens) == 1:
        return math.comb(whole("width", width) + 2 * degree, 2 * degree + 1)
    if tokens >= whole("width", width):
        return width * math.comb(_entries(width) + degree - 1, degree)
    return _sum_over_one_odd(degree, width, tokens)


@cache
def _sum_over_even(degree: int, width: int, tokens: int) -> int:
    return sum(_schur([2 * part for part in shape], width, tokens) for shape in _partitions(degree, tokens))


@cache
def _sum_over_one_odd(degree: int, width: int, tokens: int) -> int:
    total = 0
    for shape in _partitions(degree + 1, tokens):
        doubled = [2 * part for part in shape] + [0]
        for row in range(tokens):
            if doubled[row] > doubled[row + 1]:
                doubled[row] -= 1
                total += _schur(doubled[:tokens], width, tokens)
                doubled[row] += 1
    return total


def _entries(width: int) -> int:
    return width * (width + 1) // 2


def _schur(shape: list[int], width: int, rows: int) -> int:
    """∏_{i<j≤d} (λ_i − λ_j + j − i)/(j − i); the factors with j > rows are collected into one binomial a row."""
    beyond = width - rows
    product = 1
    for i, part in enumerate(shape):
        product *= math.comb(part + width - 1 - i, beyond)
        for j in range(i + 1, rows):
            product *= part - shape[j] + j - i
    return product // _schur_denominator(width, rows)


@cache
def _schur_denominator(width: int, rows: int) -> int:
    return math.prod(math.comb(width - 1 - i, width - rows) * math.factorial(rows - 1 - i) for i in range(rows))


def _partitions(total: int, rows: int, largest: int | None = None) -> Iterator[list[int]]:
    """Partitions of `total` into `rows` parts, zeros allowed, each at most `largest`, in falling order."""
    largest = total if largest is None else min(largest, total)
    if rows == 1:
        if total <= largest:
            yield [total]
        return
    for first in range(largest, -(-total // rows) - 1, -1):
        for rest in _partitions(total - first, rows - 1, first):
            yield [first, *rest]
