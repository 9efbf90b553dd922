"""What lies beyond the cap, counted by hand."""

from __future__ import annotations

import pytest

from theodolite.advice.bottlenecks import bottlenecks, input_rank, percent
from theodolite.advice.configs import read_config
from theodolite.advice.heads_law import heads_law
from theodolite.theory.bottleneck import T5_11B as T5_SHAPE
from theodolite.theory.bottleneck import excess_share
from theodolite.theory.heads import heads_cap

from .shapes import ALBERT, GPT2, T5_11B, VIT_H, dense


def kinds(shape, rank=None):
    return {one.kind: one for one in bottlenecks(shape, rank)}


def test_an_ordinary_shape_has_none():
    assert bottlenecks(read_config(GPT2, "gpt2")) == ()


def test_few_symbols_are_named_without_a_share_that_reads_as_waste():
    found = kinds(dense(vocab=33, width=1280, heads=20))  # as in ESM-2
    assert list(found) == ["vocabulary"]
    assert found["vocabulary"].beyond_cap_share is None
    assert "33 of 1280 dimensions" in found["vocabulary"].why
    assert "no measure of waste" in found["vocabulary"].why
    assert "%" not in found["vocabulary"].why


def test_a_vocabulary_of_the_width_is_none():
    assert kinds(dense(vocab=768)) == {}
    assert list(kinds(dense(vocab=767))) == ["vocabulary"]


def test_albert_is_limited_by_its_embedding_rank_with_the_published_figure_and_no_other():
    found = kinds(read_config(ALBERT, "albert"))
    assert list(found) == ["embedding-rank"]
    assert found["embedding-rank"].beyond_cap_share is None
    assert "25%" in found["embedding-rank"].why


def test_t5_11b_reads_all_with_33_heads_as_counted_from_the_paper():
    found = kinds(read_config(T5_11B, "t5"))
    attention, mlp = 24 * 3 * 4 * 1024 * 128 * 128, 48 * 2 * 1024 * 65536
    by_hand = attention * (128 - 33) / 128 / (attention + mlp)
    assert found["attention-width"].beyond_cap_share == pytest.approx(by_hand, rel=1e-3)
    assert f"{by_hand:.0%}" == "32%"
    assert excess_share(T5_SHAPE) == pytest.approx(by_hand)
    assert "45% to 50%" in found["attention-width"].why
    assert "too-many-heads" not in found  # 128 of them, but they read everything


@pytest.mark.parametrize(("heads", "beyond"), [(8, 0), (32, 0), (33, 0), (34, 1), (66, 33)])
def test_heads_lie_beyond_the_cap_from_where_they_read_all(heads, beyond):
    """At width 1024 and heads of 128: 33, where H·d_a = d has 8."""
    parts = {"attention": 4 * 1024 * 128 * heads, "mlp": 8 * 1024**2}
    found = kinds(dense(1, 1024, heads, head_width=128, parts=parts))
    share = found["attention-width"].beyond_cap_share if "attention-width" in found else 0
    assert share == pytest.approx(beyond * 4 * 1024 * 128 / sum(parts.values()))


def test_what_grouped_heads_read_is_bounded_by_their_keys_and_values():
    law = heads_law(dense(2, 1024, 16, head_width=128, key_value_heads=8))
    assert (law.seen, law.entries, law.enough) == (8 * 128**2, 1024 * 1025 // 2, 33)
    assert (law.kept, law.kept_key_value) == (8, 8)  # queries beyond the width raise no cap
    exact = [heads_cap(2, 4, heads, 2, key_value_heads=2) for heads in (2, 4, 8)]
    assert len(set(exact)) == 1  # and these caps are ranks: tests/theory/test_heads.py
    # queries and outputs of 8 of 16 heads, of 2·16 + 2·8 matrices a layer
    parts = {"attention": 48 * 1024 * 128, "mlp": 52 * 1024 * 128}
    found = kinds(dense(1, 1024, 16, head_width=128, key_value_heads=8, parts=parts))
    assert found["attention-width"].beyond_cap_share == pytest.approx(0.16)


def test_what_latent_heads_read_is_bounded_by_the_latent_numbers():
    """DeepSeek-V3: 128 heads of 128 at width 7168, keys and values from 512 + 64 numbers."""
    shape = dense(2, 7168, 128, head_width=128, score_width=192, cached_numbers=576)
    law = heads_law(shape)
    assert law.seen == 576 * 577 // 2 < 128 * 128 * 192
    assert law.reached == law.entries
    assert law.kept == 7168 // 128  # heads of queries that fill the width
    assert kinds(shape)["attention-width"].beyond_cap_share is None


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (1.0, "100%"), (0.4, "40%"), (1 - (128 / 4096) ** 2, "99.9%"), (0.99996, "99.996%"), (0.004, "0.4%")],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share, text):
    assert percent(share) == text


def test_patches_smaller_than_the_width_limit_an_image_model():
    shape = read_config(VIT_H, "vit")
    assert input_rank(shape) == 14 * 14 * 3
    assert kinds(shape)["embedding-rank"].beyond_cap_share is None
    assert "%" not in kinds(shape)["embedding-rank"].why  # nothing numeric but what is published: ten times
    assert kinds(read_config({**VIT_H, "patch_size": 32}, "vit")) == {}


def test_a_rank_the_user_knows_counts():
    assert list(kinds(dense(), 64)) == ["embedding-rank"]
    assert kinds(dense(), 5000) == {}
    assert input_rank(dense(vocab=300), 64) == 64


def test_many_narrow_heads_waste_no_parameters_but_lower_the_bound():
    found = kinds(dense(heads=128, head_width=6))
    assert list(found) == ["too-many-heads"]
    assert found["too-many-heads"].beyond_cap_share == 0
    assert kinds(dense(heads=48, head_width=16)) == {}
