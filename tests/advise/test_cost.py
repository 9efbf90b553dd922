"""Costs against torch's own counter, and against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from theodolite.advise.configs import read_config
from theodolite.advise.cost import cost, multiplied_parameters
from theodolite.advise.measure import Block

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
