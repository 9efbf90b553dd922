"""h ← a h + x and Re Σ c h with complex modes, a few threads for every channel of every sequence."""

# pyright: reportGeneralTypeIssues=false
from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.rows import places, vectors, write


@triton.jit
def response(
    x_ptr, xm, xb, xt, xc, a_ptr, b_ptr, c_ptr, d_ptr, y_ptr, total, batch, channels, tokens, ones,
    reverse: tl.constexpr, width: tl.constexpr, STAGES: tl.constexpr,
    WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """Re Σ (c + id) h after every token, where h ← (a + ib) h + x; `reverse` goes from the last token to the first."""
    _row, inside, _one, channel, item, member = places(total, ones, channels, batch, ROWS, FAR)
    modes = tl.multiple_of((member * channels + channel) * width, VECTOR)
    a, b = vectors(a_ptr, modes, width, WIDTH), vectors(b_ptr, modes, width, WIDTH)
    c, d = vectors(c_ptr, modes, width, WIDTH), vectors(d_ptr, modes, width, WIDTH)
    x_start = member * xm + item.to(tl.int64) * xb + channel * xc
    y_start = (member * batch + item) * tokens * channels + channel
    h = tl.zeros((ROWS, WIDTH), tl.float32)
    k = tl.zeros((ROWS, WIDTH), tl.float32)
    for count in tl.range(0, tokens, num_stages=STAGES):
        token = tokens - 1 - count if reverse else count
        x = tl.load(x_ptr + (x_start + token * xt)).to(tl.float32)
        h, k = a * h - b * k + x[:, None], a * k + b * h
        y = tl.sum(c * h - d * k, axis=1).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + (y_start + token * channels), y, mask=inside)


@triton.jit
def sums(
    x_ptr, xm, xb, xt, xc, g_ptr, gm, gb, gt, gc, a_ptr, b_ptr, met_ptr, moved_ptr, total, batch, channels, tokens,
    parts, size,
    width: tl.constexpr, STAGES: tl.constexpr,
    WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """Σ g h and Σ g ∂h/∂a over tokens and over a part of the batch, real parts beside imaginary ones."""
    row, inside, part, channel, _one, member = places(total, parts, channels, 1, ROWS, FAR)
    modes = tl.multiple_of((member * channels + channel) * width, VECTOR)
    a, b = vectors(a_ptr, modes, width, WIDTH), vectors(b_ptr, modes, width, WIDTH)
    met_r = tl.zeros((ROWS, WIDTH), tl.float32)
    met_i = tl.zeros((ROWS, WIDTH), tl.float32)
    moved_r = tl.zeros((ROWS, WIDTH), tl.float32)
    moved_i = tl.zeros((ROWS, WIDTH), tl.float32)
    for within in range(size):
        item = part * size + within
        there = item < batch
        item = tl.minimum(item, batch - 1).to(tl.int64)
        x_start = member * xm + item * xb + channel * xc
        g_start = member * gm + item * gb + channel * gc
        h = tl.zeros((ROWS, WIDTH), tl.float32)
        k = tl.zeros((ROWS, WIDTH), tl.float32)
        e = tl.zeros((ROWS, WIDTH), tl.float32)
        f = tl.zeros((ROWS, WIDTH), tl.float32)
        for token in tl.range(0, tokens, num_stages=STAGES):
            x = tl.load(x_ptr + (x_start + token * xt)).to(tl.float32)
            g = tl.where(there, tl.load(g_ptr + (g_start + token * gt)).to(tl.float32), 0.0)[:, None]
            e, f = a * e - b * f + h, a * f + b * e + k
            h, k = a * h - b * k + x[:, None], a * k + b * h
            met_r += g * h
            met_i += g * k
            moved_r += g * e
            moved_i += g * f
    at = tl.multiple_of(row * width, VECTOR)
    imaginary = tl.multiple_of((total + row) * width, VECTOR)
    write(met_ptr, at, met_r, inside, width, WIDTH)
    write(met_ptr, imaginary, met_i, inside, width, WIDTH)
    write(moved_ptr, at, moved_r, inside, width, WIDTH)
    write(moved_ptr, imaginary, moved_i, inside, width, WIDTH)
