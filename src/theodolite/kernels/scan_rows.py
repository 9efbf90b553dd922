"""Linear recurrences S ← α (S − β k kᵀS) + β k vᵀ with a thread, or a few, for every column of S, or every row of it.

A column never meets another: it is decayed, asked for its product with k, and has a multiple of k added. So forward
there is a row of the kernel for every column, (member, batch, head, value), and with u = β (v − kᵀαS) of every step
the gradient splits the same way: at u by columns, backward in time; at queries by rows of S = Σ k uᵀ, forward; at keys
by rows of the gradient of S, backward, and of S, forward. No state is stored.

Without β the rule is S ← α S + k vᵀ, and u = v.
"""

# pyright: reportGeneralTypeIssues=false
from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.rows import places, start, vectors


@triton.jit
def forward(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, v_ptr, vm, vb, vh, vt,
    rate_ptr, rm, rb, rh, rt, decay_ptr, dm, db, dh, dt,
    out_ptr, left_ptr, total, batch, heads, columns, tokens,
    steps: tl.constexpr, width: tl.constexpr, STAGES: tl.constexpr,
    WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """qᵀS after every token, and of every step what the rule found missing, v − kᵀαS, where it is asked for."""
    _row, inside, head, column, item, member = places(total, heads, columns, batch, ROWS, FAR)
    q_start = start(member, item, head, qm, qb, qh, VECTOR)
    k_start = start(member, item, head, km, kb, kh, VECTOR)
    v_start = start(member, item, head, vm, vb, vh, 1) + column
    rate_start = start(member, item, head, rm, rb, rh, 1)
    decay_start = start(member, item, head, dm, db, dh, 1)
    side = heads * columns
    first = (member * batch + item) * tokens * side + head * columns + column
    first_step = (member * batch + item) * (tokens * steps) * side + head * columns + column
    state = tl.zeros((ROWS, WIDTH), tl.float32)
    for token in tl.range(0, tokens, num_stages=STAGES):
        if decay_ptr is not None:
            state *= tl.exp(tl.load(decay_ptr + (decay_start + token * dt)).to(tl.float32))[:, None]
        for within in tl.static_range(steps):
            step = token * steps + within
            k = vectors(k_ptr, tl.multiple_of(k_start + step * kt, VECTOR), width, WIDTH)
            written = tl.load(v_ptr + (v_start + step * vt)).to(tl.float32)
            if rate_ptr is not None:
                written -= tl.sum(state * k, axis=1)
                if left_ptr is not None:
                    tl.store(left_ptr + (first_step + step * side), written, mask=inside)
                written *= tl.load(rate_ptr + (rate_start + step * rt)).to(tl.float32)
            state += k * written[:, None]
        q = vectors(q_ptr, tl.multiple_of(q_start + token * qt, VECTOR), width, WIDTH)
        found = tl.sum(state * q, axis=1).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + (first + token * side), found, mask=inside)


