"""Products of many small matrices on the tensor cores, as exact as float32.

A float32 number is the sum of two TF32 numbers and a rest of 2⁻²² of it; three products of those give the product to
float32's accuracy at a multiple of the rate of the units that multiply float32 numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from theodolite.kernels.launch import declare


def _run(left: Tensor, right: Tensor, precision: str) -> Tensor:
    from theodolite.kernels.product_triton import launch

    found = left.new_empty(left.shape[0], left.shape[1], right.shape[2])
    launch(left, right, found, precision)
    return found


def _shapes(left: Tensor, right: Tensor, precision: str) -> Tensor:
    return left.new_empty(left.shape[0], left.shape[1], right.shape[2])


batched_product = declare("batched_product(Tensor left, Tensor right, str precision) -> Tensor", _run, _shapes)
