"""The kernel of `product` and `dense`: one program for each tile of each product, over the inner dimension in steps."""

# pyright: reportCallIssue=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import triton
import triton.language as tl
from torch import Tensor

from theodolite.kernels.tiles import add_product


@dataclass(frozen=True)
class Tile:
    rows: int
    columns: int
    inner: int
    warps: int
    stages: int


def tile_of(rows: int, columns: int, inner: int) -> Tile:
    """The best of ten tried on an H200 for the products of small perceptrons, Transformers and recurrences."""
    own = lambda size, most: min(most, max(16, 1 << (size - 1).bit_length()))
    across = own(columns, 64)
    if rows <= 64:
        return Tile(own(rows, 32), across, own(inner, 32), 4, 4)
    if 32 < inner <= 64:
        return Tile(64, across, 64, 4, 2)
    return Tile(128, across, own(inner, 32), 8, 3)


@triton.jit
def _gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _gelu_slope(x):
    return 0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327


@triton.jit
def _entering(a, b, GELU: tl.constexpr):
    """Both factors as they are multiplied."""
    if GELU == "left":
        a = _gelu(a)
    if GELU == "right":
        b = _gelu(b)
    return a, b


@triton.jit(do_not_specialize=["rows", "steps"])
def _product(
    left,
    right,
    found,
    bias,
    slopes,
    sums,
    rows,
    steps,
    left_member,
    right_member,
    columns: tl.constexpr,
    rest: tl.constexpr,
    left_row: tl.constexpr,
    left_inner: tl.constexpr,
    right_inner: tl.constexpr,
    right_column: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    MANY: tl.constexpr,
    PRECISION: tl.constexpr,
    GELU: tl.constexpr,
):
    """The product plus `bias`, one for every column, or times GELU's derivative at `slopes`; beside it `sums` of the
    rows of `left`: each where it is given. `GELU` names the factor that it is applied to before.

    The inner dimension has `steps` whole steps, if `MANY`, and a `rest`. Strides are known when it is compiled, so
    that loads are as wide as they allow; `LEFT` and `RIGHT` divide those between members. What grows with the number
    of tokens is not known, so that one program serves all of them."""
    tiles_across: tl.constexpr = (columns + COLUMNS - 1) // COLUMNS
    tiles = tl.cdiv(rows, ROWS) * tiles_across
    member, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    down = (tile // tiles_across) * ROWS + tl.arange(0, ROWS)
    across = (tile % tiles_across) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, INNER)
    here = left + tl.multiple_of(member * left_member, LEFT) + down[:, None] * left_row + depth[None, :] * left_inner
    there = right + tl.multiple_of(member * right_member, RIGHT)
    there += depth[:, None] * right_inner + across[None, :] * right_column
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    summed = tl.zeros((ROWS,), dtype=tl.float32)
    if MANY:
        for _ in range(0, steps):
            a = tl.load(here, mask=down[:, None] < rows, other=0.0).to(tl.float32)
            b = tl.load(there, mask=across[None, :] < columns, other=0.0).to(tl.float32)
            if sums is not None:
                summed += tl.sum(a, axis=1)
            a, b = _entering(a, b, GELU)
            total = add_product(total, a, b, PRECISION)
            here += INNER * left_inner
            there += INNER * right_inner
    if rest:
        a = tl.load(here, mask=(down[:, None] < rows) & (depth[None, :] < rest), other=0.0).to(tl.float32)
        b = tl.load(there, mask=(depth[:, None] < rest) & (across[None, :] < columns), other=0.0).to(tl.float32)
        if sums is not None:
            summed += tl.sum(a, axis=1)
        a, b = _entering(a, b, GELU)
        total = add_product(total, a, b, PRECISION)
    if sums is not None and tile % tiles_across == 0:
        tl.store(sums + member * rows + down, summed, mask=down < rows)
    if bias is not None:
        total += tl.load(bias + member * columns + across, mask=across < columns, other=0.0)[None, :]
    place = member * rows * columns + down[:, None] * columns + across[None, :]
    inside = (down[:, None] < rows) & (across[None, :] < columns)
    if slopes is not None:
        total *= _gelu_slope(tl.load(slopes + place, mask=inside, other=0.0))
    tl.store(found + place, total, mask=inside)


def launch(
    left: Tensor,
    right: Tensor,
    found: Tensor,
    precision: str,
    tile: Tile | None = None,
    *,
    bias: Tensor | None = None,
    slopes: Tensor | None = None,
    sums: Tensor | None = None,
    gelu: Literal["", "left", "right"] = "",
) -> None:
    """`found`, `slopes` (member, row, column), `bias` (member, column) and `sums` (member, row) lie in order."""
    members, rows, inner = left.shape
    columns = right.shape[2]
    tile = tile or tile_of(rows, columns, inner)
    tiles = triton.cdiv(rows, tile.rows) * triton.cdiv(columns, tile.columns)
    _product[(tiles * members,)](
        left,
        right,
        found,
        bias,
        slopes,
        sums,
        rows,
        inner // tile.inner,
        left.stride(0),
        right.stride(0),
        columns=columns,
        rest=inner % tile.inner,
        left_row=left.stride(1),
        left_inner=left.stride(2),
        right_inner=right.stride(1),
        right_column=right.stride(2),
        LEFT=math.gcd(left.stride(0), 4),
        RIGHT=math.gcd(right.stride(0), 4),
        ROWS=tile.rows,
        COLUMNS=tile.columns,
        INNER=tile.inner,
        MANY=inner >= tile.inner,
        PRECISION=precision,
        GELU=gelu,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