@triton.jit
def at_values(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, g_ptr, gm, gb, gh, gt,
    rate_ptr, rm, rb, rh, rt, decay_ptr, dm, db, dh, dt,
    du_ptr, total, batch, heads, columns, tokens,
    steps: tl.constexpr, width: tl.constexpr, STAGES: tl.constexpr,
    WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """The gradient at u of every step; the state is a column of the gradient at S."""
    _row, inside, head, column, item, member = places(total, heads, columns, batch, ROWS, FAR)
    q_start = start(member, item, head, qm, qb, qh, VECTOR)
    k_start = start(member, item, head, km, kb, kh, VECTOR)
    g_start = start(member, item, head, gm, gb, gh, 1) + column
    rate_start = start(member, item, head, rm, rb, rh, 1)
    decay_start = start(member, item, head, dm, db, dh, 1)
    side = heads * columns
    first_step = (member * batch + item) * (tokens * steps) * side + head * columns + column
    state = tl.zeros((ROWS, WIDTH), tl.float32)
    for later in tl.range(0, tokens, num_stages=STAGES):
        token = tokens - 1 - later
        q = vectors(q_ptr, tl.multiple_of(q_start + token * qt, VECTOR), width, WIDTH)
        state += q * tl.load(g_ptr + (g_start + token * gt)).to(tl.float32)[:, None]
        for within in tl.static_range(steps):
            step = token * steps + steps - 1 - within
            k = vectors(k_ptr, tl.multiple_of(k_start + step * kt, VECTOR), width, WIDTH)
            du = tl.sum(state * k, axis=1)
            tl.store(du_ptr + (first_step + step * side), du, mask=inside)
            if rate_ptr is not None:
                state -= k * (du * tl.load(rate_ptr + (rate_start + step * rt)).to(tl.float32))[:, None]
        if decay_ptr is not None:
            state *= tl.exp(tl.load(decay_ptr + (decay_start + token * dt)).to(tl.float32))[:, None]


@triton.jit
def at_queries(
    k_ptr, km, kb, kh, kt, u_ptr, um, ub, uh, ut, g_ptr, gm, gb, gh, gt,
    rate_ptr, rm, rb, rh, rt, decay_ptr, dm, db, dh, dt,
    du_ptr, dq_ptr, met_ptr, total, batch, heads, columns, tokens,
    steps: tl.constexpr, width: tl.constexpr, STAGES: tl.constexpr,
    WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """The gradient at queries, and of every step the product of αS with the gradient at u. `u_ptr` is u / β."""
    _row, inside, head, column, item, member = places(total, heads, columns, batch, ROWS, FAR)
    k_start = start(member, item, head, km, kb, kh, 1) + column
    u_start = start(member, item, head, um, ub, uh, VECTOR)
    g_start = start(member, item, head, gm, gb, gh, VECTOR)
    rate_start = start(member, item, head, rm, rb, rh, 1)
    decay_start = start(member, item, head, dm, db, dh, 1)
    side = heads * columns
    sequence = member * batch + item
    first = sequence * tokens * side + head * columns + column
    first_step = sequence * (tokens * steps) * side + head * columns + column
    du_start = (sequence * (tokens * steps) * heads + head) * width
    state = tl.zeros((ROWS, WIDTH), tl.float32)
    for token in tl.range(0, tokens, num_stages=STAGES):
        if decay_ptr is not None:
            state *= tl.exp(tl.load(decay_ptr + (decay_start + token * dt)).to(tl.float32))[:, None]
        for within in tl.static_range(steps):
            step = token * steps + within
            k = tl.load(k_ptr + (k_start + step * kt)).to(tl.float32)
            if rate_ptr is not None:
                du = vectors(du_ptr, tl.multiple_of(du_start + step * (heads * width), VECTOR), width, WIDTH)
                tl.store(met_ptr + (first_step + step * side), tl.sum(state * du, axis=1), mask=inside)
                k *= tl.load(rate_ptr + (rate_start + step * rt)).to(tl.float32)
            state += k[:, None] * vectors(u_ptr, tl.multiple_of(u_start + step * ut, VECTOR), width, WIDTH)
        g = vectors(g_ptr, tl.multiple_of(g_start + token * gt, VECTOR), width, WIDTH)
        dq = tl.sum(state * g, axis=1).to(dq_ptr.dtype.element_ty)
        tl.store(dq_ptr + (first + token * side), dq, mask=inside)


@triton.jit
def at_keys(
    q_ptr, qm, qb, qh, qt, k_ptr, km, kb, kh, kt, u_ptr, um, ub, uh, ut, g_ptr, gm, gb, gh, gt,
    rate_ptr, rm, rb, rh, rt, decay_ptr, dm, db, dh, dt,
    du_ptr, met_ptr, dk_ptr, total, batch, heads, columns, tokens,
    steps: tl.constexpr, width: tl.constexpr, STAGES: tl.constexpr,
    WIDTH: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """The gradient at keys; the state is a row of the gradient at S. `u_ptr` is u / β."""
    _row, inside, head, column, item, member = places(total, heads, columns, batch, ROWS, FAR)
    q_start = start(member, item, head, qm, qb, qh, 1) + column
    k_start = start(member, item, head, km, kb, kh, 1) + column
    u_start = start(member, item, head, um, ub, uh, VECTOR)
    g_start = start(member, item, head, gm, gb, gh, VECTOR)
    rate_start = start(member, item, head, rm, rb, rh, 1)
    decay_start = start(member, item, head, dm, db, dh, 1)
    side = heads * columns
    sequence = member * batch + item
    first_step = sequence * (tokens * steps) * side + head * columns + column
    du_start = (sequence * (tokens * steps) * heads + head) * width
    state = tl.zeros((ROWS, WIDTH), tl.float32)
    for later in tl.range(0, tokens, num_stages=STAGES):
        token = tokens - 1 - later
        g = vectors(g_ptr, tl.multiple_of(g_start + token * gt, VECTOR), width, WIDTH)
        state += tl.load(q_ptr + (q_start + token * qt)).to(tl.float32)[:, None] * g
        for within in tl.static_range(steps):
            step = token * steps + steps - 1 - within
            u = vectors(u_ptr, tl.multiple_of(u_start + step * ut, VECTOR), width, WIDTH)
            dk = tl.sum(state * u, axis=1)
            if rate_ptr is not None:
                rate = tl.load(rate_ptr + (rate_start + step * rt)).to(tl.float32)
                dk = rate * (dk - tl.load(met_ptr + (first_step + step * side)))
                du = vectors(du_ptr, tl.multiple_of(du_start + step * (heads * width), VECTOR), width, WIDTH)
                k = tl.load(k_ptr + (k_start + step * kt)).to(tl.float32)
                state -= (rate * k)[:, None] * du
            tl.store(dk_ptr + (first_step + step * side), dk.to(dk_ptr.dtype.element_ty), mask=inside)
        if decay_ptr is not None:
            state *= tl.exp(tl.load(decay_ptr + (decay_start + token * dt)).to(tl.float32))[:, None]
