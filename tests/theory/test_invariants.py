"""Dimensions of invariants and covariants, against ranks of monomials evaluated at random matrices."""

import math
import random
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.theory.invariants import covariants, invariants

from . import modular


def monomials_of_gram(tokens: modular.Matrix, degree: int) -> list[int]:
    """Every monomial of this degree in the entries of X Xᵀ, for the d × n matrix X."""
    gram = modular.times(tokens, modular.transpose(tokens))
    entries = [gram[i][j] for i in range(len(gram)) for j in range(i, len(gram))]
    return [math.prod(chosen) % modular.PRIME for chosen in combinations_with_replacement(entries, degree)]


SMALL = [(d, n, c) for d in (1, 2, 3, 4) for n in (1, 2, 3, 4) for c in (0, 1, 2, 3) if d * c < 12]


@each(("width", "tokens", "degree"), SMALL)
def test_invariants_are_as_many_as_independent_monomials(width, tokens, degree):
    rng = random.Random(1)
    expected = invariants(degree, width, tokens)
    points = [monomials_of_gram(modular.draw(rng, width, tokens), degree) for _ in range(expected + 5)]
    assert modular.rank(points) == expected


@each(("width", "tokens", "degree"), [shape for shape in SMALL if shape[0] * shape[2] < 9])
def test_covariants_are_as_many_as_independent_products(width, tokens, degree):
    rng = random.Random(2)
    expected = covariants(degree, width, tokens)
    rows = []
    for _ in range(expected + 5):
        matrix = modular.draw(rng, width, tokens)
        monomials = monomials_of_gram(matrix, degree)
        rows.append([row[0] * monomial % modular.PRIME for row in matrix for monomial in monomials])
    assert modular.rank(rows) == expected


def test_a_degree_where_rank_two_is_felt_three_times():
    """d = 3, n = 2: det S = 0 takes away the multiples of the determinant, comb(D + c − 4, c − 3) of them."""
    for c in range(3, 12):
        assert invariants(c, 3, 2) == math.comb(6 + c - 1, c) - math.comb(6 + c - 4, c - 3)


def schur_dimension(shape: tuple[int, ...], width: int) -> int:
    """dim S_λ(ℂ^d) by hooks and contents (Stanley): ∏ (d + content)/hook over the boxes."""
    columns = [sum(part > j for part in shape) for j in range(max(shape, default=0))]
    boxes = [(i, j) for i, part in enumerate(shape) for j in range(part)]
    top = math.prod(width + j - i for i, j in boxes)
    return top // math.prod(shape[i] - j + columns[j] - i - 1 for i, j in boxes)


@given(st.integers(0, 8), st.integers(1, 6))
def test_closed_forms_at_both_ends(degree, width):
    entries = width * (width + 1) // 2
    assert invariants(degree, width, 1) == math.comb(width + 2 * degree - 1, 2 * degree)
    assert covariants(degree, width, 1) == math.comb(width + 2 * degree, 2 * degree + 1)
    assert invariants(degree, width, width) == math.comb(entries + degree - 1, degree)
    assert covariants(degree, width, width) == width * math.comb(entries + degree - 1, degree)


@given(st.integers(0, 6), st.integers(1, 5))
def test_sums_over_partitions_reach_the_closed_form(degree, width):
    """The identities behind n ≥ d: Sym^c(Sym²) = ⊕ S_{2λ}, and tensored with ℂ^d by Pieri."""
    entries = width * (width + 1) // 2
    even = [tuple(2 * part for part in shape) for shape in partitions(degree)]
    assert sum(schur_dimension(shape, width) for shape in even) == math.comb(entries + degree - 1, degree)
    one_odd = [shape for shape in partitions(2 * degree + 1) if sum(part % 2 for part in shape) == 1]
    assert sum(schur_dimension(shape, width) for shape in one_odd) == width * math.comb(entries + degree - 1, degree)


@given(st.integers(0, 7), st.integers(1, 5), st.integers(1, 6))
def test_enumeration_over_shapes_filtered_one_by_one(degree, width, tokens):
    short = min(width, tokens)
    even = [shape for shape in partitions(2 * degree) if len(shape) <= short and not any(p % 2 for p in shape)]
    assert invariants(degree, width, tokens) == sum(schur_dimension(shape, width) for shape in even)
    odd = [shape for shape in partitions(2 * degree + 1) if len(shape) <= short and sum(p % 2 for p in shape) == 1]
    assert covariants(degree, width, tokens) == sum(schur_dimension(shape, width) for shape in odd)


@given(st.integers(0, 6), st.integers(1, 6), st.integers(1, 6))
def test_monotone_in_degree_and_tokens(degree, width, tokens):
    for count in (invariants, covariants):
        assert count(degree, width, tokens) <= count(degree + 1, width, tokens)
        assert count(degree, width, tokens) <= count(degree, width, tokens + 1)


def test_outside_the_domain():
    with pytest.raises(OutsideDomain, match="tokens = 0"):
        invariants(2, 3, 0)
    with pytest.raises(OutsideDomain, match="degree = -1"):
        covariants(-1, 3, 2)


def partitions(total, largest=None):
    if total == 0:
        yield ()
        return
    for first in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)
