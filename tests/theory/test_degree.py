"""The arithmetic of degrees against brute force, and the caps of attention against dimensions counted by rank."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.theory.cap import attention_cap, homogeneous_cap
from theodolite.theory.degree import (
    COUNTS,
    attention_exponent,
    best_degree,
    best_mixed,
    best_real_degree,
    connected_exponent,
    log_degree_per_matrix,
    matrices_per_block,
)
from theodolite.theory.gated_cap import gated_attention_cap, shared_degrees


def test_each_count_of_matrices_has_its_own_best_degree():
    assert [best_degree(count) for count in COUNTS] == [2, 3, 4]
    for count in COUNTS:
        gains = {d: math.log(d) / (d + COUNTS.index(count) - 1) for d in range(2, 200)}
        assert best_degree(count) == max(gains, key=gains.__getitem__)
    assert math.isclose(log_degree_per_matrix(2), log_degree_per_matrix(4))  # 2² = 4 for four matrices either way


def test_the_best_real_degree_is_a_maximum():
    assert math.isclose(best_real_degree("d"), math.e, rel_tol=1e-9)
    for count in ("d", "d+1"):
        best = best_real_degree(count)
        grid = np.linspace(1.01, 12, 20_001)
        assert abs(grid[np.argmax([log_degree_per_matrix(float(d), count) for d in grid])] - best) < 1e-3
    falling = [log_degree_per_matrix(float(d), "d-1") for d in np.linspace(1.001, 6, 500)]
    assert best_real_degree("d-1") == 1
    assert all(a > b for a, b in itertools.pairwise(falling))


@each("count", COUNTS)
@each("total", range(1, 11))
def test_the_best_mixed_degrees_are_the_best_of_all_multisets(count, total):
    more = COUNTS.index(count) - 1
    every = [
        multiset
        for size in range(1, total + 1)
        for multiset in itertools.combinations_with_replacement(range(total + 1, 1, -1), size)
        if sum(d + more for d in multiset) == total
    ]
    if not every:
        with pytest.raises(OutsideDomain, match="total"):
            best_mixed(total, count)
        return
    most = max(map(math.prod, every))
    found = best_mixed(total, count)
    assert {math.prod(m) for m in found} == {most}
    assert all(sum(d + more for d in m) == total for m in found)
    assert set(found) == {m for m in every if math.prod(m) == most}


def test_mixed_degrees_beat_any_one_degree_where_three_does_not_divide():
    assert best_mixed(12) == ((3, 3, 3, 3),)
    assert best_mixed(600) == ((3,) * 200,)
    assert best_mixed(11) == ((3, 3, 3, 2),)
    assert best_mixed(10) == ((4, 3, 3), (3, 3, 2, 2))


def test_wrong_arguments_are_refused_by_name():
    for call in (lambda: matrices_per_block(3, "2d"), lambda: log_degree_per_matrix(1), lambda: best_mixed(0)):
        with pytest.raises(OutsideDomain, match=r"count|degree|total"):
            call()


@pytest.mark.parametrize("degrees", [(2,), (3,), (4,), (2, 3), (3, 2), (5, 4, 2), (6, 3), (3, 3, 3), (2, 2, 5)])
def test_the_degrees_in_matrix_and_sum_make_up_the_total(degrees):
    """Against the recursion on (degree in S, degree in s), hop by hop, and the product of the blocks' degrees."""
    p = q = 0
    for degree in degrees:
        block_p, block_q = p, q
        for _ in range((degree - 1) // 2):
            block_p, block_q = block_p + 2 * p + 1, block_q + 2 * q
        if degree % 2 == 0:
            block_p, block_q = block_p + p, block_q + q + 1
        p, q = block_p, block_q
    assert shared_degrees(degrees) == (p, q)
    assert 2 * p + q + 1 == math.prod(degrees)


@each("degrees", [(3,), (5,), (3, 3), (3, 5)])
@each(("width", "n", "m"), [(1, 1, 1), (2, 1, 1), (2, 3, 2), (3, 2, 4)])
def test_the_cap_of_odd_blocks_is_that_of_self_attention(degrees, width, n, m):
    assert gated_attention_cap(degrees, width, n, m) == attention_cap(1, width, n, m, block_degree=math.prod(degrees))


@each("degrees", [(2,), (2, 2), (4,), (2, 3), (3, 2), (4, 2)])
@each(("width", "n"), [(1, 1), (2, 1), (2, 2), (3, 3)])
def test_an_even_block_has_no_term_of_the_other_side_alone(degrees, width, n):
    assert gated_attention_cap(degrees, width, n, n) <= homogeneous_cap(math.prod(degrees), n * width, n * width) - 1


@pytest.mark.parametrize(("width", "tokens"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (2, 5), (3, 2), (3, 4)])
def test_the_exponent_is_the_dimension_of_what_a_side_hands_over(width, tokens):
    """The rank of the Jacobian of X ↦ S, X ↦ s and X ↦ (S, s) at a random X."""
    x = np.random.default_rng(0).normal(size=(tokens, width))
    in_s, in_sum = [], []
    for j, r in itertools.product(range(tokens), range(width)):
        step = np.zeros_like(x)
        step[j, r] = 1
        in_s.append((x.T @ step + step.T @ x).ravel())
        in_sum.append(step.sum(0))
    assert attention_exponent((3, 5), width, tokens) == np.linalg.matrix_rank(np.array(in_s))
    assert attention_exponent((2, 2), width, tokens) == np.linalg.matrix_rank(np.array(in_sum))
    both = np.hstack([np.array(in_s), np.array(in_sum)])
    assert attention_exponent((2, 3), width, tokens) == attention_exponent((4,), width, tokens)
    assert attention_exponent((4,), width, tokens) == np.linalg.matrix_rank(both)


def test_caps_grow_with_the_exponent():
    """The local slope of ln cap against ln(total degree), far out."""
    slope = lambda cap, low, high: math.log(cap(high) / cap(low)) / math.log(high / low)
    connected = lambda t: homogeneous_cap(t, 3, 2)
    assert abs(slope(connected, 2000, 4000) - connected_exponent(4, 3, 2)) < 0.02
    odd = lambda t: attention_cap(1, 2, 3, 3, block_degree=t)
    assert abs(slope(odd, 1001, 2001) - attention_exponent((3,), 2, 3)) < 0.05
    twos = lambda t: gated_attention_cap((2,) * t.bit_length(), 2, 3, 3)
    assert abs(slope(twos, 2**9, 2**10) - attention_exponent((2,), 2, 3)) < 0.05
