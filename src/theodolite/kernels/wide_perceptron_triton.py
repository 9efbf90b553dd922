"""The kernels of `wide_perceptron`: the last layer there and back, and one layer's step. A weight is (read, made) in
memory."""

# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false
from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.perceptron_triton import loss_gradient
from theodolite.kernels.tiles import add_product, load_row, load_tile, store_tile
from theodolite.kernels.update_triton import corrections, moved


@triton.jit(do_not_specialize=["rows"])
def last_layer(
    x_ptr, weight_ptr, bias_ptr, targets_ptr, mask_ptr, gradient_ptr, back_ptr, rows, per_row,
    inner: tl.constexpr, count: tl.constexpr, LOSS: tl.constexpr, ROWS: tl.constexpr, DEEP: tl.constexpr,
    OUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A program takes one member: outputs, the loss's gradient, and that of what the layer reads, where the ReLU before
    it let something through."""
    member = tl.program_id(0).to(tl.int64)
    row, deep, output = tl.arange(0, ROWS), tl.arange(0, DEEP), tl.arange(0, OUT)
    x_ptr += member * rows * inner
    weight_ptr += member * inner * count
    outputs = tl.zeros((ROWS, OUT), tl.float32)
    for place in range(0, inner, DEEP):
        x = load_tile(x_ptr, row, place + deep, inner, 1, rows, inner)
        w = load_tile(weight_ptr, place + deep, output, count, 1, inner, count)
        outputs = add_product(outputs, x, w, PRECISION)
    outputs += load_row(bias_ptr + member * count, output, count)
    targets, mask = targets_ptr + member * rows * per_row, mask_ptr + member * rows * per_row
    gradient = loss_gradient(outputs, targets, mask, rows, count, row, output, LOSS)
    store_tile(gradient_ptr + member * rows * count, gradient, row, output, count, rows, count)
    for place in range(0, inner, DEEP):
        x = load_tile(x_ptr, row, place + deep, inner, 1, rows, inner)
        w = load_tile(weight_ptr, output, place + deep, 1, count, count, inner)
        back = add_product(tl.zeros((ROWS, DEEP), tl.float32), gradient, w, PRECISION)
        back = tl.where(x > 0, back, 0.0)
        store_tile(back_ptr + member * rows * inner, back, row, place + deep, inner, rows, inner)


@triton.jit
def count_on(number_ptr, pace_ptr, LOG1: tl.constexpr, LOG2: tl.constexpr):
    """Adam's two corrections in step `number`, for all that move, and that number plus one."""
    number = tl.load(number_ptr)
    first, root = corrections(number, LOG1, LOG2)
    tl.store(pace_ptr, first)
    tl.store(pace_ptr + 1, root)
    tl.store(number_ptr, number + 1)


@triton.jit(do_not_specialize=["start", "rows"])
def move_layer(
    weight_ptr, weight_mean_ptr, weight_square_ptr, bias_ptr, bias_mean_ptr, bias_square_ptr, x_ptr, g_ptr, scale_ptr,
    pace_ptr, lr_ptr, decay_ptr, start, rows, epsilon, inner: tl.constexpr, outer: tl.constexpr,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EARLY: tl.constexpr, ROWS: tl.constexpr, READ: tl.constexpr,
    MADE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """AdamW of one tile of a member's weights, with the gradient made here from what the layer reads and the gradient
    of what it makes; the tiles of the first entries read move the bias too. Sizes are known when it is compiled, so
    that loads are as wide as they allow; those of weights and moments are on their way while the gradient is made."""
    across: tl.constexpr = (outer + MADE - 1) // MADE
    tiles: tl.constexpr = across * ((inner + READ - 1) // READ)
    own, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    member = start + own
    row = tl.arange(0, ROWS)
    read, made = (tile // across) * READ + tl.arange(0, READ), (tile % across) * MADE + tl.arange(0, MADE)
    weight_ptr += member * (inner * outer)
    weight_mean_ptr += member * (inner * outer)
    weight_square_ptr += member * (inner * outer)
    where = read[:, None] * outer + made[None, :]
    there = (read[:, None] < inner) & (made[None, :] < outer)
    weight = tl.load(weight_ptr + where, mask=there, other=0.0)
    mean = tl.load(weight_mean_ptr + where, mask=there, other=0.0)
    square = tl.load(weight_square_ptr + where, mask=there, other=0.0)
    x = load_tile(x_ptr + own * rows * inner, row, read, inner, 1, rows, inner)
    g = load_tile(g_ptr + own * rows * outer, row, made, outer, 1, rows, outer)
    lr, decay = tl.load(lr_ptr + member), tl.load(decay_ptr + member)
    first, root = tl.load(pace_ptr), tl.load(pace_ptr + 1)
    gradient = add_product(tl.zeros((READ, MADE), tl.float32), tl.trans(x), g, PRECISION)
    if scale_ptr is not None:
        g *= tl.load(scale_ptr + own)
        gradient *= tl.load(scale_ptr + own)
    weight, mean, square = moved(weight, mean, square, gradient, first, root, lr, decay, epsilon, BETA1, BETA2, EARLY)
    tl.store(weight_ptr + where, weight, mask=there)
    tl.store(weight_mean_ptr + where, mean, mask=there)
    tl.store(weight_square_ptr + where, square, mask=there)
    if tile // across == 0:
        at = member * outer + made
        bias = tl.load(bias_ptr + at, mask=made < outer, other=0.0)
        bias_mean = tl.load(bias_mean_ptr + at, mask=made < outer, other=0.0)
        bias_square = tl.load(bias_square_ptr + at, mask=made < outer, other=0.0)
        bias, bias_mean, bias_square = moved(
            bias, bias_mean, bias_square, tl.sum(g, axis=0), first, root, lr, decay, epsilon, BETA1, BETA2, EARLY
        )
        tl.store(bias_ptr + at, bias, mask=made < outer)
        tl.store(bias_mean_ptr + at, bias_mean, mask=made < outer)
        tl.store(bias_square_ptr + at, bias_square, mask=made < outer)
