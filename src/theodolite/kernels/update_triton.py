"""The kernel of `update`: a program for a block of one member's entries, which a row of the table names."""

# pyright: reportGeneralTypeIssues=false
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(
    do_not_specialize=["gradient_ptr", "length_ptr", "number_ptr", "lr_ptr", "decay_ptr", "start", "blocks", "total"]
)
def adamw(
    table_ptr, gradient_ptr, length_ptr, number_ptr, lr_ptr, decay_ptr, start, blocks, total, clip, epsilon,
    BETA1: tl.constexpr, BETA2: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr, EARLY: tl.constexpr,
    SIDE: tl.constexpr,
):  # fmt: skip
    """A gradient with more rows than one is transposed: entry (r, c) of its parameter is (c, r) there."""
    member = (tl.program_id(0) // blocks).to(tl.int64)
    at = table_ptr + (tl.program_id(0) % blocks) * 8
    begin, rows, columns = tl.load(at + 3), tl.load(at + 4).to(tl.int32), tl.load(at + 5).to(tl.int32)
    entry = tl.arange(0, SIDE * SIDE)
    row = tl.load(at + 6).to(tl.int32) + tl.where(rows > 1, entry // SIDE, 0)
    column = tl.load(at + 7).to(tl.int32) + tl.where(rows > 1, entry % SIDE, entry)
    there = (row < rows) & (column < columns)
    where = (start + member) * rows * columns + row * columns + column
    gradient = tl.load(gradient_ptr + member * total + begin + column * rows + row, mask=there, other=0.0)
    if length_ptr is not None:
        scale = clip / (tl.load(length_ptr + member) + 1e-6)
        gradient *= tl.where(scale > 1.0, 1.0, scale)  # what is no number stays so
    lr, decay = tl.load(lr_ptr + start + member), tl.load(decay_ptr + start + member)
    first, root = corrections(tl.load(number_ptr), LOG1, LOG2)
    move_entries(at, where, there, gradient, first, root, lr, decay, epsilon, BETA1, BETA2, EARLY)


@triton.jit
def corrections(number, LOG1: tl.constexpr, LOG2: tl.constexpr):
    """What Adam's moments are multiplied by in step `number`, the second's root."""
    number = number.to(tl.float64)  # βᵗ is near 1 in the first steps
    first = 1.0 / (1.0 - tl.exp(number * LOG1)).to(tl.float32)
    root = 1.0 / tl.sqrt_rn((1.0 - tl.exp(number * LOG2)).to(tl.float32))
    return first, root


@triton.jit
def move_entries(
    at, where, there, gradient, first, root, lr, decay, epsilon,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Entries moved along their gradient; addresses of parameter and moments are `at` a table."""
    parameter_ptr = tl.load(at).to(tl.pointer_type(tl.float32)) + where
    mean_ptr = tl.load(at + 1).to(tl.pointer_type(tl.float32)) + where
    square_ptr = tl.load(at + 2).to(tl.pointer_type(tl.float32)) + where
    parameter = tl.load(parameter_ptr, mask=there, other=0.0)
    mean = tl.load(mean_ptr, mask=there, other=0.0)
    square = tl.load(square_ptr, mask=there, other=0.0)
    mean += (gradient - mean) * (1.0 - BETA1)
    square = square * BETA2 + gradient * gradient * (1.0 - BETA2)
    if EARLY:
        below, step = tl.sqrt_rn(square) + epsilon, lr * first / root
    else:
        below, step = tl.sqrt_rn(square) * root + epsilon, lr * first
    parameter = parameter * (1.0 - lr * decay) - step * tl.div_rn(mean, below)
    tl.store(parameter_ptr, parameter, mask=there)
    tl.store(mean_ptr, mean, mask=there)
    tl.store(square_ptr, square, mask=there)
