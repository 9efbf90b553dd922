"""When a kernel of perceptrons is taken for wrong: by weights whose gradient is more than rounding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from theodolite.training.perceptron_step import moved_otherwise

STEP = 1e-3
BEFORE = torch.zeros(1, 100)
MEAN = torch.cat([torch.full((1, 50), 0.1), torch.full((1, 50), 1e-9)], dim=1)  # of the gradient; half is rounding


def share(moves: Tensor) -> float:
    """Of weights moved as Adam's first step moves them, by the sign of the gradient, beside these."""
    plain = -STEP * MEAN.sign()
    return moved_otherwise("w", [{"w": moves}], [{"w": plain}, {"w": MEAN}], {"w": BEFORE})


def test_signs_of_rounding_do_not_count():
    turned = -STEP * MEAN.sign()
    turned[:, 50:] *= -1
    assert share(turned) == 0.0


def test_other_signs_do():
    turned = -STEP * MEAN.sign()
    turned[:, :10] *= -1
    assert share(turned) == pytest.approx(0.2)


def test_a_kernel_that_moves_nothing_is_wrong():
    assert share(BEFORE) == 1.0
