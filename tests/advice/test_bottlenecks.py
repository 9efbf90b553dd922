"""What is wasted, counted by hand."""

from __future__ import annotations

import pytest

from theodolite.advice.bottlenecks import bottlenecks, input_rank, percent
from theodolite.advice.configs import read_config
from theodolite.theory.bottleneck import T5_11B as T5_SHAPE
from theodolite.theory.bottleneck import excess_share

from .shapes import ALBERT, GPT2, T5_11B, VIT_H, dense


def kinds(shape, rank=None):
    return {one.kind: one for one in bottlenecks(shape, rank)}


def test_an_ordinary_shape_has_none():
    assert bottlenecks(read_config(GPT2, "gpt2")) == ()


def test_bytes_below_the_width_are_named_with_the_share_a_narrower_model_lacks():
    found = kinds(dense(vocab=256))
    assert list(found) == ["vocabulary"]
    narrow, wide = dense(width=256, heads=4), dense(width=768)
    assert found["vocabulary"].redundant_share == pytest.approx(1 - narrow.params_in_blocks / wide.params_in_blocks)
    assert "256" in found["vocabulary"].why


def test_a_vocabulary_of_the_width_is_none():
    assert kinds(dense(vocab=768)) == {}
    assert list(kinds(dense(vocab=767))) == ["vocabulary"]


def test_albert_is_limited_by_its_embedding_rank_with_the_published_figure_beside():
    found = kinds(read_config(ALBERT, "albert"))
    assert list(found) == ["embedding-rank"]
    assert found["embedding-rank"].redundant_share == pytest.approx(1 - (128 / 4096) ** 2)
    assert "25%" in found["embedding-rank"].why


def test_t5_11b_is_limited_by_its_width_as_counted_from_the_paper():
    found = kinds(read_config(T5_11B, "t5"))
    assert found["attention-width"].redundant_share == pytest.approx(excess_share(T5_SHAPE), rel=1e-3)
    assert "45% to 50%" in found["attention-width"].why
    assert "too-many-heads" in found


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (1.0, "100%"), (0.4, "40%"), (1 - (128 / 4096) ** 2, "99.9%"), (0.99996, "99.996%"), (0.004, "0.4%")],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share, text):
    assert percent(share) == text


def test_patches_smaller_than_the_width_limit_an_image_model():
    shape = read_config(VIT_H, "vit")
    assert input_rank(shape) == 14 * 14 * 3
    assert kinds(shape)["embedding-rank"].redundant_share == pytest.approx(1 - (588 / 1280) ** 2)
    assert kinds(read_config({**VIT_H, "patch_size": 32}, "vit")) == {}


def test_a_rank_the_user_knows_counts():
    assert list(kinds(dense(), 64)) == ["embedding-rank"]
    assert kinds(dense(), 5000) == {}
    assert input_rank(dense(vocab=300), 64) == 64


def test_many_narrow_heads_waste_no_parameters_but_lower_the_bound():
    found = kinds(dense(heads=128, head_width=6))
    assert list(found) == ["too-many-heads"]
    assert found["too-many-heads"].redundant_share == 0
    assert kinds(dense(heads=48, head_width=16)) == {}
