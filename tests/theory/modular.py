"""Small exact evaluations over a prime field in plain integers, the rank by python-flint: the tests' second opinion."""

from __future__ import annotations

import random

from flint import nmod_mat

PRIME = (1 << 61) - 1

Matrix = list[list[int]]


def draw(rng: random.Random, rows: int, columns: int) -> Matrix:
    return [[rng.randrange(PRIME) for _ in range(columns)] for _ in range(rows)]


def vector(rng: random.Random, size: int) -> list[int]:
    return draw(rng, 1, size)[0]


def times(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [[sum(x * y for x, y in zip(row, column, strict=True)) % PRIME for column in columns] for row in a]


def apply(a: Matrix, x: list[int]) -> list[int]:
    return [sum(p * q for p, q in zip(row, x, strict=True)) % PRIME for row in a]


def plus(a: Matrix, b: Matrix) -> Matrix:
    return [[(x + y) % PRIME for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def transpose(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def rank(a: Matrix, prime: int = PRIME) -> int:
    return nmod_mat(a, prime).rank() if a and a[0] else 0


def separation_rank(function, partition, features: int, points: int, rng: random.Random) -> int:
    """Rank of the table of function(x^1 … x^N) over random points for the A tokens and for the B tokens."""
    a = [draw(rng, len(partition.a), features) for _ in range(points)]
    b = [draw(rng, len(partition.b), features) for _ in range(points)]

    def value(left: Matrix, right: Matrix) -> int:
        tokens = dict(zip(partition.a, left, strict=True)) | dict(zip(partition.b, right, strict=True))
        return function([tokens[site] for site in range(partition.sites)])

    return rank([[value(left, right) for right in b] for left in a])
