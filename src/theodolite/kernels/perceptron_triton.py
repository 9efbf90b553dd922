"""The kernel of `perceptron`: a program takes one member through all layers, back, and one step on.

A row of the table is a layer: addresses of weight, its two moments, bias, its two moments; entries read and made; where
in a row of `held` its inputs, outputs and the gradient of these are. A weight is (read, made) in memory.
"""

# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false
from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.tiles import add_product, load_row, load_tile, store_tile
from theodolite.kernels.update_triton import corrections, move_entries

COLUMNS = tl.constexpr(11)  # of the table


@triton.jit
def _layer(table_ptr, layer):
    at = table_ptr + layer * COLUMNS
    weight = tl.load(at).to(tl.pointer_type(tl.float32))
    bias = tl.load(at + 3).to(tl.pointer_type(tl.float32))
    inner, outer = tl.load(at + 6).to(tl.int32), tl.load(at + 7).to(tl.int32)
    reads, makes, back = tl.load(at + 8), tl.load(at + 9), tl.load(at + 10)
    return weight, bias, inner, outer, reads, makes, back


@triton.jit
def _forward(
    table_ptr, layer, member, source, source_stride, held, width, rows, row, bends,
    TILE: tl.constexpr, DEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """x W + b of one layer, with ReLU where it bends."""
    weight, bias, inner, outer, _, makes, _ = _layer(table_ptr, layer)
    weight += member * inner * outer
    bias += member * outer
    tile, deep = tl.arange(0, TILE), tl.arange(0, DEEP)
    for column in range(0, outer, TILE):
        total = tl.zeros((row.shape[0], TILE), tl.float32)
        for place in range(0, inner, DEEP):
            x = load_tile(source, row, place + deep, source_stride, 1, rows, inner)
            w = load_tile(weight, place + deep, column + tile, outer, 1, inner, outer)
            total = add_product(total, x, w, PRECISION)
        total += load_row(bias, column + tile, outer)
        total = tl.where((total > 0) | (bends == 0) | (total != total), total, 0.0)  # what is no number stays so
        store_tile(held + makes, total, row, column + tile, width, rows, outer)
    tl.debug_barrier()  # what was made is there for all threads


@triton.jit
def _loss_gradient(outputs, targets_ptr, mask_ptr, rows, count, row, output, LOSS: tl.constexpr):
    """Of the mean over what counts. `targets` and `mask` have an entry for every output, or one a row for classes."""
    inside = (row[:, None] < rows) & (output[None, :] < count)
    if LOSS == "cross-entropy":
        counts = tl.load(mask_ptr + row, mask=row < rows, other=0).to(tl.float32)[:, None]
        target = tl.load(targets_ptr + row, mask=row < rows, other=0)
        outputs = tl.where(output[None, :] < count, outputs, -float("inf"))
        shares = tl.exp(outputs - tl.max(outputs, axis=1)[:, None])
        shares = shares / tl.sum(shares, axis=1)[:, None]
        found = shares - (output[None, :] == target[:, None]).to(tl.float32)
    else:
        counts = load_tile(mask_ptr, row, output, count, 1, rows, count)
        target = load_tile(targets_ptr, row, output, count, 1, rows, count)
        if LOSS == "hinge":
            found = tl.where(1 - outputs * target <= 0, 0.0, -target)
            found = tl.where(outputs != outputs, outputs, found)  # what is no number stays so
        else:
            found = 2 * (outputs - target)
    number = tl.sum(tl.sum(counts, axis=1), axis=0)
    return tl.where(inside & (counts > 0), found / number, 0.0)


@triton.jit
def _gram(source, stride, entries, rows, row, TILE: tl.constexpr):
    """Products of every two rows."""
    tile = tl.arange(0, TILE)
    total = tl.zeros((row.shape[0], row.shape[0]), tl.float32)
    for place in range(0, entries, TILE):
        x = load_tile(source, row, place + tile, stride, 1, rows, entries)
        total = add_product(total, x, tl.trans(x), "tf32x3")
    return total


@triton.jit
def _backward(
    table_ptr, layer, member, held, width, rows, row, TILE: tl.constexpr, DEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradient of what the layer reads, where the ReLU before it let something through."""
    weight, _, inner, outer, reads, _, back = _layer(table_ptr, layer)
    weight += member * inner * outer
    before = tl.load(table_ptr + (layer - 1) * COLUMNS + 10)
    tile, deep = tl.arange(0, TILE), tl.arange(0, DEEP)
    for column in range(0, inner, TILE):
        total = tl.zeros((row.shape[0], TILE), tl.float32)
        for place in range(0, outer, DEEP):
            g = load_tile(held + back, row, place + deep, width, 1, rows, outer)
            w = load_tile(weight, place + deep, column + tile, 1, outer, outer, inner)
            total = add_product(total, g, w, PRECISION)
        x = load_tile(held + reads, row, column + tile, width, 1, rows, inner)
        total = tl.where(x > 0, total, 0.0)
        store_tile(held + before, total, row, column + tile, width, rows, inner)
    tl.debug_barrier()


@triton.jit
def _square_length(table_ptr, layers, inputs, features, held, width, rows, row, DEEP: tl.constexpr):
    """Of the whole gradient by weights. A layer's is Σ_r x_r g_rᵀ, whose square is Σ_rs (x_r·x_s)(g_r·g_s), so that no
    gradient is needed for it."""
    _, _, _, outer, _, _, back = _layer(table_ptr, 0)
    read = _gram(inputs, features, features, rows, row, DEEP)
    made = _gram(held + back, width, outer, rows, row, DEEP)
    square = tl.sum(tl.sum((read + 1) * made, axis=1), axis=0)  # 1: a bias reads a one
    for layer in range(1, layers):
        _, _, inner, outer, reads, _, back = _layer(table_ptr, layer)
        read = _gram(held + reads, width, inner, rows, row, DEEP)
        made = _gram(held + back, width, outer, rows, row, DEEP)
        square += tl.sum(tl.sum((read + 1) * made, axis=1), axis=0)
    return tl.where(square < 0, 0.0, square)


@triton.jit
def _update(
    table_ptr, layer, member, source, source_stride, held, width, rows, row, scale, first, root, lr, decay, epsilon,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EARLY: tl.constexpr,
    TILE: tl.constexpr, DEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """AdamW of a layer, with the gradient of each tile made where it is used."""
    _, _, inner, outer, _, _, back = _layer(table_ptr, layer)
    at = table_ptr + layer * COLUMNS
    for column in range(0, outer, TILE):
        made = column + tl.arange(0, TILE)
        g = load_tile(held + back, row, made, width, 1, rows, outer)
        for place in range(0, inner, DEEP):
            read = place + tl.arange(0, DEEP)
            x = load_tile(source, read, row, 1, source_stride, inner, rows)
            gradient = add_product(tl.zeros((DEEP, TILE), tl.float32), x, g, PRECISION) * scale
            where = member * inner * outer + read[:, None] * outer + made[None, :]
            there = (read[:, None] < inner) & (made[None, :] < outer)
            move_entries(at, where, there, gradient, first, root, lr, decay, epsilon, BETA1, BETA2, EARLY)
        of_bias, where = tl.sum(g, axis=0) * scale, member * outer + made
        move_entries(at + 3, where, made < outer, of_bias, first, root, lr, decay, epsilon, BETA1, BETA2, EARLY)


@triton.jit(
    do_not_specialize=[
        "table_ptr", "inputs_ptr", "targets_ptr", "mask_ptr", "held_ptr", "number_ptr", "done_ptr", "lr_ptr",
        "decay_ptr", "start", "width",
    ]
)  # fmt: skip
def descend(
    table_ptr, inputs_ptr, targets_ptr, mask_ptr, held_ptr, number_ptr, done_ptr, lr_ptr, decay_ptr, start, layers,
    rows, features, count, width, per_row, clip, epsilon,
    BETA1: tl.constexpr, BETA2: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr, EARLY: tl.constexpr,
    CLIPS: tl.constexpr, LOSS: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, DEEP: tl.constexpr,
    OUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One member forward, back and one step on. `held` (member, row, entry) gets what every layer makes and its
    gradient. The last program to end counts the step on: all others have read its number by then."""
    own = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    member = start + own
    number = tl.load(number_ptr)
    lr, decay = tl.load(lr_ptr + member), tl.load(decay_ptr + member)
    inputs = inputs_ptr + own * rows * features
    held = held_ptr + own * rows * width
    last = layers - 1
    _forward(table_ptr, 0, member, inputs, features, held, width, rows, row, last, TILE, DEEP, PRECISION)
    for layer in range(1, layers):
        reads = held + tl.load(table_ptr + layer * COLUMNS + 8)
        _forward(table_ptr, layer, member, reads, width, held, width, rows, row, last - layer, TILE, DEEP, PRECISION)

    _, _, _, _, _, makes, back = _layer(table_ptr, last)
    output = tl.arange(0, OUT)
    outputs = load_tile(held + makes, row, output, width, 1, rows, count)
    targets, mask = targets_ptr + own * rows * per_row, mask_ptr + own * rows * per_row
    gradient = _loss_gradient(outputs, targets, mask, rows, count, row, output, LOSS)
    tl.debug_barrier()  # outputs and their gradient share a place
    store_tile(held + back, gradient, row, output, width, rows, count)
    tl.debug_barrier()
    for step in range(0, last):
        _backward(table_ptr, last - step, member, held, width, rows, row, TILE, DEEP, PRECISION)

    scale = tl.full((), 1.0, tl.float32)
    if CLIPS:
        square = _square_length(table_ptr, layers, inputs, features, held, width, rows, row, DEEP)
        scale = clip / (tl.sqrt_rn(square) + 1e-6)
        scale = tl.where(scale > 1.0, 1.0, scale)  # what is no number stays so
    first, root = corrections(number, LOG1, LOG2)
    tl.debug_barrier()  # the weights have been read by all threads
    _update(
        table_ptr, 0, member, inputs, features, held, width, rows, row, scale, first, root, lr, decay, epsilon,
        BETA1, BETA2, EARLY, TILE, DEEP, PRECISION,
    )  # fmt: skip
    for layer in range(1, layers):
        reads = held + tl.load(table_ptr + layer * COLUMNS + 8)
        _update(
            table_ptr, layer, member, reads, width, held, width, rows, row, scale, first, root, lr, decay, epsilon,
            BETA1, BETA2, EARLY, TILE, DEEP, PRECISION,
        )  # fmt: skip
    if tl.atomic_add(done_ptr, 1) == tl.num_programs(0) - 1:
        tl.store(done_ptr, 0)
        tl.store(number_ptr, number + 1)
