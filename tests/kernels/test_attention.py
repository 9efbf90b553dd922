"""Attention without a matrix of weights in memory gives what torch's own attention gives."""

from __future__ import annotations

import pytest
import torch

from . import attention_cases as cases
from .interpreted import interpreted

LARGE = [(64, 4, 20, 4), (64, 4, 20, 13), (16, 8, 40, 8), (16, 8, 80, 32), (2, 2, 512, 16), (1, 2, 300, 64)]


def test_in_the_interpreter():
    pytest.importorskip("triton")
    found = interpreted("tests.kernels.attention_cases")
    assert not {case: error for case, error in found.items() if error > 2e-6}


@pytest.mark.gpu
def test_on_the_gpu():
    device = torch.device("cuda")
    found = cases.compare_all(device, cases.SHAPES + LARGE) | cases.strange(device, 4) | cases.strange(device, 16)
    found |= cases.through_nets(device, 3, 8, 20, 32)
    assert not {case: error for case, error in found.items() if error > 1e-5}


@pytest.mark.gpu
def test_long_sequences_in_tf32_on_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    long = [(2, 3, 128, 16), (2, 2, 100, 24), (1, 2, 65, 8), (2, 1, 128, 64)]
    found = cases.compare(torch.device("cuda"), long)
    assert not {case: error for case, error in found.items() if error > 3e-3}
