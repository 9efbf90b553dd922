"""Activations against what torch saves and keeps for real models, and against the published count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.advice.budget.alive import pass_bytes, saved_bytes
from tests.advice.budget.models import FAMILIES, built, rows
from tests.advice.shapes import dense
from theodolite.advice.budget.activations import activations, recompute_named
from theodolite.advice.budget.kernels import kernels_named, writing
from theodolite.errors import BadInput

BATCH, SEQUENCE, VOCAB = 2, 128, 64
SAVED_LOSS = 4  # bytes a logit that the loss saves, in float32


@pytest.mark.parametrize("family", FAMILIES)
def test_what_autograd_saves_is_what_the_formula_says(family):
    pytest.importorskip("transformers")
    model, shape = built(family)
    found = activations(shape, BATCH, SEQUENCE)
    saved = saved_bytes(model, rows(BATCH, SEQUENCE))
    assert saved == pytest.approx(found.kept + SAVED_LOSS * BATCH * SEQUENCE * VOCAB, rel=0.02)
    assert writing(shape, "eager").checked


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
def test_what_is_alive_after_forward_and_at_most_until_backward_is_over(family, recompute):
    pytest.importorskip("transformers")
    for vocab in (VOCAB, 3000):  # the largest moment is in a block, or at the loss
        model, shape = built(family, vocab)
        found = activations(shape, BATCH, SEQUENCE, recompute)
        passed = pass_bytes(model, rows(BATCH, SEQUENCE, vocab), recompute)
        loss = SAVED_LOSS * BATCH * SEQUENCE * vocab
        assert passed.kept == pytest.approx(found.kept + loss, rel=0.04)
        assert passed.most == pytest.approx(found.kept + max(found.logits, found.block), rel=0.1)
        assert (found.logits > found.block) == (vocab == 3000)


def test_a_mixture_keeps_what_its_active_experts_compute():
    pytest.importorskip("transformers")
    FAMILIES["mixtral"] = {**FAMILIES["llama"], "num_local_experts": 4, "num_experts_per_tok": 2}
    try:
        model, shape = built("mixtral")
    finally:
        del FAMILIES["mixtral"]
    saved = saved_bytes(model, rows(BATCH, SEQUENCE))
    loss = SAVED_LOSS * BATCH * SEQUENCE * VOCAB
    assert saved == pytest.approx(activations(shape, BATCH, SEQUENCE).kept + loss, rel=0.1)


def test_fused_is_the_published_count_without_dropout_and_without_scores():
    """Korthikanti et al., equation 1: s·b·h·(34 + 5·a·s/h), of which two masks of dropout are 2 and scores 5·a·s/h."""
    shape = dense(12, 768, 12)
    per_head = 12 * 4  # bytes of flash attention's own sums, which the paper's attention does not have
    found = activations(shape, 4, 512, kernels="fused")
    assert found.blocks == 4 * 512 * 12 * (32 * 768 + per_head)
    assert activations(shape, 4, 512, "full", "fused").blocks == 2 * 4 * 512 * 768 * 12  # their 2·s·b·h·L
    assert found.logits == 4 * 4 * 512 * 50257  # their 4·s·b·v


@given(batch=st.integers(1, 64), times=st.integers(2, 8), depth=st.integers(1, 64))
def test_activations_are_linear_in_batch_sequence_and_depth(batch, times, depth):
    shape = dense(depth, 256, 4, vocab=1000)
    for recompute in ("none", "selective", "full"):
        once = activations(shape, batch, 64, recompute)
        for more in (
            activations(shape, times * batch, 64, recompute),
            activations(shape, batch, times * 64, recompute),
        ):
            assert more.kept == times * once.kept
            assert more.logits == times * once.logits
        deeper = dense(times * depth, 256, 4, vocab=1000)
        assert activations(deeper, batch, 64, recompute).blocks == times * once.blocks


@given(width=st.sampled_from([64, 256, 1024]), gated=st.booleans(), groups=st.sampled_from([1, 2, 4]))
def test_computing_more_again_keeps_less(width, gated, groups):
    shape = dense(8, width, 4, gated=gated, key_value_heads=4 // groups)
    for kernels in ("eager", "fused"):
        none, some, full = (activations(shape, 2, 128, how, kernels).kept for how in ("none", "selective", "full"))
        assert full < some < none
    assert activations(shape, 2, 128, kernels="fused").kept <= activations(shape, 2, 128).kept


def test_fewer_key_value_heads_and_no_vocabulary_keep_less():
    shape = dense(8, 256, 8)
    grouped = replace(shape, key_value_heads=2)
    saved = activations(shape, 1, 100).blocks - activations(grouped, 1, 100).blocks
    assert saved == 100 * 8 * 2 * 2 * (8 - 2) * 32  # keys and values of six heads, two bytes a number
    assert activations(replace(shape, vocab=None), 1, 100).logits == 0


def test_names_that_are_not_there():
    with pytest.raises(BadInput, match="--recompute 'some' is none of none, selective, full"):
        recompute_named("some")
    with pytest.raises(BadInput, match="--kernels 'triton' is neither"):
        kernels_named("triton")
