"""Whole steps of perceptrons by one kernel against plain torch in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.kernels.interpreted import interpreted
from tests.kernels.perceptron_cases import CASES, Plain, apart, error, spoilt
from theodolite.kernels.perceptron import PerceptronDescent
from theodolite.training.precision import multiplying

BOUND = 5e-4  # of a weight's move, which is a thousandth of the weight: 4 units of its last place


@pytest.fixture(scope="module")
def found() -> Any:
    pytest.importorskip("triton")
    return interpreted("tests.kernels.perceptron_cases")


@pytest.mark.parametrize("case", CASES)
def test_every_member_moves_as_autograd_and_torch_optim_move_one(found, case):
    assert found["errors"][case] < BOUND


def test_a_member_that_reads_no_number_spoils_itself_alone(found):
    assert found["spoilt"] == [False, True, False]


def test_a_program_of_perceptrons_takes_it_and_agrees_with_one_by_one(found):
    taken, difference = found["net"]
    assert taken
    assert difference < BOUND


def test_a_kernel_that_disagrees_with_plain_steps_is_not_used(found):
    taken, difference = found["wrong"]
    assert not taken
    assert difference < BOUND


def test_a_class_of_a_user_is_left_to_autograd(found):
    taken, difference = found["user"]
    assert not taken
    assert difference < BOUND


def test_on_a_processor_they_are_not_used(monkeypatch):
    monkeypatch.setattr(PerceptronDescent, "step", lambda *_: pytest.fail("the kernel ran"))
    assert not apart("mlp", "cpu")[0]


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_on_cuda_every_member_moves_as_autograd_and_torch_optim_move_one(case):
    assert error(CASES[case], "cuda") < BOUND


@pytest.mark.gpu
def test_on_cuda_the_rest_holds_too():
    assert spoilt("cuda") == [False, True, False]
    assert apart("mlp", "cuda")[0]
    assert apart("mlp", "cuda")[1] < BOUND
    assert not apart(Plain, "cuda")[0]


@pytest.mark.gpu
def test_in_tf32_they_err_by_what_that_rounds():
    with multiplying("tf32", torch.device("cuda")):
        assert error(CASES["classes, some rows do not count"], "cuda") > BOUND
        assert (
            error(CASES["classes, some rows do not count"], "cuda", typical=True) < 0.1
        )  # signs of tiny ones may turn
