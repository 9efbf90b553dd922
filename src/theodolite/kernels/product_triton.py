"""The kernel of `product`: one program for each tile of each product, over the inner dimension in steps."""

# pyright: reportPrivateImportUsage=false, reportOptionalMemberAccess=false

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _product(
    left,
    right,
    found,
    rows,
    columns,
    left_member,
    left_row,
    left_inner,
    right_member,
    right_inner,
    right_column,
    found_member,
    found_row,
    tiles_across,
    tiles,
    inner: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    WHOLE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    member, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    down = (tile // tiles_across) * ROWS + tl.arange(0, ROWS)
    across = (tile % tiles_across) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, INNER)
    here = left + member * left_member + down[:, None] * left_row + depth[None, :] * left_inner
    there = right + member * right_member + depth[:, None] * right_inner + across[None, :] * right_column
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, inner, INNER):
        if WHOLE:
            a = tl.load(here, mask=down[:, None] < rows, other=0.0)
            b = tl.load(there, mask=across[None, :] < columns, other=0.0)
        else:
            a = tl.load(here, mask=(down[:, None] < rows) & (depth[None, :] < inner - start), other=0.0)
            b = tl.load(there, mask=(depth[:, None] < inner - start) & (across[None, :] < columns), other=0.0)
        if PRECISION == "bf16":
            total = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)
        else:
            total = tl.dot(a, b, total, input_precision=PRECISION)
        here += INNER * left_inner
        there += INNER * right_inner
    place = found + member * found_member + down[:, None] * found_row + across[None, :]
    tl.store(place, total, mask=(down[:, None] < rows) & (across[None, :] < columns))


def tile_of(rows: int, columns: int, inner: int) -> tuple[int, int, int, int]:
    """Rows, columns and inner steps of a tile, and its warps."""
    own = lambda size, most: min(most, max(16, triton.next_power_of_2(size)))
    down, across = own(rows, 128), own(columns, 64)
    step = own(inner, 32)
    return down, across, step, 4 if down * across <= 64 * 64 else 8


def launch(
    left: Tensor,
    right: Tensor,
    found: Tensor,
    precision: str,
    tile: tuple[int, int, int, int] | None = None,
    stages: int = 2,
) -> None:
    members, rows, inner = left.shape
    columns = right.shape[2]
    down, across, step, warps = tile or tile_of(rows, columns, inner)
    tiles_across = triton.cdiv(columns, across)
    tiles = triton.cdiv(rows, down) * tiles_across
    _product[(tiles * members,)](
        left,
        right,
        found,
        rows,
        columns,
        *left.stride(),
        *right.stride(),
        *found.stride()[:2],
        tiles_across,
        tiles,
        inner=inner,
        ROWS=down,
        COLUMNS=across,
        INNER=step,
        WHOLE=inner % step == 0,
        PRECISION=precision,
        num_warps=warps,
        num_stages=stages,
    )
