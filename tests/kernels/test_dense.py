"""The kernels of linear layers against torch's."""

from __future__ import annotations

import pytest

from tests.kernels.dense_cases import SIZES, errors
from tests.kernels.interpreted import interpreted

BOUND = 1e-5


def test_in_the_interpreter_they_agree_with_torch():
    pytest.importorskip("triton")
    found = interpreted("tests.kernels.dense_cases")
    assert len(found) == 2 * len(SIZES)
    assert max(found.values()) < BOUND, found


@pytest.mark.gpu
def test_on_cuda_they_agree_with_torch():
    found = errors("cuda")
    assert max(found.values()) < BOUND, found
