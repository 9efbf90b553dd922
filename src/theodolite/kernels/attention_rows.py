"""Attention with a thread, or a few, for every query: many short sequences fill the chip without padding any of them.

Rows are counted as (member, batch, token, head), heads fastest, so that neighbours read neighbouring numbers of a
projection; the keys of a sequence come one after the other and are shared by its rows in the cache. All arithmetic is
float32. The gradient has rows of queries first, then rows of keys, so that nothing is added by two programs.
"""

# pyright: reportGeneralTypeIssues=false
from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.rows import places, start, vectors, write


@triton.jit
def _logit(q, k_ptr, k_start, kt, bias_ptr, bias_start, bk, j, keys, width, WIDTH: tl.constexpr, VECTOR: tl.constexpr):
    """With key j, −∞ beyond the last key."""
    at = tl.minimum(j, keys - 1)
    k = vectors(k_ptr, tl.multiple_of(k_start + at * kt, VECTOR), width, WIDTH)
    logit = tl.sum(q * k, axis=1)
    if bias_ptr is not None:
        logit += tl.load(bias_ptr + (bias_start + at * bk)).to(tl.float32)
    return tl.where(j < keys, logit, float("-inf"))


@triton.jit
def forward(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, v_ptr, vm, vb, vh, vt, bias_ptr, bm, bb, bh, bq, bk,
    out_ptr, sums_ptr, total, batch, heads, queries, keys, scale,
    width: tl.constexpr, WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """What attention finds, and log Σ exp of every row's logits."""
    row, inside, token, head, item, member = places(total, queries, heads, batch, ROWS, FAR)
    q_at = tl.multiple_of(start(member, item, head, qm, qb, qh, VECTOR) + token * qt, VECTOR)
    q = vectors(q_ptr, q_at, width, WIDTH) * scale
    k_start = start(member, item, head, km, kb, kh, VECTOR)
    v_start = start(member, item, head, vm, vb, vh, VECTOR)
    bias_start = start(member, item, head, bm, bb, bh, 1) + token * bq
    most = tl.full((ROWS,), float("-inf"), tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    found = tl.zeros((ROWS, WIDTH), tl.float32)
    for j in range(0, keys, 4):
        a = _logit(q, k_ptr, k_start, kt, bias_ptr, bias_start, bk, j, keys, width, WIDTH, VECTOR)
        b = _logit(q, k_ptr, k_start, kt, bias_ptr, bias_start, bk, j + 1, keys, width, WIDTH, VECTOR)
        c = _logit(q, k_ptr, k_start, kt, bias_ptr, bias_start, bk, j + 2, keys, width, WIDTH, VECTOR)
        d = _logit(q, k_ptr, k_start, kt, bias_ptr, bias_start, bk, j + 3, keys, width, WIDTH, VECTOR)
        top = tl.maximum(most, tl.maximum(tl.maximum(a, b), tl.maximum(c, d)))
        near = tl.where(top == float("-inf"), 0.0, top)  # as long as every key is hidden
        kept = tl.exp(most - near)
        a, b, c, d = tl.exp(a - near), tl.exp(b - near), tl.exp(c - near), tl.exp(d - near)
        mass = mass * kept + ((a + b) + (c + d))
        found *= kept[:, None]
        found += a[:, None] * vectors(v_ptr, tl.multiple_of(v_start + j * vt, VECTOR), width, WIDTH)
        at = tl.minimum(j + 1, keys - 1)
        found += b[:, None] * vectors(v_ptr, tl.multiple_of(v_start + at * vt, VECTOR), width, WIDTH)
        at = tl.minimum(j + 2, keys - 1)
        found += c[:, None] * vectors(v_ptr, tl.multiple_of(v_start + at * vt, VECTOR), width, WIDTH)
        at = tl.minimum(j + 3, keys - 1)
        found += d[:, None] * vectors(v_ptr, tl.multiple_of(v_start + at * vt, VECTOR), width, WIDTH)
        most = top
    write(out_ptr, tl.multiple_of(row * width, VECTOR), found / mass[:, None], inside, width, WIDTH)
    tl.store(sums_ptr + row, most + tl.log(mass), mask=inside)


@triton.jit
def of_queries(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, v_ptr, vm, vb, vh, vt, g_ptr, gm, gb, gh, gt,
    bias_ptr, bm, bb, bh, bq, bk, out_ptr, sums_ptr, dq_ptr, share_ptr, total, batch, heads, queries, keys, scale,
    width: tl.constexpr, WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """The gradient at queries, and of every row its Σ gradient · output, which the rows of keys need."""
    row, inside, token, head, item, member = places(total, queries, heads, batch, ROWS, FAR)
    q_at = tl.multiple_of(start(member, item, head, qm, qb, qh, VECTOR) + token * qt, VECTOR)
    q = vectors(q_ptr, q_at, width, WIDTH) * scale
    g_at = tl.multiple_of(start(member, item, head, gm, gb, gh, VECTOR) + token * gt, VECTOR)
    g = vectors(g_ptr, g_at, width, WIDTH)
    at = tl.multiple_of(row * width, VECTOR)
    share = tl.sum(g * vectors(out_ptr, at, width, WIDTH), axis=1)
    tl.store(share_ptr + row, share, mask=inside)
    sums = tl.load(sums_ptr + row)
    k_start = start(member, item, head, km, kb, kh, VECTOR)
    v_start = start(member, item, head, vm, vb, vh, VECTOR)
    bias_start = start(member, item, head, bm, bb, bh, 1) + token * bq
    dq = tl.zeros((ROWS, WIDTH), tl.float32)
    for j in tl.range(0, keys, loop_unroll_factor=4):
        k = vectors(k_ptr, tl.multiple_of(k_start + j * kt, VECTOR), width, WIDTH)
        v = vectors(v_ptr, tl.multiple_of(v_start + j * vt, VECTOR), width, WIDTH)
        logit = tl.sum(q * k, axis=1)
        if bias_ptr is not None:
            logit += tl.load(bias_ptr + (bias_start + j * bk)).to(tl.float32)
        slope = tl.exp(logit - sums) * (tl.sum(g * v, axis=1) - share)
        dq += slope[:, None] * k
    write(dq_ptr, at, dq * scale, inside, width, WIDTH)


@triton.jit
def of_keys(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, v_ptr, vm, vb, vh, vt, g_ptr, gm, gb, gh, gt,
    bias_ptr, bm, bb, bh, bq, bk, sums_ptr, share_ptr, dk_ptr, dv_ptr, total, batch, heads, queries, keys, scale,
    width: tl.constexpr, WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """The gradient at keys and at values."""
    row, inside, token, head, item, member = places(total, keys, heads, batch, ROWS, FAR)
    k_at = tl.multiple_of(start(member, item, head, km, kb, kh, VECTOR) + token * kt, VECTOR)
    k = vectors(k_ptr, k_at, width, WIDTH) * scale
    v_at = tl.multiple_of(start(member, item, head, vm, vb, vh, VECTOR) + token * vt, VECTOR)
    v = vectors(v_ptr, v_at, width, WIDTH)
    q_start = start(member, item, head, qm, qb, qh, VECTOR)
    g_start = start(member, item, head, gm, gb, gh, VECTOR)
    bias_start = start(member, item, head, bm, bb, bh, 1) + token * bk
    of_row = (member * batch + item) * queries * heads + head
    dk = tl.zeros((ROWS, WIDTH), tl.float32)
    dv = tl.zeros((ROWS, WIDTH), tl.float32)
    for i in tl.range(0, queries, loop_unroll_factor=4):
        q = vectors(q_ptr, tl.multiple_of(q_start + i * qt, VECTOR), width, WIDTH)
        g = vectors(g_ptr, tl.multiple_of(g_start + i * gt, VECTOR), width, WIDTH)
        logit = tl.sum(k * q, axis=1)
        if bias_ptr is not None:
            logit += tl.load(bias_ptr + (bias_start + i * bq)).to(tl.float32)
        weight = tl.exp(logit - tl.load(sums_ptr + (of_row + i * heads)))
        dv += weight[:, None] * g
        slope = weight * (tl.sum(v * g, axis=1) - tl.load(share_ptr + (of_row + i * heads)))
        dk += slope[:, None] * q
    at = tl.multiple_of(row * width, VECTOR)
    write(dk_ptr, at, dk * scale, inside, width, WIDTH)
    write(dv_ptr, at, dv, inside, width, WIDTH)
