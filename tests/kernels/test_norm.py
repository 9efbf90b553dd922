"""The kernel of layer norm against torch's."""

from __future__ import annotations

import pytest

from tests.kernels.interpreted import interpreted
from tests.kernels.norm_cases import SIZES, errors

BOUND = 1e-5


def test_in_the_interpreter_it_agrees_with_torch():
    pytest.importorskip("triton")
    found = interpreted("tests.kernels.norm_cases")
    assert len(found) == len(SIZES)
    assert max(found.values()) < BOUND, found


@pytest.mark.gpu
def test_on_cuda_it_agrees_with_torch():
    found = errors("cuda")
    assert max(found.values()) < BOUND, found
