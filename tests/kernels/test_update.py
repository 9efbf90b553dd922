"""The kernel of AdamW against `torch.optim`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.kernels.interpreted import interpreted
from tests.kernels.update_cases import CASES, early, error, spoilt
from theodolite.kernels.launch import fusing
from theodolite.kernels.update import AdamUpdate
from theodolite.training.optimiser import Optimiser, Pace, Rates, Rule

BOUND = 1e-6


@pytest.fixture(scope="module")
def found() -> Any:
    pytest.importorskip("triton")
    return interpreted("tests.kernels.update_cases")


@pytest.mark.parametrize("case", CASES)
def test_every_member_moves_as_torch_optim_moves_one(found, case):
    assert found["errors"][case] < BOUND


def test_early_epsilon_and_kept_members_are_as_tensor_by_tensor(found):
    assert found["early"] < BOUND


def test_a_member_whose_gradient_is_no_number_spoils_itself_alone(found):
    assert found["spoilt"] == [False, True, False]


def test_elsewhere_it_is_not_used(monkeypatch):
    monkeypatch.setattr(AdamUpdate, "step", lambda *_: pytest.fail("the kernel ran"))
    for dtype in (torch.float32, torch.float64):
        own = {"weight": torch.ones(2, 3, dtype=dtype)}
        Optimiser(Rule(), [Rates(0.1)] * 2, own).update(0, 2, [torch.ones_like(own["weight"])], Pace(torch.ones(())))
        assert (own["weight"] < 1).all()


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_on_cuda_every_member_moves_as_torch_optim_moves_one(case):
    assert error(CASES[case], "cuda") < BOUND


@pytest.mark.gpu
def test_on_cuda_the_rest_holds_too():
    assert early("cuda") < BOUND
    assert spoilt("cuda") == [False, True, False]


@pytest.mark.gpu
def test_a_captured_step_moves_as_one_that_is_not():
    results = []
    for captured in (False, True):
        own = {"weight": torch.ones(3, 40, 50, device="cuda"), "bias": torch.ones(3, 7, device="cuda")}
        optimiser = Optimiser(Rule(), [Rates(0.1), Rates(0.2, 0.1), Rates(0.1)], own)
        number, factor = torch.ones((), device="cuda"), torch.full((), 0.5, device="cuda")
        gradients = [torch.linspace(-1, 1, p.numel(), device="cuda").view_as(p) for p in own.values()]
        gradients[0] = gradients[0].mT.contiguous().mT

        def step() -> None:
            optimiser.update(0, 3, gradients, Pace(number, factor))  # noqa: B023
            number.add_(1)  # noqa: B023

        with fusing():
            step()
            if captured:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    step()
                take = graph.replay
            else:
                take = step
            for _ in range(3):
                take()
        results.append(own)
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)
