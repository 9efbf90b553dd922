"""Costs against torch's own counter, and against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from theodolite.advice.catalogue import models
from theodolite.advice.configs import read_config
from theodolite.advice.cost import cost, encoder_multiplied_parameters, multiplied_parameters
from theodolite.advice.measure import Block

from .shapes import ALBERT, GPT2, LLAMA3, T5_11B, VIT_H, dense


@pytest.mark.parametrize("gated", [False, True])
def test_flops_are_what_torch_counts_for_such_blocks(gated):
    """Without the tables: forward and backward of the blocks over one sequence, attention not saving the mask."""
    tokens, depth, width = 32, 3, 64
    parts = {"attention": 4 * depth * width**2, "mlp": (3 if gated else 2) * depth * width * 96}
    shape = dense(depth, width, 4, parts=parts, active=sum(parts.values()), mlp_width=96, gated=gated)
    stack = nn.Sequential(*(Block(shape) for _ in range(depth)))
    x = torch.randn(1, tokens, width, requires_grad=True, generator=torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counted, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        y = stack(x)
        forward = counted.get_total_flops()
        y.sum().backward()
    found = cost(shape, tokens)
    assert found.inference_flops is not None
    assert found.training_flops is not None
    assert forward == tokens * found.inference_flops
    assert counted.get_total_flops() == tokens * found.training_flops


def test_tables_that_are_only_looked_up_cost_nothing():
    tied, untied = read_config(GPT2, "gpt2"), read_config({**GPT2, "tie_word_embeddings": False}, "gpt2")
    assert untied.params - tied.params == 50257 * 768
    assert multiplied_parameters(untied) == multiplied_parameters(tied) == tied.params - 1024 * 768


def test_shared_layers_are_paid_for_every_time():
    shape = read_config(ALBERT, "albert")
    assert shape.distinct_layers == 1
    deeper = read_config({**ALBERT, "num_hidden_layers": 24}, "albert")
    assert deeper.params == shape.params
    blocks = shape.params_in_blocks
    assert multiplied_parameters(deeper) - multiplied_parameters(shape) == 12 * blocks


def test_idle_experts_cost_memory_and_no_arithmetic():
    shape = dense()
    mixture = replace(shape, parts={**shape.parts, "mlp": 8 * shape.parts["mlp"]}, experts=8)
    assert cost(mixture, 64).inference_flops == cost(shape, 64).inference_flops
    assert cost(mixture, 64).weight_bytes > 3 * cost(shape, 64).weight_bytes


def test_a_token_of_t5_small_passes_its_encoder_or_its_decoder():
    """By hand: 6 + 6 layers of width 512, 8 heads of 64, an MLP of 2048, one table of 32128 symbols."""
    small = {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
    shape = read_config({**small, "vocab_size": 32128}, "T5 small")
    square, mlp, context = 512 * 512, 2 * 512 * 2048, 100
    # The encoder: queries, keys, values, output; its tokens also give the decoder's cross-attention keys and values.
    read = 6 * (4 * square + mlp + 2 * 512) + 512 + 6 * 2 * square
    # The decoder: attention to itself, queries and output of cross-attention, and the table as the output map.
    written = 6 * (4 * square + 2 * square + mlp + 3 * 512) + 512 + 32128 * 512
    buckets = 32 * 8  # of relative positions, in each stack
    assert read + written + 2 * buckets == shape.params == 60_506_624
    assert (encoder_multiplied_parameters(shape), multiplied_parameters(shape)) == (read, written)
    assert shape.active == written + buckets
    found = cost(shape, context)
    reading = 2 * read + 6 * 4 * 512 * context
    writing = 2 * written + 6 * 2 * 4 * 512 * context  # each block attends to both sides
    assert found.inference_flops == writing
    assert found.training_flops == 3 * (reading + writing) / 2
    assert found.sequential_depth == 6


def test_an_encoder_decoder_of_an_unknown_family_splits_its_parameters_alike():
    bart = {"model_type": "not-bart", "d_model": 64, "encoder_layers": 3, "decoder_layers": 1, "vocab_size": 100}
    shape = read_config({**bart, "encoder_attention_heads": 4, "encoder_ffn_dim": 128}, "BART")
    map_, mlp, norm = 64 * 64 + 64, 2 * 64 * 128 + 128 + 64, 2 * 64
    assert encoder_multiplied_parameters(shape) == 3 * (4 * map_ + mlp + 2 * norm) + 2 * map_
    assert shape.active == shape.params - encoder_multiplied_parameters(shape)


def test_a_table_without_an_output_map_is_only_looked_up():
    for config, bare, width in ((GPT2, "GPT2Model", 768), (T5_11B, "T5Model", 1024)):
        whole, part = read_config(config, "a model"), read_config({**config, "architectures": [bare]}, "a model")
        assert whole.params == part.params
        assert multiplied_parameters(whole) - multiplied_parameters(part) == config["vocab_size"] * width
    alone = read_config({**T5_11B, "architectures": ["T5EncoderModel"]}, "a model")
    assert cost(alone, 1).cache_bytes == 0
    assert cost(alone, 1).sequential_depth == 24


def test_a_latent_cache_is_the_narrow_vector_and_the_rotated_key():
    """DeepSeek-V3: 61 layers keep 512 + 64 numbers a token, 70 KB in bfloat16 as its authors say."""
    (model,) = [model for model in models() if model.name == "DeepSeek-V3"]
    assert cost(model.shape, 1).cache_bytes == 61 * (512 + 64) * 2 == 70_272


def test_the_cache_keeps_keys_and_values_of_the_key_value_heads():
    assert cost(read_config(LLAMA3, "llama"), 1).cache_bytes == 2 * 32 * 8 * 128 * 2 == 131072  # 128 KiB a token
    assert cost(read_config(T5_11B, "t5"), 1).cache_bytes == 2 * 24 * 128 * 128 * 2  # the decoder's
    assert cost(read_config(VIT_H, "vit"), 1).cache_bytes == 0
    assert cost(read_config(ALBERT, "albert"), 1).cache_bytes == 0


def test_bytes_and_depth():
    found = cost(dense(), 10)
    assert found.weight_bytes == 2 * dense().params
    assert found.training_bytes == 16 * dense().params
    assert found.sequential_depth == 12
