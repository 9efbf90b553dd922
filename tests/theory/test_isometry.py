"""Bounds on restricted isometry constants, against random matrices and against equiangular columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.errors import OutsideDomain
from theodolite.theory.isometry import equiangular, least_constant, welch


def constant(matrix: np.ndarray, order: int) -> float:
    """By singular values of every choice of columns."""
    sizes = [
        np.linalg.svd(matrix[:, list(chosen)], compute_uv=False) ** 2
        for chosen in itertools.combinations(range(matrix.shape[1]), order)
    ]
    low, high = min(s[-1] for s in sizes), max(s[0] for s in sizes)
    return (high - low) / (high + low)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(2, 4), st.integers(0, 10**6))
def test_no_matrix_lies_below_the_least_constant(rank, more, order, seed):
    random = np.random.default_rng(seed)
    matrix = random.standard_normal((rank, rank + more)) * random.uniform(0.5, 2, rank + more)
    order = min(order, rank + more)
    if order > rank:
        assert least_constant(rank + more, rank, order) == 1
    else:
        assert constant(matrix, order) >= least_constant(rank + more, rank, order) - 1e-12


@pytest.mark.parametrize("prime", [5, 13, 17, 29])
def test_equiangular_columns_attain_the_least_constant_of_order_two(prime):
    columns = equiangular(prime)
    assert columns.shape == ((prime + 1) // 2, prime + 1)
    gram = columns.T @ columns
    off = np.abs(gram - np.diag(np.diag(gram)))[~np.eye(prime + 1, dtype=bool)]
    assert np.allclose(np.diag(gram), 1)
    assert np.allclose(off, prime**-0.5)
    assert constant(columns, 2) == pytest.approx(least_constant(prime + 1, (prime + 1) // 2, 2))
    assert welch(prime + 1, (prime + 1) // 2) == pytest.approx(prime**-0.5)


def test_what_can_be_orthogonal_has_constant_nought():
    assert least_constant(5, 5, 3) == welch(4, 6) == least_constant(9, 3, 1) == 0


@pytest.mark.parametrize("prime", [2, 7, 9, 21, 25])
def test_other_numbers_give_no_symmetric_conference_matrix(prime):
    with pytest.raises(OutsideDomain, match=f"prime = {prime}"):
        equiangular(prime)


def test_an_order_beyond_the_columns_is_refused():
    with pytest.raises(OutsideDomain, match="order = 7"):
        least_constant(6, 3, 7)
