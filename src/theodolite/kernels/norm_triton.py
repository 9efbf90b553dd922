"""The kernels of `norm`: a program for a block of rows of one member."""

# pyright: reportGeneralTypeIssues=false
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _block(rows, blocks, width: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Its member, the offsets of its numbers, which of them are there, and the places in a row."""
    member, block = (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks
    row, place = block * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (row < rows)[:, None] & (place < width)[None, :]
    return member, (member * rows + row)[:, None] * width + place[None, :], there, place


@triton.jit
def _standard(x, there, epsilon, width: tl.constexpr):
    """Rows of mean 0 and variance 1, and by what they were multiplied."""
    x = tl.where(there, x - (tl.sum(x, axis=1) * (1.0 / width))[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) * (1.0 / width) + epsilon)
    return x * scale[:, None], scale


@triton.jit
def forward(
    x_ptr, weight_ptr, bias_ptr, found_ptr, epsilon, rows, blocks,
    width: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    member, at, there, place = _block(rows, blocks, width, ROWS, WIDTH)
    x, _ = _standard(tl.load(x_ptr + at, mask=there, other=0.0).to(tl.float32), there, epsilon, width)
    weight = tl.load(weight_ptr + member * width + place, mask=place < width, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + member * width + place, mask=place < width, other=0.0).to(tl.float32)
    found = x * weight[None, :] + bias[None, :]
    tl.store(found_ptr + at, found.to(found_ptr.dtype.element_ty), mask=there)


@triton.jit
def backward(
    gradient_ptr, x_ptr, weight_ptr, of_x_ptr, of_weight_ptr, of_bias_ptr, epsilon, rows, blocks,
    width: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient at x, and the block's part of those at weights and biases."""
    member, at, there, place = _block(rows, blocks, width, ROWS, WIDTH)
    x, scale = _standard(tl.load(x_ptr + at, mask=there, other=0.0).to(tl.float32), there, epsilon, width)
    gradient = tl.load(gradient_ptr + at, mask=there, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + member * width + place, mask=place < width, other=0.0).to(tl.float32)
    part = tl.program_id(0).to(tl.int64) * width + place
    tl.store(of_weight_ptr + part, tl.sum(gradient * x, axis=0), mask=place < width)
    tl.store(of_bias_ptr + part, tl.sum(gradient, axis=0), mask=place < width)
    slope = gradient * weight[None, :]
    along = tl.sum(slope * x, axis=1) * (1.0 / width)
    slope = (slope - (tl.sum(slope, axis=1) * (1.0 / width))[:, None] - x * along[:, None]) * scale[:, None]
    tl.store(of_x_ptr + at, slope.to(of_x_ptr.dtype.element_ty), mask=there)
