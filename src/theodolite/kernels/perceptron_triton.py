"""The kernels of `perceptron`: rows of a member through all layers and back, the length of its gradient, and the update
of a tile of its weights.

A row of the table is a layer: addresses of weight, its two moments, bias, its two moments; entries read and made; where
in a row of `held` its inputs, outputs and the gradient of these are. A weight is (read, made) in memory.
"""

# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false
from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.tiles import add_product, load_row, load_tile, store_tile
from theodolite.kernels.update_triton import move_entries

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
def _loss_gradient(outputs, targets_ptr, mask_ptr, rows, count, row, output, ALL: tl.constexpr, LOSS: tl.constexpr):
    """Of the mean over what counts. `targets` and `mask` have an entry for every output, or one a row for classes."""
    every = tl.arange(0, ALL)
    inside = (row[:, None] < rows) & (output[None, :] < count)
    if LOSS == "cross-entropy":
        number = tl.sum(tl.load(mask_ptr + every, mask=every < rows, other=0).to(tl.float32), axis=0)
        counts = tl.load(mask_ptr + row, mask=row < rows, other=0)[:, None]
        target = tl.load(targets_ptr + row, mask=row < rows, other=0)
        outputs = tl.where(output[None, :] < count, outputs, -float("inf"))
        shares = tl.exp(outputs - tl.max(outputs, axis=1)[:, None])
        shares = shares / tl.sum(shares, axis=1)[:, None]
        found = shares - (output[None, :] == target[:, None]).to(tl.float32)
    else:
        where = row[:, None] * count + output[None, :]
        all_of_them = load_tile(mask_ptr, every, output, count, 1, rows, count)
        number = tl.sum(tl.sum(all_of_them, axis=1), axis=0)
        counts = tl.load(mask_ptr + where, mask=inside, other=0)
        target = tl.load(targets_ptr + where, mask=inside, other=0.0)
        if LOSS == "hinge":
            found = tl.where(1 - outputs * target <= 0, 0.0, -target)
            found = tl.where(outputs != outputs, outputs, found)  # what is no number stays so
        else:
            found = 2 * (outputs - target)
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


@triton.jit(
    do_not_specialize=[
        "table_ptr", "inputs_ptr", "targets_ptr", "mask_ptr", "held_ptr", "number_ptr", "start", "width",
    ]
)  # fmt: skip
def through(
    table_ptr, inputs_ptr, targets_ptr, mask_ptr, held_ptr, number_ptr, start, layers, rows, features, count, width,
    per_row, LOSS: tl.constexpr, ROWS: tl.constexpr, ALL: tl.constexpr, TILE: tl.constexpr, DEEP: tl.constexpr,
    OUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Some rows of one member forward and back. `held` (member, row, entry) gets what every layer makes and its
    gradient. The number of the step is counted here, and read by the update alone."""
    own = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    if (own == 0) & (tl.program_id(1) == 0):
        tl.store(number_ptr, tl.load(number_ptr) + 1)
    member = start + own
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
    gradient = _loss_gradient(outputs, targets, mask, rows, count, row, output, ALL, LOSS)
    tl.debug_barrier()  # outputs and their gradient share a place
    store_tile(held + back, gradient, row, output, width, rows, count)
    tl.debug_barrier()
    for step in range(0, last):
        _backward(table_ptr, last - step, member, held, width, rows, row, TILE, DEEP, PRECISION)


@triton.jit(do_not_specialize=["table_ptr", "inputs_ptr", "held_ptr", "length_ptr", "width"])
def lengths(
    table_ptr, inputs_ptr, held_ptr, length_ptr, layers, rows, features, width, ALL: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """Of a member's whole gradient by weights. A layer's is Σ_r x_r g_rᵀ, whose square is Σ_rs (x_r·x_s)(g_r·g_s), so
    that no gradient is needed for it."""
    own = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ALL)
    held = held_ptr + own * rows * width
    _, _, _, outer, _, _, back = _layer(table_ptr, 0)
    read = _gram(inputs_ptr + own * rows * features, features, features, rows, row, DEEP)
    made = _gram(held + back, width, outer, rows, row, DEEP)
    square = tl.sum(tl.sum((read + 1) * made, axis=1), axis=0)  # 1: a bias reads a one
    for layer in range(1, layers):
        _, _, inner, outer, reads, _, back = _layer(table_ptr, layer)
        read = _gram(held + reads, width, inner, rows, row, DEEP)
        made = _gram(held + back, width, outer, rows, row, DEEP)
        square += tl.sum(tl.sum((read + 1) * made, axis=1), axis=0)
    tl.store(length_ptr + own, tl.sqrt_rn(tl.where(square < 0, 0.0, square)))


@triton.jit(
    do_not_specialize=[
        "table_ptr", "places_ptr", "inputs_ptr", "held_ptr", "length_ptr", "number_ptr", "lr_ptr", "decay_ptr", "start",
        "places", "width",
    ]
)  # fmt: skip
def descend(
    table_ptr, places_ptr, inputs_ptr, held_ptr, length_ptr, number_ptr, lr_ptr, decay_ptr, start, places, rows,
    features, width, clip, epsilon, BETA1: tl.constexpr, BETA2: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr,
    EARLY: tl.constexpr, CLIPS: tl.constexpr, ROWS: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of a weight, and AdamW with it; a tile of the first rows takes the bias along."""
    own = (tl.program_id(0) // places).to(tl.int64)
    member = start + own
    place = places_ptr + (tl.program_id(0) % places) * 3
    layer = tl.load(place)
    at = table_ptr + layer * COLUMNS
    inner, outer = tl.load(at + 6).to(tl.int32), tl.load(at + 7).to(tl.int32)
    first_read, first_made = tl.load(place + 1).to(tl.int32), tl.load(place + 2).to(tl.int32)
    read, made, row = first_read + tl.arange(0, HIGH), first_made + tl.arange(0, WIDE), tl.arange(0, ROWS)
    held = held_ptr + own * rows * width
    inputs = inputs_ptr + own * rows * features
    if layer == 0:
        x = load_tile(inputs, read, row, 1, features, inner, rows)
    else:
        x = load_tile(held + tl.load(at + 8), read, row, 1, width, inner, rows)
    g = load_tile(held + tl.load(at + 10), row, made, width, 1, rows, outer)
    gradient = add_product(tl.zeros((HIGH, WIDE), tl.float32), x, g, PRECISION)

    scale = 1.0
    if CLIPS:
        scale = clip / (tl.load(length_ptr + own) + 1e-6)
        scale = tl.where(scale > 1.0, 1.0, scale)  # what is no number stays so
    lr, decay = tl.load(lr_ptr + member), tl.load(decay_ptr + member)
    number = tl.load(number_ptr) - 1
    there = (read[:, None] < inner) & (made[None, :] < outer)
    where = member * inner * outer + read[:, None] * outer + made[None, :]
    move_entries(at, where, there, gradient * scale, number, lr, decay, epsilon, BETA1, BETA2, LOG1, LOG2, EARLY)
    if first_read == 0:
        own_bias = member * outer + made
        of_bias = tl.sum(g, axis=0) * scale
        move_entries(
            at + 3, own_bias, made < outer, of_bias, number, lr, decay, epsilon, BETA1, BETA2, LOG1, LOG2, EARLY
        )
