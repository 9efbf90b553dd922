"""Recommended shapes against a search over every shape, and over every public model."""

from __future__ import annotations

import math

import pytest

from tests.each import each
from theodolite.advice.advice import advise
from theodolite.advice.bottlenecks import bottlenecks
from theodolite.advice.catalogue import models
from theodolite.advice.recommend import Family, alternatives, by_fit
from theodolite.advice.result import Advice
from theodolite.errors import BadInput
from theodolite.theory.heads import heads_that_see_all
from theodolite.theory.shapes import Fit, fitted_depth

from .shapes import ALBERT, GPT2, LLAMA3, T5_11B, dense


def family(head_width=64, vocab=50257):
    return Family(lambda depth, width, heads: dense(depth, width, heads, vocab), head_width)


@pytest.mark.parametrize("budget", [3 * 10**7, 1.3e9, 7 * 10**10])
def test_the_fit_meets_the_budget_where_a_plain_solver_says(budget):
    """12·L·d² + V·d = N on the curve, by bisection over L."""
    found = by_fit(family(), int(budget), Fit())
    low, high = 0.0, 500.0
    for _ in range(100):
        middle = (low + high) / 2
        width = math.exp(5.039 + 0.0555 * middle)
        low, high = (middle, high) if 12 * middle * width**2 + 50257 * width < budget else (low, middle)
    assert found.fitted_depth == pytest.approx(low, rel=5e-3)


def test_without_a_vocabulary_it_is_the_published_depth_with_its_interval():
    found = by_fit(family(vocab=0), 10**9, Fit())
    assert found.fitted_depth == pytest.approx(fitted_depth(10**9), rel=2e-3)
    assert found.depth_low <= 39 <= found.depth_high
    assert found.depth_high - found.depth_low <= 4


def test_no_buildable_shape_in_the_interval_is_nearer():
    """Against every width that is a multiple of the head's and of 64, with the depth the budget pays."""
    budget = 1_300_000_000
    found = by_fit(family(), budget, Fit())
    assert found.depth_low <= found.shape.depth <= found.depth_high
    assert found.shape.params == pytest.approx(budget, rel=0.02)

    def off(depth):
        return abs(math.log(depth / found.fitted_depth))

    rivals = []
    for width in range(64, 8192, 64):
        depth = round((budget - 50257 * width) / (12 * width**2))
        if found.depth_low <= depth <= found.depth_high and abs(dense(depth, width).params / budget - 1) < 0.005:
            rivals.append(depth)
    assert rivals
    assert off(found.shape.depth) <= min(map(off, rivals)) + 0.02


@pytest.fixture(scope="module")
def advices() -> dict[str, Advice]:
    return {model.name: advise(model.config) for model in models()}


@each("model", models())
def test_every_public_model_is_advised_its_own_size(advices, model):
    shape, advice = model.shape, advices[model.name]
    new, found = advice.advised.shape, advice.recommendation
    assert new.params == pytest.approx(shape.params, rel=0.05)
    group = shape.heads / shape.key_value_heads == new.heads / new.key_value_heads
    slack = 1.15 if group and shape.key_value_heads < shape.heads else 1  # groups of heads come before the interval
    assert found.depth_low / slack <= new.depth <= found.depth_high * slack
    said = any("heads to a key-value head" in warning for warning in advice.warnings)
    assert said == (not group and max(shape.key_value_heads, new.key_value_heads) > 1)
    assert "attention-width" not in {one.kind for one in bottlenecks(new)}
    assert new.heads % new.key_value_heads == 0
    if shape.experts == 1 and shape.distinct_layers in (None, shape.depth) and not shape.decoder_depth:
        # the fit's own size at the advised depth is the advised size, up to the family's parameters a block
        ratio = new.params_in_blocks / (12 * new.depth * new.width**2)
        assert 0.6 < ratio < 2.8  # LaMDA's attention is twice as wide as the network, and reads that much more
    for other in advice.alternatives:
        assert other.shape.params == pytest.approx(shape.params, rel=0.08)
    assert advice.alternatives[0].shape.depth <= 0.65 * new.depth
    assert advice.alternatives[-1].shape.depth >= 1.5 * new.depth


def test_most_public_models_are_advised_their_size_within_a_percent(advices):
    off = [abs(advices[model.name].advised.shape.params / model.shape.params - 1) for model in models()]
    assert sum(share < 0.01 for share in off) / len(off) > 5 / 6


def test_groups_of_heads_stay_about_as_large():
    new = advise(LLAMA3).advised.shape
    assert 3 <= new.heads / new.key_value_heads <= 5.5
    assert new.head_width == 128


def test_layers_that_share_weights_keep_the_width_and_get_the_fits_depth():
    advice = advise(ALBERT)
    assert advice.advised.shape.width == 4096
    assert advice.advised.shape.depth == round((math.log(4096) - 5.039) / 0.0555)
    assert advice.advised.shape.params == advice.judged.shape.params


def test_attention_beyond_the_cap_goes_and_wider_than_the_network_may_stay():
    new = advise(T5_11B).advised.shape
    assert new.width / 128 < new.heads <= heads_that_see_all(new.width, 128) < 128
    assert new.head_width == 128
    gemma = next(model for model in models() if model.name == "Gemma 7B")
    new = advise(gemma.config).advised.shape
    assert new.attention_width > new.width  # 16 heads of 256 at 3072, where 72 would read all


def test_a_shape_that_agrees_is_kept():
    gpt2_large = {**GPT2, "n_layer": 36, "n_embd": 1280, "n_head": 20}
    advice = advise(gpt2_large)
    assert advice.regime.against_fit == "agrees"
    assert advice.advised.shape is advice.recommendation.shape
    assert (advice.advised.shape.depth, advice.advised.shape.width) == (36, 1280)
    assert advice.config == gpt2_large


def test_alternatives_spend_the_same_budget_shallow_to_deep():
    budget = 10**9
    chosen = by_fit(family(), budget, Fit()).shape
    others = alternatives(family(), budget, chosen)
    depths = [shape.depth for shape in others]
    assert depths == sorted(set(depths))
    assert chosen in others
    assert depths[0] <= 0.6 * chosen.depth
    assert depths[-1] >= 1.8 * chosen.depth
    assert all(shape.params == pytest.approx(budget, rel=0.03) for shape in others)


def test_a_budget_below_its_vocabulary_is_refused_with_what_to_do():
    with pytest.raises(BadInput, match="smaller vocabulary"):
        by_fit(family(), 10**5, Fit())
