"""Measured costs: the block against torch's own attention, its memory against a chain of known size."""

from __future__ import annotations

import pytest
import torch

from theodolite.advice.advice import advise
from theodolite.advice.measure import Block, _peak, measure_shape
from theodolite.errors import BadInput

from .shapes import GPT2, dense


def test_the_block_has_the_parameters_of_its_shape():
    block = Block(dense(1, 64, 4, head_width=16))
    assert sum(weight.numel() for weight in block.parameters()) == 12 * 64**2 + 2 * 64  # two norms


def test_the_block_is_causal_and_groups_its_heads():
    generator = torch.Generator().manual_seed(0)
    block = Block(dense(1, 32, 4, key_value_heads=2, gated=True))
    x = torch.randn(1, 6, 32, generator=generator)
    changed = x.clone()
    changed[:, 3] += 1
    with torch.no_grad():
        one, other = block(x), block(changed)
    assert torch.allclose(one[:, :3], other[:, :3], atol=1e-6)
    assert not torch.allclose(one[:, 3:], other[:, 3:], atol=1e-3)
    assert block.key.weight.shape == (2 * 8, 32)


def test_peak_memory_is_what_is_alive_at_once():
    size = 4 * 100 * 100

    def chain(keep):
        made = [torch.zeros(100, 100)]
        for _ in range(10):
            made.append(made[-1].view(-1).view(100, 100) + 1)
            if not keep:
                del made[0]
        return made[-1]

    assert _peak(lambda: chain(keep=False), torch.device("cpu")) == 2 * size
    assert _peak(lambda: chain(keep=True), torch.device("cpu")) == 11 * size


def test_a_small_stack_is_built_whole_and_a_large_one_by_one_block(monkeypatch):
    monkeypatch.setattr("theodolite.advice.measure._SECONDS", 0.01)
    whole = measure_shape(dense(3, 32, 4), tokens=8)
    assert (whole.blocks, whole.blocks_built) == (3, 3)
    weights = 4 * 3 * (12 * 32**2 + 2 * 32)
    assert weights < whole.peak_bytes < weights + 4 * 8 * 32 * 40
    part = measure_shape(dense(100, 256, 4), tokens=4)
    assert (part.blocks, part.blocks_built) == (100, 1)
    assert part.tokens_per_second == pytest.approx(4 / part.seconds)
    assert "100 times" in part.what


def test_both_shapes_are_measured_and_reported(monkeypatch):
    monkeypatch.setattr("theodolite.advice.measure._SECONDS", 0.01)
    advice = advise(GPT2, context=4, measure=True)
    assert advice.measured is not None
    assert list(advice.measured) == ["given", "advised"]
    assert advice.to_json()["measured"]["given"]["tokens"] == 4


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="device"):
        advise(GPT2, measure=True, device="nowhere")
