"""The kernels of recurrences against the loop over tokens in float64."""

from __future__ import annotations

import pytest

from tests.kernels.interpreted import interpreted
from tests.kernels.recurrences import LAYERS, SMALL, errors, example_error, streamed_error

BOUND = 1e-5


def test_in_the_interpreter_they_agree_with_the_loop():
    pytest.importorskip("triton")
    found = interpreted("tests.kernels.recurrences")
    assert len(found["batched"]) == len(LAYERS) * len(SMALL)
    assert max(found["batched"].values()) < BOUND
    assert max(found["streamed"].values()) < BOUND
    assert max(found["examples"].values()) < BOUND
    assert all("no second derivative" in said for said in found["twice"].values())


@pytest.mark.gpu
@pytest.mark.parametrize(
    "size", [(5, 17, 6, 16), (3, 40, 5, 24), (2, 33, 7, 122), (40, 70, 4, 64), (2, 20, 5, 256), (1, 9, 3, 512)]
)
@pytest.mark.parametrize("cell", LAYERS)
def test_on_cuda_they_agree_with_the_loop(cell, size):
    assert max(errors(cell, *size, device="cuda").values()) < BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("cell", LAYERS)
def test_on_cuda_one_program_can_take_all_units(cell):
    assert streamed_error(cell, "cuda") < BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("cell", LAYERS)
def test_on_cuda_every_example_has_its_own_gradient(cell):
    assert example_error(cell, "cuda") < BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("cell", LAYERS)
def test_on_cuda_they_run_in_bfloat16_under_autocast(cell):
    assert (
        1e-4 < max(errors(cell, 3, 20, 5, 40, device="cuda", autocast=True).values()) < 0.1
    )  # units of relu at 0 go either way
