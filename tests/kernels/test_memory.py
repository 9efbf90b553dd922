"""The kernels of nets with a stack or a tape against their loops over tokens in float64."""

from __future__ import annotations

import pytest

from tests.each import each
from tests.kernels.interpreted import interpreted
from tests.kernels.memories import SMALL, errors, example_error

BOUND = 1e-5
# Smooth, or with few units that are cut off at 0: where float32 and float64 differ about one, so do their gradients.
LARGE = [
    ("stack-rnn", {"width": 256, "activation": "tanh"}, (5, 32, 40)),
    ("stack-rnn", {"width": 256, "activation": "tanh"}, (30, 128, 7)),
    ("stack-rnn", {"width": 512}, (2, 17, 5)),
    ("stack-rnn", {"width": 122, "stack": 7, "activation": "tanh"}, (8, 33, 60)),
    ("tape-rnn", {"width": 256, "write_layers": 2, "activation": "tanh"}, (2, 17, 30)),
    ("tape-rnn", {"width": 256, "write_layers": 2, "activation": "tanh"}, (50, 33, 3)),
    ("tape-rnn", {"width": 512}, (2, 17, 5)),
    ("tape-rnn", {"width": 122, "tape": 21, "jump": 4, "activation": "tanh"}, (8, 33, 60)),
]


def test_in_the_interpreter_they_agree_with_the_loop():
    pytest.importorskip("triton")
    found = interpreted("tests.kernels.memories")
    assert len(found["batched"]) == len(SMALL)
    assert max(found["batched"]) < BOUND
    assert max(found["examples"].values()) < BOUND
    assert all("no second derivative" in said for said in found["twice"].values())


@pytest.mark.gpu
@each(("net", "arguments", "size"), SMALL + LARGE)
def test_on_cuda_they_agree_with_the_loop(net, arguments, size):
    assert max(errors(net, arguments, size, device="cuda").values()) < BOUND


@pytest.mark.gpu
@each("net", sorted({name for name, _, _ in SMALL}))
def test_on_cuda_every_example_has_its_own_gradient(net):
    assert example_error(net, "cuda") < BOUND


@pytest.mark.gpu
@each(("net", "arguments"), [("stack-rnn", {}), ("tape-rnn", {}), ("tape-rnn", {"write_layers": 2})])
def test_on_cuda_they_run_in_bfloat16_under_autocast(net, arguments):
    smooth = {"width": 40, "activation": "tanh", **arguments}
    assert 1e-4 < max(errors(net, smooth, (3, 20, 5), device="cuda", autocast=True).values()) < 0.1
