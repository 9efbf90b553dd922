"""The law of two layers, beside ranks measured here: shapes it was fitted to, and shapes it was not."""

from __future__ import annotations

import math

import pytest

from theodolite.claims.tensors.graded_rank import graded_rank
from theodolite.errors import OutsideDomain
from theodolite.theory.attention_rank import (
    graded_cap,
    heads_deficit_depth_2,
    measured_law_depth_2,
    separation_cap,
)
from theodolite.theory.cap import attention_cap
from theodolite.theory.heads import heads_cap


@pytest.mark.parametrize(
    "shape",
    [(3, 1, 2), (3, 5, 1), (4, 2, 2), (4, 3, 1), (5, 1, 3)],
)
def test_shapes_it_was_fitted_to(shape):
    measured = graded_rank(2, *shape, repeats=1)
    assert [block.rank for block in measured.blocks] == measured_law_depth_2(*shape)


@pytest.mark.parametrize(("shape", "degrees"), [((8, 4, 2), [1, 3]), ((8, 8, 1), [2]), ((8, 1, 4), [1, 2])])
def test_shapes_it_was_not_fitted_to(shape, degrees):
    law = measured_law_depth_2(*shape)
    measured = graded_rank(2, *shape, degrees=degrees, repeats=1)
    assert {block.degree: block.rank for block in measured.blocks} == {c: law[c] for c in degrees}


@pytest.mark.parametrize(("width", "others"), [(2, 2), (3, 3), (4, 2), (5, 2)])
def test_an_output_token_alone_against_several_misses_only_in_the_middle(width, others):
    measured = graded_rank(2, width, tokens_with_output=1, tokens_other=others, repeats=1)
    deficit = 2 * math.comb(width + 1, 4)
    assert measured.deficits == ({2: deficit} if deficit else {})
    assert measured.proven  # what repeats allow no more


def test_one_head_of_full_width_or_more_has_the_cap():
    for width in range(1, 12):
        for inner in (width, width + 3):
            assert sum(measured_law_depth_2(width, 1, inner)) == attention_cap(2, width, width, width)


def test_the_deficit_of_heads_that_share_the_width_is_that_of_the_law():
    for width in range(1, 25):
        full = attention_cap(2, width, width, width)
        for heads in (h for h in range(1, width + 1) if width % h == 0):
            assert full - sum(measured_law_depth_2(width, heads, width // heads)) == heads_deficit_depth_2(width, heads)


def test_more_heads_and_wider_heads_never_have_less():
    for width in range(2, 11):
        for inner in range(1, width + 1):
            sums = [sum(measured_law_depth_2(width, h, inner)) for h in range(1, 60) if h == 1 or h * inner >= width]
            assert sums == sorted(sums)
            assert sums[-1] == attention_cap(2, width, width, width)
        narrow = [sum(measured_law_depth_2(width, 1, inner)) for inner in range(1, width + 1)]
        assert narrow == sorted(set(narrow))


def test_the_law_never_passes_the_cap():
    for width in range(1, 16):
        for inner in range(1, width + 1):
            law, cap = measured_law_depth_2(width, 1, inner), graded_cap(2, width, 1, inner)
            assert all(r <= c for r, c in zip(law, cap, strict=True))


def test_graded_cap_of_few_tokens_sums_to_the_cap():
    for tokens in ((1, 1), (1, 3), (2, 2), (3, 1), (None, None)):
        n, m = (4 if t is None else t for t in tokens)
        assert sum(graded_cap(3, 4, 10, 4, *tokens)) == attention_cap(3, 4, n, m)
        assert sum(graded_cap(2, 4, 1, 4, *tokens, embedding_rank=2)) == attention_cap(2, 4, n, m, embedding_rank=2)


def test_outside_the_domain():
    with pytest.raises(OutsideDomain, match="at least the width 7"):
        measured_law_depth_2(7, 2, 3)
    with pytest.raises(OutsideDomain, match="divisor"):
        heads_deficit_depth_2(4, 3)


@pytest.mark.parametrize(("n", "m", "heads"), [(1, 1, 2), (2, 1, 4), (1, 2, 2), (2, 2, 4), (5, 5, 4)])
def test_the_smallest_cap_is_below_that_of_tokens_and_that_of_heads_and_is_reached(n: int, m: int, heads: int) -> None:
    cap = separation_cap(2, 4, heads, 4 // heads, n, m)
    assert cap <= min(attention_cap(2, 4, n, m), heads_cap(2, 4, heads, 4 // heads))
    assert graded_rank(2, 4, heads, tokens_with_output=n, tokens_other=m, repeats=1).total == cap
