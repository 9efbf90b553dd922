"""A linear recurrence token by token gives what it gives in chunks of matrices."""

from __future__ import annotations

import pytest
import torch

from . import scan_cases as cases
from .interpreted import interpreted

LARGE = [
    (64, 4, 20, 8, 8, 1, True, True),
    (16, 4, 40, 16, 16, 1, True, True),
    (16, 4, 80, 32, 16, 2, True, False),
    (4, 2, 300, 64, 64, 1, False, True),
]


def test_in_the_interpreter():
    pytest.importorskip("triton")
    found = interpreted("tests.kernels.scan_cases")
    assert not {case: error for case, error in found.items() if error > 5e-6}


@pytest.mark.gpu
def test_on_the_gpu():
    device = torch.device("cuda")
    found = cases.compare(device, cases.SHAPES + LARGE)
    found |= cases.compare_diagonal(device, [*cases.DIAGONAL, (64, 100, 32, 16)])
    found |= cases.through_nets(device, 3, 8, 20, 32)
    assert not {case: error for case, error in found.items() if error > 1e-5}
