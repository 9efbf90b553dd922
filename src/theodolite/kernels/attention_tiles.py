"""Attention with a program for every sequence of a head, all of its logits in registers, products on tensor cores.

Better than rows of queries where heads are wide and sequences fit: a tile of logits is padded to a power of two.
"""

# pyright: reportGeneralTypeIssues=false
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _dot(left, right, PRECISION: tl.constexpr):
    """Split into TF32 numbers by Triton itself: split by hand before, the weights would be computed twice."""
    if PRECISION == "bf16":
        return tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16))
    else:
        return tl.dot(left, right, input_precision=PRECISION)


@triton.jit
def _sequence(heads, batch):
    """Its member and row of the batch, that pair counted as one, and its head."""
    program = tl.program_id(0)
    pair = program // heads
    return (pair // batch).to(tl.int64), (pair % batch).to(tl.int64), pair.to(tl.int64), program % heads


@triton.jit
def _matrix(pointer, first, step, count, width, TOKENS: tl.constexpr, WIDTH: tl.constexpr):
    """The vectors of `count` tokens, 0 beyond them and beyond their width."""
    token, place = tl.arange(0, TOKENS), tl.arange(0, WIDTH)
    there = (token < count)[:, None] & (place < width)[None, :]
    return tl.load(pointer + first + (token[:, None] * step + place[None, :]), mask=there, other=0.0).to(tl.float32)


@triton.jit
def _write(pointer, first, step, count, values, width, TOKENS: tl.constexpr, WIDTH: tl.constexpr):
    token, place = tl.arange(0, TOKENS), tl.arange(0, WIDTH)
    there = (token < count)[:, None] & (place < width)[None, :]
    at = pointer + first + (token[:, None] * step + place[None, :])
    tl.store(at, values.to(pointer.dtype.element_ty), mask=there)


@triton.jit
def _logits(q, k, bias_ptr, bias_first, bq, bk, queries, keys, TOKENS: tl.constexpr, PRECISION: tl.constexpr):
    """−∞ beyond the last key."""
    i, j = tl.arange(0, TOKENS)[:, None], tl.arange(0, TOKENS)[None, :]
    logits = _dot(q, tl.trans(k), PRECISION)
    if bias_ptr is not None:
        there = (i < queries) & (j < keys)
        logits += tl.load(bias_ptr + bias_first + (i * bq + j * bk), mask=there, other=0.0).to(tl.float32)
    return tl.where(j < keys, logits, float("-inf"))


@triton.jit
def forward(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, v_ptr, vm, vb, vh, vt, bias_ptr, bm, bb, bh, bq, bk,
    out_ptr, sums_ptr, batch, heads, queries, keys, scale,
    width: tl.constexpr, WIDTH: tl.constexpr, TOKENS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What attention finds, and log Σ exp of every row's logits."""
    member, item, pair, head = _sequence(heads, batch)
    q = _matrix(q_ptr, member * qm + item * qb + head * qh, qt, queries, width, TOKENS, WIDTH) * scale
    k = _matrix(k_ptr, member * km + item * kb + head * kh, kt, keys, width, TOKENS, WIDTH)
    v = _matrix(v_ptr, member * vm + item * vb + head * vh, vt, keys, width, TOKENS, WIDTH)
    bias_first = member * bm + item * bb + head * bh
    logits = _logits(q, k, bias_ptr, bias_first, bq, bk, queries, keys, TOKENS, PRECISION)
    top = tl.max(logits, axis=1)
    top = tl.where(top == float("-inf"), 0.0, top)
    weights = tl.exp(logits - top[:, None])
    mass = tl.sum(weights, axis=1)
    found = _dot(weights, v, PRECISION) / mass[:, None]
    row = pair * queries * heads + head
    _write(out_ptr, row * width, heads * width, queries, found, width, TOKENS, WIDTH)
    token = tl.arange(0, TOKENS)
    tl.store(sums_ptr + row + token * heads, top + tl.log(mass), mask=token < queries)


@triton.jit
def backward(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, v_ptr, vm, vb, vh, vt, g_ptr, gm, gb, gh, gt,
    bias_ptr, bm, bb, bh, bq, bk, out_ptr, sums_ptr, dq_ptr, dk_ptr, dv_ptr, batch, heads, queries, keys, scale,
    width: tl.constexpr, WIDTH: tl.constexpr, TOKENS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradient at queries, keys and values."""
    member, item, pair, head = _sequence(heads, batch)
    q = _matrix(q_ptr, member * qm + item * qb + head * qh, qt, queries, width, TOKENS, WIDTH) * scale
    k = _matrix(k_ptr, member * km + item * kb + head * kh, kt, keys, width, TOKENS, WIDTH)
    bias_first = member * bm + item * bb + head * bh
    logits = _logits(q, k, bias_ptr, bias_first, bq, bk, queries, keys, TOKENS, PRECISION)
    row = pair * queries * heads + head
    token = tl.arange(0, TOKENS)
    sums = tl.load(sums_ptr + row + token * heads, mask=token < queries, other=float("inf"))  # no weight beyond
    weights = tl.exp(logits - sums[:, None])
    g = _matrix(g_ptr, member * gm + item * gb + head * gh, gt, queries, width, TOKENS, WIDTH)
    of_key = pair * keys * heads + head
    dv = _dot(tl.trans(weights), g, PRECISION)
    _write(dv_ptr, of_key * width, heads * width, keys, dv, width, TOKENS, WIDTH)
    found = _matrix(out_ptr, row * width, heads * width, queries, width, TOKENS, WIDTH)
    v = _matrix(v_ptr, member * vm + item * vb + head * vh, vt, keys, width, TOKENS, WIDTH)
    slope = weights * (_dot(g, tl.trans(v), PRECISION) - tl.sum(g * found, axis=1)[:, None])
    dq = _dot(slope, k, PRECISION) * scale
    _write(dq_ptr, row * width, heads * width, queries, dq, width, TOKENS, WIDTH)
    dk = _dot(tl.trans(slope), q, PRECISION)
    _write(dk_ptr, of_key * width, heads * width, keys, dk, width, TOKENS, WIDTH)
