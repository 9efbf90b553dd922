"""Where kernels may stand in for torch's operations."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from theodolite.kernels import launch
from theodolite.kernels.launch import FirstDerivative, NoSecondDerivative, fusing, usable


class Cube(torch.autograd.Function):
    """x³ with its gradient as a kernel's."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, *gradients):
        return CubeGradient.apply(gradients[0], *ctx.saved_tensors)


class CubeGradient(FirstDerivative):
    @staticmethod
    def forward(gradient, x):
        return gradient * 3 * x**2


def test_they_are_used_only_inside_training(monkeypatch):
    monkeypatch.setattr(launch, "_present", lambda: True)
    there = SimpleNamespace(device=torch.device("cuda"), dtype=torch.float32)
    assert usable(there)  # every test of this folder is inside
    token = launch._FUSING.set(False)
    try:
        assert not usable(there)
        with fusing():
            assert usable(there)
            assert not usable(SimpleNamespace(device=torch.device("cuda"), dtype=torch.float64))
            assert not usable(torch.zeros(1)), "there is no GPU in it"
        assert not usable(there)
    finally:
        launch._FUSING.reset(token)


def test_who_differentiates_twice_all_the_same_is_told():
    x = torch.tensor(2.0, requires_grad=True)
    (slope,) = torch.autograd.grad(Cube.apply(x), x, create_graph=True)
    assert slope.item() == 12
    with pytest.raises(NoSecondDerivative, match="no second derivative: differentiate outside `fusing`, or in float64"):
        torch.autograd.grad(slope, x)
