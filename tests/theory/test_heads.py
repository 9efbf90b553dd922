"""The cap that knows the heads, against the ordinary cap, random matrices of the same pattern, and measured ranks."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from benchmarks.certificates import GROUPED, OWN, OWN_NET
from benchmarks.grouped_attention import GroupedAttention
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.field import Modulus, eliminate
from theodolite.instruments.rank.certificate import verify
from theodolite.instruments.rank.document import read
from theodolite.instruments.rank.separation import separation_rank
from theodolite.theory.cap import attention_cap
from theodolite.theory.heads import Reading, _staircase, graded_heads_cap, heads_cap, heads_that_see_all


@given(st.integers(1, 4), st.integers(1, 6))
def test_one_head_of_full_width_has_the_ordinary_cap(depth: int, width: int) -> None:
    assert sum(graded_heads_cap(depth, width, 1, width)) == attention_cap(depth, width, width, width)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 8), st.integers(1, 6))
def test_heads_never_raise_the_cap_and_more_of_them_never_lower_it(d: int, w: int, heads: int, inner: int) -> None:
    found = heads_cap(d, w, heads, inner)
    assert found <= attention_cap(d, w, w, w)
    assert found <= heads_cap(d, w, heads + 1, inner)
    assert found <= heads_cap(d, w, heads, inner + 1)


@given(st.integers(2, 4), st.integers(1, 5), st.integers(1, 6), st.integers(1, 5))
def test_a_low_rank_embedding_acts_as_a_smaller_width(depth: int, rank: int, heads: int, inner: int) -> None:
    assert heads_cap(depth, rank + 2, heads, inner, embedding_rank=rank) == heads_cap(depth, rank, heads, inner)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
    st.lists(st.integers(1, 4), min_size=2, max_size=3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(1, 2),
)
def test_the_staircase_is_the_rank_of_a_random_matrix_of_its_pattern(
    seen: list[int], later: list[int], c: int, k: int, entries: int
) -> None:
    most = len(later) - 1
    none = [0] * (most + 1)

    def kinds(degree: int, times: int) -> list[int]:
        """The degree in g of every monomial."""
        return [j for j in range(min(degree, most) + 1) for _ in range(times * seen[degree - j] * later[j])]

    rows, columns = kinds(c, 1), kinds(k, entries)
    allowed = torch.tensor([[float(i + j <= most) for j in columns] for i in rows], dtype=torch.float64)
    modulus = Modulus(8388593)
    drawn = torch.randint(1, modulus.p, allowed.shape, generator=torch.Generator().manual_seed(1)).double() * allowed
    assert eliminate(modulus.reduce_(drawn), modulus).rank == _staircase(seen, later, c, k, entries, none, none)


# A shape for each regime: heads that split the width, more of them, fewer and wider ones, an embedding.
_SHAPES = [
    *((2, d, h, d // h) for d, h in ((2, 2), (4, 2), (4, 4), (5, 5))),
    *((2, 3, h, 1) for h in (1, 2, 4, 5, 6)),
    (2, 4, 1, 3),
    (2, 5, 2, 2),
    (3, 2, 1, 1),
    (3, 2, 2, 1),
]


@each(("depth", "width", "heads", "inner"), _SHAPES)
def test_measured_ranks_equal_the_cap(depth: int, width: int, heads: int, inner: int) -> None:
    shape: dict[str, Any] = {
        "depth": depth,
        "width": width,
        "heads": heads,
        "attention_width": inner,
        "tokens": 2 * width,
    }
    assert separation_rank("self-attention", repeats=1, **shape).rank == heads_cap(depth, width, heads, inner)


# (width, heads, groups, inner, latent): fewer groups than heads, one, latents; the archive has certificates of all.
_GROUPED = [(3, 6, 3, 1, None), (4, 2, 1, 2, None), (4, 4, 4, 2, 2), (4, 4, 4, 2, 3)]


@each(("width", "heads", "groups", "inner", "latent"), _GROUPED)
def test_shared_keys_and_values_bound_what_is_read(
    width: int, heads: int, groups: int, inner: int, latent: int | None
) -> None:
    shape: dict[str, Any] = {"width": width, "heads": heads, "groups": groups, "inner": inner, "latent": latent}
    found = separation_rank(GroupedAttention, repeats=1, tokens=2 * width, features=width, **shape)
    assert found.rank == heads_cap(2, width, heads, inner, key_value_heads=groups, latent=latent)


def test_every_shared_or_latent_shape_has_a_certificate_of_its_cap() -> None:
    documents = read(OWN)
    assert len(documents) == len(GROUPED) == 17
    for document, (width, heads, groups, inner, latent) in zip(documents, GROUPED, strict=True):
        shape = {"width": width, "heads": heads, "groups": groups, "inner": inner} | (
            {"latent": latent} if latent else {}
        )
        assert document["header"]["shape"] == {**shape, "tokens": 2 * width, "features": width}
        assert document["header"]["rank"] == heads_cap(2, width, heads, inner, key_value_heads=groups, latent=latent)
    assert verify(documents[0], f"{OWN_NET}:GroupedAttention").lower_bound == documents[0]["header"]["rank"]


@given(st.integers(2, 5), st.integers(1, 5), st.integers(1, 8), st.integers(1, 5))
def test_narrow_heads_cost_less_than_a_layer(depth: int, width: int, heads: int, inner: int) -> None:
    """The module's proof: with H·d_a ≥ d the cap of the heads is at least the full cap of one layer less."""
    heads = max(heads, -(-width // inner))
    assert sum(graded_heads_cap(depth, width, heads, inner)) >= attention_cap(depth - 1, width, width, width)


def test_the_parts_read_by_a_layer_are_counted_by_their_span() -> None:
    """K against the rank of the linear forms themselves, drawn at random."""
    generator = torch.Generator().manual_seed(0)
    for width, heads, inner in itertools.product((2, 3, 4, 5), (1, 2, 3), (1, 2, 3, 4, 5)):
        inner = min(inner, width)
        left, right = (torch.randn(heads, inner, width, generator=generator, dtype=torch.float64) for _ in range(2))
        rows, columns = torch.triu_indices(width, width)
        forms = torch.einsum("hiu,hjv->hijuv", left, right).reshape(-1, width, width)
        forms = (forms + forms.transpose(1, 2))[:, rows, columns]
        assert Reading.of(width, heads, inner).seen == int(torch.linalg.matrix_rank(forms))


def test_enough_heads_see_everything() -> None:
    for width, inner in itertools.product(range(1, 9), range(1, 9)):
        heads = heads_that_see_all(width, inner)
        full = attention_cap(2, width, width, width)
        assert heads_cap(2, width, heads, inner) == full
        if heads > 1:
            assert heads_cap(2, width, heads - 1, inner) < full


def test_shapes_that_are_none_are_refused() -> None:
    with pytest.raises(OutsideDomain, match="heads"):
        heads_cap(2, 4, 0, 1)
