"""What models of a size look like, against the catalogue read by hand."""

from __future__ import annotations

import statistics

import pytest

from theodolite.advice.advice import advise
from theodolite.advice.catalogue import models
from theodolite.advice.usage import usage_at, usage_near

from .shapes import GPT2, T5_11B, VIT_H, dense


def test_the_range_is_that_of_the_models_near():
    shape = dense(32, 4096, 32)
    ratios = [
        model.shape.width / model.shape.depth
        for model in models()
        if model.modality != "image" and not model.shape.two_stacks and not model.name.startswith("ALBERT")
        and 0.5 <= model.shape.depth * model.shape.width**2 / (32 * 4096**2) <= 2
    ]  # fmt: skip
    found = usage_near(shape)
    assert found is not None
    assert (found.models, found.low, found.high) == (len(ratios), min(ratios), max(ratios))
    assert found.median == statistics.median(ratios) == 128
    assert found.holds(shape)
    assert not found.holds(dense(400, 1152, 9))


def test_kinds_are_not_mixed_and_few_are_none():
    assert usage_at(12 * 48 * 1024**2, "language", two_stacks=True) != usage_at(12 * 48 * 1024**2, "language")
    assert usage_at(85e6, "image") is None  # two of them, of five asked for
    assert usage_at(1e14, "language") is None


@pytest.mark.parametrize(("depth", "width", "stays"), [(12, 768, True), (1, 2688, False), (96, 256, False)])
def test_no_reason_to_change_is_said_where_there_is_none(depth, width, stays):
    advice = advise({**GPT2, "n_layer": depth, "n_embd": width, "n_head": width // 64})
    assert advice.no_reason_to_change is stays
    assert ("no reason to change" in advice.headline) is stays
    assert advice.to_json()["no_reason_to_change"] is stays


def test_of_images_no_number_is_given_but_the_published_one():
    advice = advise(VIT_H)
    assert not advice.no_reason_to_change
    assert "ten times" in advice.headline
    assert "advises" not in advice.headline


def test_two_stacks_are_compared_with_two_stacks():
    found = advise(T5_11B).usage
    assert found is not None
    assert found.low == pytest.approx(1024 / 48)
