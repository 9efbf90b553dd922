"""What kernels share that have a thread, or a few, for every row: vectors of a row are read and written where they lie.

A vector is padded to a power of two, WIDTH. Its loads are as wide as its true width and its alignment allow.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def places(total, slow, fast, batch, ROWS: tl.constexpr, FAR: tl.constexpr):
    """Of the program's rows, counted as (member, batch, slow, fast): the row itself, whether it is one (others repeat
    the last and are not written), and its places; `FAR` where they are too many for 32 bits."""
    program = tl.program_id(0)
    if FAR:
        program = program.to(tl.int64)
    row = program * ROWS + tl.arange(0, ROWS)
    inside = row < total
    row = tl.minimum(row, total - 1)
    sequence = row // (fast * slow)
    member = (sequence // batch).to(tl.int64)
    return row.to(tl.int64), inside, (row // fast) % slow, row % fast, sequence % batch, member


@triton.jit
def start(member, item, head, sm, sb, sh, VECTOR: tl.constexpr):
    """Where a sequence begins; rows lie on multiples of `VECTOR` wherever loads are that wide."""
    return tl.multiple_of(member * sm + item.to(tl.int64) * sb + head * sh, VECTOR)


@triton.jit
def vectors(pointer, offset, width, WIDTH: tl.constexpr):
    """A vector for every offset; `width` numbers of it are there, the others are 0."""
    place = tl.arange(0, WIDTH)
    at = pointer + (offset[:, None] + place[None, :])
    if width == WIDTH:
        return tl.load(at).to(tl.float32)
    return tl.load(at, mask=(place < width)[None, :], other=0.0).to(tl.float32)


@triton.jit
def write(pointer, offset, values, inside, width, WIDTH: tl.constexpr):
    place = tl.arange(0, WIDTH)
    at = pointer + (offset[:, None] + place[None, :])
    if width == WIDTH:
        tl.store(at, values.to(pointer.dtype.element_ty), mask=inside[:, None])
    else:
        tl.store(at, values.to(pointer.dtype.element_ty), mask=inside[:, None] & (place < width)[None, :])
