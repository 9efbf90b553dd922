"""What kernels share: loading and storing tiles, their product, tanh."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_tile(base, rows, columns, row_stride, column_stride, row_end, column_end):
    """float32, 0 outside."""
    inside = (rows[:, None] < row_end) & (columns[None, :] < column_end)
    where = rows[:, None] * row_stride + columns[None, :] * column_stride
    return tl.load(base + where, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def load_row(base, columns, column_end):
    """float32, 0 outside, one row to be added to a tile."""
    return tl.load(base + columns, mask=columns < column_end, other=0.0).to(tl.float32)[None, :]


@triton.jit
def store_tile(base, tile, rows, columns, row_stride, row_end, column_end):
    inside = (rows[:, None] < row_end) & (columns[None, :] < column_end)
    tl.store(base + rows[:, None] * row_stride + columns[None, :], tile.to(base.dtype.element_ty), mask=inside)


@triton.jit
def load_three(base, rows, columns, row_stride, column_stride, apart, row_end, column_end):
    """Three tiles, `apart` from each other."""
    return (
        load_tile(base, rows, columns, row_stride, column_stride, row_end, column_end),
        load_tile(base + apart, rows, columns, row_stride, column_stride, row_end, column_end),
        load_tile(base + 2 * apart, rows, columns, row_stride, column_stride, row_end, column_end),
    )


@triton.jit
def load_four(base, rows, columns, row_stride, column_stride, apart, row_end, column_end):
    """Four tiles, `apart` from each other."""
    return (
        load_tile(base, rows, columns, row_stride, column_stride, row_end, column_end),
        load_tile(base + apart, rows, columns, row_stride, column_stride, row_end, column_end),
        load_tile(base + 2 * apart, rows, columns, row_stride, column_stride, row_end, column_end),
        load_tile(base + 3 * apart, rows, columns, row_stride, column_stride, row_end, column_end),
    )


@triton.jit
def store_four(base, first, second, third, fourth, rows, columns, row_stride, row_end, width):
    """Side by side, `width` from each other."""
    store_tile(base, first, rows, columns, row_stride, row_end, width)
    store_tile(base + width, second, rows, columns, row_stride, row_end, width)
    store_tile(base + 2 * width, third, rows, columns, row_stride, row_end, width)
    store_tile(base + 3 * width, fourth, rows, columns, row_stride, row_end, width)


@triton.jit
def _nearest(x):
    """The nearest TF32 number; of what is left of x, TF32 holds all but a 2⁻²³ of x."""
    return ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def add_product(total, left, right, PRECISION: tl.constexpr):
    """total + left·right, multiplied as `launch.precision` says."""
    if PRECISION == "bf16":
        return tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16), total)
    elif PRECISION == "tf32x3":
        left_near, right_near = _nearest(left), _nearest(right)
        product = tl.dot(left - left_near, right_near, input_precision="tf32")
        product = tl.dot(left_near, right - right_near, product, input_precision="tf32")
        product = tl.dot(left_near, right_near, product, input_precision="tf32")
        return total + product  # not by the tensor cores, which round down
    else:
        return tl.dot(left, right, total, input_precision=PRECISION)


@triton.jit
def tanh(x):
    small = tl.exp(-2 * tl.abs(x))
    size = (1 - small) / (1 + small)
    return tl.where(x < 0, -size, size)
