"""All tokens of a net with a stack in one kernel, and all their gradients in another.

The product with the state before gives two things at once: what the token before says of the memory, and what it hands
on. Between them lies the memory, whose top is then read; the gradient goes the same way back.
"""

from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.controller_triton import activate, slope, softmax
from theodolite.kernels.tiles import add_product


@triton.jit(do_not_specialize=["tokens", "rows", "cells", "total", "half"])
def forward(
    entering,
    across,
    heads,
    bias,
    hidden,
    read,
    acted,
    stacks,
    tokens,
    rows,
    cells,
    total,
    half,
    WIDTH: tl.constexpr,
    CELL: tl.constexpr,
    OUT: tl.constexpr,
    HEADS: tl.constexpr,
    SPAN: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    KEEP: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    member = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    real = (row < rows)[:, None]
    out, head, inner = tl.arange(0, OUT)[None, :], tl.arange(0, HEADS)[None, :], tl.arange(0, INNER)
    shown, valued, acting = real & (out < WIDTH), head < CELL, (head >= CELL) & (head < CELL + 3)
    across += member * WIDTH * (WIDTH + CELL)
    heads += member * (CELL + 3) * WIDTH
    lean = tl.load(bias + member * (CELL + 3) + head, mask=head < CELL + 3, other=0.0)
    stack = stacks + ((member * rows + row) * total)[:, None] * CELL
    top = tl.arange(0, HEADS)[:, None]
    reading = tl.load(across + out * (WIDTH + CELL) + WIDTH + top, mask=(out < WIDTH) & (top < CELL), other=0.0)

    place = (member * tokens * rows + row)[:, None] * WIDTH + out
    state = activate(tl.load(entering + place, mask=shown, other=0.0), ACTIVATION)
    tl.store(hidden + place, state, mask=shown)
    here, depth = 0, 0
    tl.debug_barrier()
    for token in range(1, tokens):
        # What the token before says of the memory and what it hands on: both are products with its state.
        at = ((member * tokens + token) * rows + row)[:, None]
        mixed = tl.load(entering + at * WIDTH + out, mask=shown, other=0.0)
        said = tl.zeros((ROWS, HEADS), tl.float32) + lean
        for k in range(0, WIDTH, INNER):
            within = k + inner
            last = tl.load(
                hidden + (at - rows) * WIDTH + within[None, :], mask=real & (within < WIDTH)[None, :], other=0.0
            )
            weight = tl.load(
                across + out * (WIDTH + CELL) + within[:, None],
                mask=(out < WIDTH) & (within < WIDTH)[:, None],
                other=0.0,
            )
            telling = tl.load(
                heads + head * WIDTH + within[:, None],
                mask=(head < CELL + 3) & (within < WIDTH)[:, None],
                other=0.0,
            )
            # The narrow product first: Triton shares its warps out for both by the last of the two.
            said = add_product(said, last, telling, PRECISION)
            mixed = add_product(mixed, last, weight, PRECISION)
        chance = softmax(said, acting)
        if KEEP:
            past = ((member * (tokens - 1) + token - 1) * rows + row)[:, None]
            there = here + depth + 1
        else:
            past = (member * rows + row)[:, None]
            there = half - here
        tl.store(stack + here * CELL + head, said, mask=real & valued)
        tl.store(acted + past * 3 + head - CELL, chance, mask=real & acting)
        tl.debug_barrier()  # what was said is there for all threads
        push = tl.load(acted + past * 3, mask=real, other=0.0)
        stay = tl.load(acted + past * 3 + 1, mask=real, other=0.0)
        pop = tl.load(acted + past * 3 + 2, mask=real, other=0.0)
        filled = (depth + 1) * CELL
        depth = tl.minimum(tl.minimum(token, tokens - token), cells)
        pushed, stayed, popped = _three(stack + here * CELL, head, filled, real & valued, CELL)
        seen = push * pushed + stay * stayed + pop * popped
        if KEEP:
            tl.store(read + past * CELL + head, seen, mask=real & valued)
        mixed = add_product(mixed, seen, reading, PRECISION)
        tl.store(hidden + at * WIDTH + out, activate(mixed, ACTIVATION), mask=shown)
        if token < tokens - 1:
            for j in range(0, depth * CELL, SPAN):
                i = j + tl.arange(0, SPAN)[None, :]
                first, second, third = _three(stack + here * CELL, i, filled, real, CELL)
                moved = push * first + stay * second + pop * third
                tl.store(stack + there * CELL + CELL + i, moved, mask=real & (i < depth * CELL))
        here = there
        tl.debug_barrier()  # and so are the state and the stack


@triton.jit
def _three(stack, i, filled, real, CELL: tl.constexpr):
    """The numbers at `i`, a cell and two cells further, of which `filled` are there."""
    pushed = tl.load(stack + i, mask=real & (i < filled), other=0.0)
    stayed = tl.load(stack + i + CELL, mask=real & (i + CELL < filled), other=0.0)
    popped = tl.load(stack + i + 2 * CELL, mask=real & (i + 2 * CELL < filled), other=0.0)
    return pushed, stayed, popped


@triton.jit(do_not_specialize=["tokens", "rows", "cells", "total", "half"])
def backward(
    grad,
    across,
    heads,
    hidden,
    acted,
    stacks,
    entered,
    headed,
    carried,
    tokens,
    rows,
    cells,
    total,
    half,
    WIDTH: tl.constexpr,
    CELL: tl.constexpr,
    OUT: tl.constexpr,
    HEADS: tl.constexpr,
    SPAN: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    member = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    real = (row < rows)[:, None]
    out, head, inner = tl.arange(0, OUT)[None, :], tl.arange(0, HEADS)[None, :], tl.arange(0, INNER)
    shown, valued = real & (out < WIDTH), head < CELL
    across += member * WIDTH * (WIDTH + CELL)
    heads += member * (CELL + 3) * WIDTH
    stack = stacks + ((member * rows + row) * total)[:, None] * CELL
    carry = carried + ((member * rows + row) * 2 * half)[:, None] * CELL
    told = tl.arange(0, HEADS)[:, None]
    telling = tl.load(heads + told * WIDTH + out, mask=(out < WIDTH) & (told < CELL + 3), other=0.0)

    place = ((member * tokens + tokens - 1) * rows + row)[:, None] * WIDTH + out
    state = tl.load(hidden + place, mask=shown, other=0.0)
    felt = tl.load(grad + place, mask=shown, other=0.0) * slope(state, ACTIVATION)
    tl.store(entered + place, felt, mask=shown)
    after, above = 0, 1  # where the gradient of the stack after a token is, and of how many cells
    here = total  # where the stack before it is
    tl.debug_barrier()
    for back in range(1, tokens):
        token = tokens - 1 - back
        at = ((member * tokens + token) * rows + row)[:, None]
        felt = tl.load(grad + at * WIDTH + out, mask=shown, other=0.0)
        seen = tl.zeros((ROWS, HEADS), tl.float32)  # the gradient of what the next token read
        for k in range(0, WIDTH, INNER):
            within = k + inner
            next = tl.load(
                entered + (at + rows) * WIDTH + within[None, :], mask=real & (within < WIDTH)[None, :], other=0.0
            )
            weight = tl.load(
                across + within[:, None] * (WIDTH + CELL) + out,
                mask=(out < WIDTH) & (within < WIDTH)[:, None],
                other=0.0,
            )
            reading = tl.load(
                across + within[:, None] * (WIDTH + CELL) + WIDTH + head,
                mask=valued & (within < WIDTH)[:, None],
                other=0.0,
            )
            # As above: the narrow product first.
            seen = add_product(seen, next, reading, PRECISION)
            felt = add_product(felt, next, weight, PRECISION)
        depth = tl.minimum(tl.minimum(token, tokens - token), cells)
        filled = (depth + 1) * CELL
        here -= depth + 1
        past = ((member * (tokens - 1) + token) * rows + row)[:, None]
        push = tl.load(acted + past * 3, mask=real, other=0.0)
        stay = tl.load(acted + past * 3 + 1, mask=real, other=0.0)
        pop = tl.load(acted + past * 3 + 2, mask=real, other=0.0)
        seen += tl.load(carry + after * CELL + head, mask=real & valued & (back > 1), other=0.0)
        tl.store(carry + after * CELL + head, seen, mask=real & valued)
        tl.debug_barrier()  # the gradient of the stack is whole
        pushed = tl.zeros((ROWS,), tl.float32)
        stayed = tl.zeros((ROWS,), tl.float32)
        popped = tl.zeros((ROWS,), tl.float32)
        limit = above * CELL
        for j in range(0, tl.maximum(depth, above) * CELL, SPAN):
            i = j + tl.arange(0, SPAN)[None, :]
            mid = tl.load(carry + after * CELL + i, mask=real & (i < limit), other=0.0)
            left = tl.load(carry + after * CELL + i - CELL, mask=real & (i >= CELL) & (i - CELL < limit), other=0.0)
            right = tl.load(carry + after * CELL + i + CELL, mask=real & (i + CELL < limit), other=0.0)
            first, second, third = _three(stack + here * CELL, i, filled, real, CELL)
            pushed += tl.sum(mid * first, axis=1)
            stayed += tl.sum(mid * second, axis=1)
            popped += tl.sum(mid * third, axis=1)
            moved = push * right + stay * mid + pop * left
            tl.store(carry + (half - after) * CELL + i, moved, mask=real & (i < depth * CELL))
        pushed, stayed, popped = pushed[:, None], stayed[:, None], popped[:, None]
        mean = push * pushed + stay * stayed + pop * popped
        said = push * tl.load(carry + after * CELL + head, mask=real & valued, other=0.0)
        said = tl.where(head == CELL, push * (pushed - mean), said)
        said = tl.where(head == CELL + 1, stay * (stayed - mean), said)
        said = tl.where(head == CELL + 2, pop * (popped - mean), said)
        tl.store(headed + past * (CELL + 3) + head, said, mask=real & (head < CELL + 3))
        felt = add_product(felt, said, telling, PRECISION)
        state = tl.load(hidden + at * WIDTH + out, mask=shown, other=0.0)
        tl.store(entered + at * WIDTH + out, felt * slope(state, ACTIVATION), mask=shown)
        after = half - after
        above = depth
        tl.debug_barrier()
