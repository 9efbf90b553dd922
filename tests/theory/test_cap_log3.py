"""The logarithm of the cap against the exact integer, and against exact binomials where that is out of reach."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.theory.cap import attention_cap, attention_cap_log3, log_binomial


@each("depth", range(1, 8))
@each("width", [1, 2, 3, 5, 8, 13])
def test_it_is_the_logarithm_of_the_exact_cap(depth, width):
    exact = math.log(attention_cap(depth, width, width, width)) / math.log(3)
    assert attention_cap_log3(depth, width) == pytest.approx(exact, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 4, 9])
def test_an_embedding_of_low_rank_has_the_cap_of_that_width(rank):
    exact = math.log(attention_cap(3, 6, 6, 6, embedding_rank=rank)) / math.log(3)
    assert attention_cap_log3(3, 6, rank) == pytest.approx(exact, rel=1e-12)
    assert attention_cap_log3(3, 6, rank) == attention_cap_log3(3, min(6, rank))


@given(st.integers(0, 3000), st.integers(0, 10**5))
def test_binomials_agree_with_exact_ones(n, k):
    assert log_binomial(n, k) == pytest.approx(math.log(math.comb(n + k, n)), rel=1e-12, abs=1e-11)


def test_binomials_of_sizes_far_apart_do_not_cancel():
    """ln Γ of 3^96 has an absolute error of thousands; the product of 50 factors has none."""
    n, k = 50, 3**96
    exact = sum(math.log((k + i) / i) for i in range(1, n + 1))
    assert log_binomial(n, k) == pytest.approx(exact, rel=1e-13)
    assert log_binomial(k, n) == log_binomial(n, k)


def test_depths_beyond_a_float_still_grow_by_the_entries_of_s_a_layer():
    """For C far above D the cap is about (C/2)^D/D!: one more layer adds D to its log3."""
    entries = 64 * 65 // 2
    assert attention_cap_log3(901, 64) - attention_cap_log3(900, 64) == pytest.approx(entries, rel=1e-9)


def test_sizes_are_checked():
    with pytest.raises(OutsideDomain, match="width"):
        attention_cap_log3(2, 0)
