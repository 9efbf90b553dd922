"""Tokens, FLOPs and GPU-hours: there and back, against torch's counter, and what is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tests.advice.budget.models import built, rows
from tests.advice.shapes import LLAMA3, dense
from theodolite.advice.budget.amounts import amount
from theodolite.advice.budget.gpus import GPUS, gpu
from theodolite.advice.budget.resources import Resources
from theodolite.advice.budget.spending import Rate, spend, training_flops
from theodolite.advice.configs import read_config
from theodolite.errors import BadInput, UnknownName


@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen2"])
def test_training_flops_are_what_torch_counts(family):
    """Two percent: norms and biases count as parameters here, and torch's counter has only matrix products."""
    pytest.importorskip("transformers")
    model, shape = built(family, vocab=512)
    ids = rows(2, 64, 512)
    math = torch.nn.attention.SDPBackend.MATH
    with FlopCounterMode(display=False) as counted, torch.nn.attention.sdpa_kernel(math):
        model(ids, labels=ids, use_cache=False).loss.backward()
    assert counted.get_total_flops() == pytest.approx(ids.numel() * training_flops(shape, 64), rel=0.02)


@given(tokens=st.floats(1e6, 1e14), mfu=st.floats(0.01, 1), gpus=st.integers(1, 10**5), name=st.sampled_from([*GPUS]))
def test_each_follows_from_each(tokens, mfu, gpus, name):
    shape, rate = dense(), Rate(gpu(name), mfu, gpus)
    one = spend(shape, 1024, tokens=tokens, rate=rate)
    assert one.flops == pytest.approx(tokens * one.flops_per_token)
    for other in (
        spend(shape, 1024, flops=one.flops, rate=rate),
        spend(shape, 1024, gpu_hours=one.gpu_hours, rate=rate),
    ):
        assert other.tokens == pytest.approx(tokens)
        assert other.days == pytest.approx(one.days)
    assert one.days * 24 * gpus == pytest.approx(one.gpu_hours)


def test_llama_3_by_hand():
    """15T tokens are 1,868 for each of its 8.03B parameters, 93 times Chinchilla's."""
    shape = read_config(LLAMA3, "Llama 3 8B")
    found = spend(shape, 8192, tokens=15e12, rate=Rate(gpu("h100"), 0.4))
    assert round(found.tokens_per_parameter) == 1868
    assert round(found.times_chinchilla) == 93
    by_hand = 6 * (shape.params - 128256 * 4096) + 12 * 32 * 4096 * 8192
    assert found.flops_per_token == by_hand
    assert found.gpu_hours == pytest.approx(15e12 * by_hand / (0.4 * 989e12) / 3600)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2T", 2e12), ("1.5t", 1.5e12), ("1e24", 1e24), ("1E+24", 1e24), ("100k", 1e5), ("7,000", 7e3), (3, 3.0)],
)
def test_amounts(text, value):
    assert amount("--tokens", text, "2T") == value


@pytest.mark.parametrize("text", ["", "many", "-2T", "0", "1e999", "2TT", "nan", "inf", float("nan"), -1])
def test_what_is_no_amount(text):
    with pytest.raises(BadInput, match="is not a positive amount: write for example --tokens 2T"):
        amount("--tokens", text, "2T")


def test_unknown_gpus_are_answered_with_near_names():
    with pytest.raises(UnknownName, match="no GPU 'h10' in the table, did you mean 'h100'"):
        gpu("h10")
    assert gpu("H100 PCIe") is GPUS["h100-pcie"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tokens": "2T", "flops": "1e24"}, "--tokens and --flops are given, but each follows from the other"),
        ({"gpu_hours": "100k"}, "--gpu-hours needs the kind of GPU: add for example --gpu h100"),
        ({"mfu": 0.4}, "--mfu is a share of a GPU's peak: add for example --gpu h100"),
        ({"gpu": "h100", "mfu": 0.0}, "--mfu 0.0 is not a share of the peak"),
        ({"gpu": "h100", "mfu": 1.5}, "--mfu 1.5 is not a share of the peak"),
        ({"gpu": "h100", "mfu": float("nan")}, "--mfu nan is not a share of the peak"),
        ({"gpu": "tpu"}, "there is no GPU 'tpu' in the table"),
        ({"batch": 0}, "--batch is 0: pass an integer of at least 1"),
        ({"gpus": 0}, "--gpus is 0: pass"),
        ({"sequence": -5}, "--sequence is -5: pass"),
        ({"zero": 4, "gpus": 8}, "there is no ZeRO stage 4: pass --zero 0, 1, 2 or 3"),
        ({"zero": 3}, "--zero 3 divides among GPUs and there is one: add for example --gpus 8"),
        ({"recompute": "half"}, "--recompute 'half' is none of none, selective, full"),
        ({"optimiser": "adamw"}, "there is no optimiser 'adamw' here: use adam"),
        ({"gradients": "fp8"}, "--gradients 'fp8' is neither of bf16 and fp32"),
        ({"tokens": "lots"}, "--tokens 'lots' is not a positive amount"),
    ],
)
def test_what_is_refused(given, told):
    with pytest.raises(BadInput, match=told):
        Resources(**given)


def test_what_was_said():
    assert not Resources().said
    assert Resources(batch=1).said
    assert Resources().best_size() is None
    assert Resources(flops="5.76e23").best_size() == pytest.approx(72e9, rel=0.01)
    assert Resources(tokens="1.33T").best_size() == pytest.approx(72e9, rel=0.02)
    hours = Resources(gpu_hours="1M", gpu="h100", mfu=0.4)
    assert hours.flops_given() == pytest.approx(1e6 * 3600 * 0.4 * 989e12)
