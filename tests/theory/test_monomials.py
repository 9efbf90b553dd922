"""Ranks of sums of monomials, against matrices of coefficients, another matching, enumeration and simulation."""

from __future__ import annotations

import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.partition import Partition
from theodolite.theory.monomials import (
    largest_epsilon_rank,
    matched_share,
    maximum_matching,
    orthogonal_share,
    share_of_full_rank,
)

PARTITIONS = ("left-right", "interleaved", "0|1,2,3")


def coefficient_rank(exponents: list[list[int]], coefficients: list[int], partition: str) -> int:
    """sympy expands the sum and reads the matrix of its coefficients; its rank is over the rationals."""
    split = Partition.parse(partition, len(exponents[0]))
    x = sympy.symbols(f"x:{len(exponents[0])}")
    terms = zip(coefficients, exponents, strict=True)
    total = sum(a * sympy.prod(v**k for v, k in zip(x, term, strict=True)) for a, term in terms)
    read: dict[tuple, dict[tuple, int]] = {}
    for powers, coefficient in sympy.Poly(total, *x).terms():
        row, column = (tuple(powers[i] for i in side) for side in (split.a, split.b))
        read.setdefault(row, {})[column] = coefficient
    columns = sorted({column for row in read.values() for column in row})
    return sympy.Matrix([[row.get(column, 0) for column in columns] for row in read.values()]).rank()


@each("partition", PARTITIONS)
@each(("terms", "largest"), [(3, 2), (6, 2), (6, 4), (9, 3)])
def test_random_coefficients_give_the_rank_of_the_maximum_matching(terms, largest, partition):
    rng = random.Random(f"{terms} {largest} {partition}")
    below = 0
    for _ in range(3):
        exponents = [[rng.randint(1, largest) for _ in range(4)] for _ in range(terms)]
        coefficients = [rng.randint(1, 10**9) for _ in range(terms)]
        matching = maximum_matching(exponents, partition)
        assert coefficient_rank(exponents, coefficients, partition) == matching
        assert coefficient_rank(exponents, [1] * terms, partition) <= matching
        below += matching < terms
    assert below or largest == 4


def test_the_example_of_the_source_and_a_product_of_sums():
    assert maximum_matching([[1, 1], [2, 1]]) == 1  # xy + x²y = (x + x²)y
    grid = [list(powers) for powers in itertools.product((1, 2), repeat=4)]
    assert maximum_matching(grid) == 4
    assert coefficient_rank(grid, [1] * 16, "left-right") == 1, "a product of sums: coefficients that are not generic"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=14), st.sampled_from(PARTITIONS))
def test_the_matching_is_the_one_another_library_finds(exponents, partition):
    split = Partition.parse(partition, 4)
    graph = nx.Graph(
        (("A", tuple(term[i] for i in split.a)), ("B", tuple(term[i] for i in split.b))) for term in exponents
    )
    assert maximum_matching(exponents, partition) == len(nx.max_weight_matching(graph, maxcardinality=True))


@pytest.mark.parametrize(("terms", "largest", "a", "b"), [(2, 2, 1, 1), (2, 3, 1, 1), (3, 2, 1, 2), (2, 2, 2, 1)])
def test_the_share_of_full_rank_is_that_of_all_members(terms, largest, a, b):
    monomials = list(itertools.product(range(1, largest + 1), repeat=a + b))
    split = Partition(tuple(range(a)), tuple(range(a, a + b)))
    members = list(itertools.product(monomials, repeat=terms))
    full = sum(maximum_matching(member, split) == terms for member in members)
    assert share_of_full_rank(terms, largest, a, b) == pytest.approx(full / len(members))
    assert share_of_full_rank(largest**a + 1, largest, a, b) == 0


@pytest.mark.parametrize("density", [0.3, 1.0, 2.0, 3.5])
def test_karp_and_sipsers_law_is_that_of_large_random_members(density):
    parts, generator = 3000, np.random.default_rng(5)
    drawn = generator.integers(1, parts + 1, (round(density * parts), 2))
    assert maximum_matching(drawn.tolist()) / parts == pytest.approx(matched_share(density), abs=0.02)


def test_sparse_members_lose_the_terms_that_share_a_part():
    """To second order in the density c: each side loses c²/2 of the parts."""
    assert matched_share(0.01) == pytest.approx(0.01 - 0.01**2, rel=1e-3)


@given(st.integers(1, 40), st.sampled_from([0.5, 0.3, 0.1, 0.25]), st.randoms(use_true_random=False))
def test_no_spectrum_has_a_larger_epsilon_rank_than_the_flat_one(rank, epsilon, rng):
    def epsilon_rank(squares: list[float]) -> int:
        squares = sorted(squares)
        allowed = epsilon**2 * math.fsum(squares) * (1 + 1e-12)
        return next(len(squares) - m for m in range(len(squares), -1, -1) if math.fsum(squares[:m]) <= allowed)

    assert epsilon_rank([1.0] * rank) == largest_epsilon_rank(rank, epsilon)
    assert epsilon_rank([rng.random() for _ in range(rank)]) <= largest_epsilon_rank(rank, epsilon)


def test_from_one_over_epsilon_squared_on_no_function_has_its_rank_as_epsilon_rank():
    assert [largest_epsilon_rank(rank, 0.1) for rank in (8, 99, 100, 101)] == [8, 99, 99, 100]


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
def test_many_orthogonal_terms_keep_the_share_that_simulation_keeps(epsilon):
    squares = np.sort(np.random.default_rng(1).standard_normal(200_000) ** 2)
    dropped = int((np.cumsum(squares) <= epsilon**2 * squares.sum()).sum())
    assert 1 - dropped / len(squares) == pytest.approx(orthogonal_share(epsilon), abs=0.004)


@pytest.mark.parametrize(
    "call",
    [
        lambda: maximum_matching([[1, 2], [1]]),
        lambda: maximum_matching([[1, -1]]),
        lambda: matched_share(0.0),
        lambda: orthogonal_share(1.0),
        lambda: largest_epsilon_rank(3, 0.0),
        lambda: share_of_full_rank(0, 2, 1, 1),
    ],
)
def test_outside_the_domain_is_said(call):
    with pytest.raises(OutsideDomain):
        call()
