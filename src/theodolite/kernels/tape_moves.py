"""How tapes move: their Fourier coefficients are turned by the mean of the five actions, and back for the gradient."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _turn(tables, acted, one, past, k, kinds, real, held):
    """Of the actions' mean: the real and imaginary part at coefficient k. And the cosines and sines of a step and of a
    jump; what goes back has their conjugates."""
    stay = tl.load(acted + past * 5, mask=real, other=0.0)[:, None]
    forth = tl.load(acted + past * 5 + 1, mask=real, other=0.0)[:, None]
    back = tl.load(acted + past * 5 + 2, mask=real, other=0.0)[:, None]
    far = tl.load(acted + past * 5 + 3, mask=real, other=0.0)[:, None]
    near = tl.load(acted + past * 5 + 4, mask=real, other=0.0)[:, None]
    table = tables + one[:, None] * 4 * kinds + k
    step_cos = tl.load(table, mask=held, other=0.0)
    step_sin = tl.load(table + kinds, mask=held, other=0.0)
    jump_cos = tl.load(table + 2 * kinds, mask=held, other=0.0)
    jump_sin = tl.load(table + 3 * kinds, mask=held, other=0.0)
    turn_real = stay + (forth + back) * step_cos + (far + near) * jump_cos
    turn_imaginary = (forth - back) * step_sin + (far - near) * jump_sin
    return turn_real, turn_imaginary, step_cos, step_sin, jump_cos, jump_sin


@triton.jit
def _flat(start, kinds, real, CELL: tl.constexpr, CELLS: tl.constexpr, BLOCK: tl.constexpr):
    """Where the numbers of coefficients from `start` on are in a plane, and which of them are there."""
    i = tl.arange(0, BLOCK * CELLS)[None, :]
    if CELL == CELLS:
        return start * CELL + i, real[:, None] & (start * CELL + i < kinds * CELL)
    else:
        k, cell = start + i // CELLS, i % CELLS
        return k * CELL + cell, real[:, None] & (k < kinds) & (cell < CELL)


@triton.jit
def _cells(x, BLOCK: tl.constexpr, CELLS: tl.constexpr):
    return tl.reshape(x, (x.shape[0], BLOCK, CELLS))


@triton.jit
def move(
    tapes,
    tables,
    means,
    acted,
    changes,
    one,
    past,
    tape_before,
    tape_after,
    kinds,
    real,
    filled,
    stored,
    CELL: tl.constexpr,
    CELLS: tl.constexpr,
    ROWS: tl.constexpr,
    SPAN: tl.constexpr,
):
    """Writes on the tapes, moves them and returns what is read then."""
    BLOCK: tl.constexpr = SPAN // CELLS
    cell = tl.arange(0, CELLS)
    change = tl.load(
        changes + past[:, None] * CELL + cell[None, :], mask=real[:, None] & (cell < CELL)[None, :], other=0.0
    )
    plane = kinds * CELL
    seen = tl.zeros((ROWS, BLOCK, CELLS), tl.float32)
    for start in range(0, kinds, BLOCK):
        k = (start + tl.arange(0, BLOCK))[None, :]
        held = real[:, None] & (k < kinds)
        turn_real, turn_imaginary, _, _, _, _ = _turn(tables, acted, one, past, k, kinds, real, held)
        mean = tl.load(means + one[:, None] * kinds + k, mask=held, other=0.0)
        turn_real, turn_imaginary, mean = turn_real[:, :, None], turn_imaginary[:, :, None], mean[:, :, None]
        where, inside = _flat(start, kinds, real, CELL, CELLS, BLOCK)
        source = tapes + (tape_before * 2)[:, None] * plane + where
        x = _cells(tl.load(source, mask=inside & filled, other=0.0), BLOCK, CELLS) + change[:, None, :]
        y = _cells(tl.load(source + plane, mask=inside & filled, other=0.0), BLOCK, CELLS)
        moved_x, moved_y = turn_real * x - turn_imaginary * y, turn_real * y + turn_imaginary * x
        target = tapes + (tape_after * 2)[:, None] * plane + where
        tl.store(target, tl.reshape(moved_x, (ROWS, SPAN)), mask=inside & stored)
        tl.store(target + plane, tl.reshape(moved_y, (ROWS, SPAN)), mask=inside & stored)
        seen += mean * moved_x
    return tl.sum(seen, axis=1)


@triton.jit
def unmove(
    tapes,
    tables,
    means,
    acted,
    changes,
    carried,
    felt_read,
    one,
    past,
    tape_before,
    kinds,
    real,
    filled,
    felt,
    CELL: tl.constexpr,
    CELLS: tl.constexpr,
    ROWS: tl.constexpr,
    SPAN: tl.constexpr,
):
    """Takes the gradient of the tapes back over a move; returns those of what was written and of the actions."""
    BLOCK: tl.constexpr = SPAN // CELLS
    cell = tl.arange(0, CELLS)
    shape = real[:, None] & (cell < CELL)[None, :]
    change = tl.load(changes + past[:, None] * CELL + cell[None, :], mask=shape, other=0.0)
    reading = tl.load(felt_read + one[:, None] * CELL + cell[None, :], mask=shape, other=0.0)
    plane = kinds * CELL
    shift = tl.zeros((ROWS, BLOCK, CELLS), tl.float32)
    stay = tl.zeros((ROWS, BLOCK), tl.float32)
    step_even, step_odd = stay, stay
    jump_even, jump_odd = stay, stay
    for start in range(0, kinds, BLOCK):
        k = (start + tl.arange(0, BLOCK))[None, :]
        held = real[:, None] & (k < kinds)
        turn_real, turn_imaginary, step_cos, step_sin, jump_cos, jump_sin = _turn(
            tables, acted, one, past, k, kinds, real, held
        )
        mean = tl.load(means + one[:, None] * kinds + k, mask=held, other=0.0)
        turn_real, turn_imaginary = turn_real[:, :, None], turn_imaginary[:, :, None]
        where, inside = _flat(start, kinds, real, CELL, CELLS, BLOCK)
        source = tapes + (tape_before * 2)[:, None] * plane + where
        x = _cells(tl.load(source, mask=inside & filled, other=0.0), BLOCK, CELLS) + change[:, None, :]
        y = _cells(tl.load(source + plane, mask=inside & filled, other=0.0), BLOCK, CELLS)
        carry = carried + (one * 2)[:, None] * plane + where
        u = _cells(tl.load(carry, mask=inside & felt, other=0.0), BLOCK, CELLS)
        u += mean[:, :, None] * reading[:, None, :]
        v = _cells(tl.load(carry + plane, mask=inside & felt, other=0.0), BLOCK, CELLS)
        even, odd = tl.sum(x * u + y * v, axis=2), tl.sum(x * v - y * u, axis=2)
        stay += even
        step_even += step_cos * even
        step_odd += step_sin * odd
        jump_even += jump_cos * even
        jump_odd += jump_sin * odd
        unmoved = turn_real * u + turn_imaginary * v
        tl.store(carry, tl.reshape(unmoved, (ROWS, SPAN)), mask=inside)
        tl.store(carry + plane, tl.reshape(turn_real * v - turn_imaginary * u, (ROWS, SPAN)), mask=inside)
        shift += unmoved
    step_even, step_odd = tl.sum(step_even, axis=1), tl.sum(step_odd, axis=1)
    jump_even, jump_odd = tl.sum(jump_even, axis=1), tl.sum(jump_odd, axis=1)
    step, jump = (step_even + step_odd, step_even - step_odd), (jump_even + jump_odd, jump_even - jump_odd)
    return tl.sum(shift, axis=1), tl.sum(stay, axis=1), step[0], step[1], jump[0], jump[1]
