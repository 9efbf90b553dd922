"""Training and inference memory: what sharding divides, what fills a GPU, published figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.advice.budget.alive import pass_bytes
from tests.advice.budget.models import built, rows
from tests.advice.shapes import LLAMA3, dense
from theodolite.advice.budget.inference_memory import inference_memory
from theodolite.advice.budget.training_memory import OPTIMISERS, Setting, training_memory
from theodolite.advice.configs import read_config
from theodolite.errors import BadInput

GEMMA3_4B = {
    "model_type": "gemma3_text",
    **{"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "num_attention_heads": 8},
    **{"num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "sliding_window": 1024},
    **{"max_position_embeddings": 131072},
}


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_all_of_a_training_pass_on_the_cpu(family, recompute):
    """Weights, gradients and what torch holds at most in a pass; a small batch, so that the table's gradient shows."""
    pytest.importorskip("transformers")
    model, shape = built(family, 4096, num_hidden_layers=4) if family == "llama" else built(family, 4096, n_layer=4)
    passed = pass_bytes(model, rows(1, 32, 4096), recompute)
    found = training_memory(shape, Setting(1, 32, recompute))
    assert found.weights == found.gradients == 2 * shape.params
    assert found.total - found.optimiser == pytest.approx(4 * shape.params + passed.most, rel=0.05)


@given(gpus=st.sampled_from([2, 8, 64]), batch=st.integers(1, 8))
def test_each_stage_divides_one_thing_more(gpus, batch):
    shape = dense()
    stages = [training_memory(shape, Setting(batch, 256, zero=stage, gpus=gpus)) for stage in range(4)]
    whole = training_memory(shape, Setting(batch, 256))
    assert stages[0] == whole
    assert gpus * stages[1].optimiser == pytest.approx(whole.optimiser)
    assert gpus * stages[2].gradients == pytest.approx(whole.gradients)
    assert gpus * stages[3].states == pytest.approx(whole.states)  # nothing is there twice
    assert (stages[1].weights, stages[2].weights) == (whole.weights, whole.weights)
    assert {one.activations for one in stages} == {whole.activations}
    assert stages[3].gathered == 2 * 2 * 12 * 768**2  # two blocks
    assert [one.gathered for one in stages[:3]] == [0, 0, 0]


@given(tensor=st.sampled_from([1, 2, 4, 8]), replicas=st.integers(1, 4))
def test_tensor_parallelism_divides_everything(tensor, replicas):
    shape = dense()
    whole = training_memory(shape, Setting(2, 256))
    part = training_memory(shape, Setting(2, 256, gpus=tensor * replicas, tensor=tensor))
    assert tensor * part.total == pytest.approx(whole.total)


def test_the_first_stage_of_a_pipeline_holds_a_pass_of_every_stage():
    """Korthikanti et al., section 4.2.3: its activations are those of all blocks."""
    shape = dense(vocab=100)
    whole = training_memory(shape, Setting(8, 512))
    staged = training_memory(shape, Setting(8, 512, gpus=4, pipeline=4))
    assert staged.weights == pytest.approx(2 * (shape.params_in_blocks / 4 + 100 * 768))
    assert staged.activations == pytest.approx(whole.activations, rel=0.01)
    wordy = dense(vocab=500_000)
    last = training_memory(wordy, Setting(8, 512, gpus=4, pipeline=4))
    assert last.logits > 0  # there the last stage is fuller
    assert last.activations < 0.3 * training_memory(wordy, Setting(8, 512)).activations


def test_sixteen_bytes_a_parameter_and_others():
    shape = dense()
    for name, each in (("adam", 16), ("adam-8bit", 10), ("adam-bf16", 8), ("momentum", 12)):
        assert training_memory(shape, Setting(optimiser=name)).states == each * shape.params
        assert name in OPTIMISERS
    assert training_memory(shape, Setting(gradient_bytes=4)).states == 18 * shape.params  # Megatron's
    assert training_memory(dense(vocab=100), Setting(64, 1024)).largest() == "activations"
    assert training_memory(dense(1, vocab=300_000), Setting(64, 1024)).largest() == "logits"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"gpus": 6, "tensor": 4}, "6 GPUs are not whole replicas of 4 × 1: pass --gpus as a multiple of 4"),
        ({"tensor": 0}, "--tp is 0: pass an integer of at least 1"),
        ({"batch": True}, "--batch is True: pass an integer"),
    ],
)
def test_settings_that_cannot_be(given, told):
    with pytest.raises(BadInput, match=told):
        Setting(**given)
    with pytest.raises(BadInput, match="12 blocks do not fill 13 stages: pass --pp 12 or less"):
        training_memory(dense(), Setting(gpus=13, pipeline=13))


def test_what_is_no_transformer_has_states_and_no_activations():
    other = replace(dense(), kind="recurrent", heads=0)
    found = training_memory(other, Setting(8, 1024, zero=3, gpus=8))
    assert found.activations == found.working == 0
    assert 8 * found.states == 16 * other.params


def test_llama_3s_cache_and_weights():
    shape = read_config(LLAMA3, "Llama 3 8B")
    found = inference_memory(shape, batch=4)
    assert found.cache == {2048: 4 * 2048 * 131072, 8192: 4 * 8192 * 131072}  # 128 KiB a token, as far as it reads
    assert found.weights == 2 * shape.params
    assert found.total(8192) == found.weights + 2**32
    quarter = inference_memory(shape, bits=4)
    small = shape.parts["attention"] + shape.parts["mlp"]
    assert quarter.weights == small * (0.5 + 2 / 128) + 2 * (shape.params - small)
    assert inference_memory(shape, bits=16).weights == found.weights
    assert 3 in {len(inference_memory(shape, context=100).cache)}


def test_windows_bound_the_cache():
    """Gemma 3 4B: 29 of 34 layers keep 1,024 tokens; at 128k that is 2.6 GiB instead of 17."""
    found = inference_memory(read_config(GEMMA3_4B, "Gemma 3 4B"))
    assert found.cache[131072] / 2**30 == pytest.approx(2.6, abs=0.1)


def test_what_inference_refuses():
    with pytest.raises(BadInput, match="weights of 5 bits are not in use: pass --bits 4, 8 or 16"):
        inference_memory(dense(), bits=5)
    with pytest.raises(BadInput, match="--batch is 0: pass an integer of at least 1"):
        inference_memory(dense(), batch=0)
