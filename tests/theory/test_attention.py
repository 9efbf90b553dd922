"""The theorems as numbers, against values worked out by hand."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.errors import OutsideDomain
from theodolite.theory.attention import (
    attention_bounds,
    degree,
    hops,
    mixing,
    theorem_7_1,
    theorem_7_2,
    theorem_7_3,
)


def test_theorem_7_1_by_hand():
    # L = 2, d = 10, H = 2: 3^lower = (d−H)/2 = 4 exactly, 3^upper = 12^4
    bounds = theorem_7_1(2, 10, 2)
    assert (bounds.lower, bounds.upper) == (4, 12**4)
    assert bounds.lower_log3 == pytest.approx(math.log(4, 3))
    assert bounds.upper_log3 == pytest.approx(4 * math.log(12, 3))
    # L = 1, d = 4, H = 1: the cube root of 4.5 lies between 1 and 2
    bounds = theorem_7_1(1, 4, 1)
    assert (bounds.lower, bounds.upper) == (2, 5)
    # L = 3, d = 28, H = 1: (27/6)^3 = 91.125
    assert theorem_7_1(3, 28, 1).lower == 92
    assert theorem_7_1(3, 28, 1).upper == 29**13


def test_exact_integers_where_the_bound_is_an_integer():
    """Floating point would ask for one more than the theorem states at some of these."""
    for width in range(10, 400, 2):
        assert theorem_7_1(2, width, 2).lower == (width - 2) // 2


def test_theorem_7_2_by_hand():
    # d = 2, L = 3, H = 1: 3^(2·lower) = 3^(6 − 3·3 − 4)·2^2, below 1; 3^upper = 3^15·2·(2e)^2 = 848274022.8…
    bounds = theorem_7_2(3, 2, 1)
    assert bounds.lower_log3 == pytest.approx(-3.5 + math.log(2, 3))
    assert bounds.vacuous
    assert bounds.lower == 1
    assert bounds.upper == math.floor(3**15 * 2 * (2 * math.e) ** 2)
    # d = 8, L = 7, H = 1: 3^(2·lower) = 3^19·(2/7)^8
    bounds = theorem_7_2(7, 8, 1)
    assert not bounds.vacuous
    assert bounds.lower == math.ceil(math.sqrt(3**19 * (2 / 7) ** 8))
    # the formula as printed
    d, L, H = 10, 6, 1
    printed_lower = d * L / 2 - L * (H / 2 + 1) - d * (1 + math.log((d - H) / 2, 3) / 2)
    printed_upper = 2 * d * L + L - 2 * d * math.log(d / (2 * math.sqrt(2 * math.e)), 3) + math.log(d, 3)
    assert theorem_7_2(L, d, H).lower_log3 == pytest.approx(printed_lower)
    assert theorem_7_2(L, d, H).upper_log3 == pytest.approx(printed_upper)


def test_domains_meet_but_do_not_overlap():
    with pytest.raises(OutsideDomain, match=r"L < log3"):
        theorem_7_1(2, 9, 1)
    with pytest.raises(OutsideDomain, match=r"L > log3"):
        theorem_7_2(2, 9, 1)
    neither = attention_bounds(2, 9, 1)
    assert neither.lower_log3 is neither.upper_log3 is neither.lower is neither.upper is None
    assert neither.vacuous
    assert "neither theorem" in neither.reason
    assert attention_bounds(2, 10, 1) == theorem_7_1(2, 10, 1)
    assert attention_bounds(2, 8, 1) == theorem_7_2(2, 8, 1)


@pytest.mark.parametrize("depth", [1, 5])
def test_as_many_heads_as_width_leaves_no_lower_bound(depth):
    bounds = attention_bounds(depth, 6, 6)
    assert bounds.lower_log3 is None
    assert bounds.lower is None
    assert bounds.upper_log3 is not None
    assert "H = d" in bounds.reason
    assert bounds.vacuous


def test_more_heads_than_width():
    assert "at most d heads" in attention_bounds(2, 4, 5).reason
    with pytest.raises(OutsideDomain, match="at most width = 4 heads"):
        theorem_7_2(2, 4, 5)


@pytest.mark.parametrize("wrong", [(0, 4, 1), (1, 0, 1), (1, 4, 0), (1.0, 4, 1), (True, 4, 1)])
def test_shapes_must_be_positive_integers(wrong):
    with pytest.raises(OutsideDomain, match="pass an integer of at least 1"):
        attention_bounds(*wrong)


def test_beyond_ten_to_the_300_only_logarithms_are_given():
    bounds = attention_bounds(24, 1024, 16)
    assert bounds.lower is None
    assert bounds.upper is None
    assert bounds.lower_log3 is not None
    assert bounds.lower_log3 > 600
    assert not bounds.vacuous


@given(st.integers(1, 6), st.integers(2, 40), st.data())
def test_integers_agree_with_logarithms(depth, width, data):
    heads = data.draw(st.integers(1, width - 1))
    bounds = attention_bounds(depth, width, heads)
    if bounds.lower_log3 is None or bounds.upper_log3 is None:
        assert 3**depth == width
        return
    assert bounds.lower_log3 <= bounds.upper_log3
    if bounds.lower is not None and bounds.lower_log3 > 0:
        assert math.log(bounds.lower, 3) >= bounds.lower_log3 - 1e-9
        assert bounds.lower <= 1 + 3**bounds.lower_log3 * (1 + 1e-9)
    if bounds.upper is not None:
        assert math.log(bounds.upper, 3) <= bounds.upper_log3 + 1e-9
        assert math.log(bounds.upper + 1, 3) >= bounds.upper_log3 - 1e-9


def test_theorem_7_3_is_an_order_of_growth():
    both = theorem_7_3(depth=4, width=20, embedding_rank=7, heads=2)
    assert (both.order_upper, both.order_lower) == (28, 20)
    assert theorem_7_3(4, 20, 50, 2).order_upper == 80
    assert theorem_7_3(2, 20, 7, 2).order_lower is None  # 3^2 < 20
    assert theorem_7_3(4, 20, 2, 2).order_lower is None  # H = r


def test_degree_hops_mixing():
    assert [degree(depth) for depth in (0, 1, 2, 3)] == [1, 3, 9, 27]
    assert [hops(depth) for depth in (0, 1, 2, 3)] == [0, 1, 4, 13]
    assert mixing(3) == 14
    assert hops(2, block_degree=5) == 12
    with pytest.raises(OutsideDomain, match="odd"):
        hops(2, block_degree=2)


def test_theory_imports_no_heavy_library():
    code = (
        "import sys, theodolite.theory.attention, theodolite.theory.cap, theodolite.theory.circuits;"
        "assert not {'torch', 'numpy', 'scipy', 'flint'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
