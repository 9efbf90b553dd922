"""All tokens of a net with a tape in one kernel, and all their gradients in another.

The product with the state before gives at once what the token before says of the tape and what it hands on. A tape is
a plane of the real parts of its Fourier coefficients and one of the imaginary parts. Columns of what is said: the value
to write, unless layers of a writer make it, and the five actions.
"""

from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.controller_triton import activate, slope, softmax
from theodolite.kernels.tape_moves import move, unmove
from theodolite.kernels.tiles import add_product


@triton.jit(do_not_specialize=["tokens", "rows", "kinds"])
def forward(
    entering,
    across,
    heads,
    bias,
    first,
    inner_layers,
    last,
    leans,
    least,
    tables,
    means,
    hidden,
    read,
    acted,
    changes,
    written,
    tapes,
    tokens,
    rows,
    kinds,
    WIDTH: tl.constexpr,
    CELL: tl.constexpr,
    LAYERS: tl.constexpr,
    UNITS: tl.constexpr,
    OUT: tl.constexpr,
    HEADS: tl.constexpr,
    WIDE: tl.constexpr,
    CELLS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    KEEP: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
    SPAN: tl.constexpr,
):
    member = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    real = (row < rows)[:, None]
    out, head, inner = tl.arange(0, OUT)[None, :], tl.arange(0, HEADS)[None, :], tl.arange(0, INNER)
    shown, valued, acting = real & (out < WIDTH), head < CELL, (head >= CELL) & (head < CELL + 5)
    across += member * WIDTH * (WIDTH + CELL)
    source, spoken, spoke = _heads(head, CELL, LAYERS)  # pyright: ignore[reportGeneralTypeIssues]
    heads += member * spoke * WIDTH
    lean = tl.load(bias + member * spoke + source, mask=spoken, other=0.0)
    top = tl.arange(0, HEADS)[:, None]
    reading = tl.load(across + out * (WIDTH + CELL) + WIDTH + top, mask=(out < WIDTH) & (top < CELL), other=0.0)
    unit = tl.arange(0, UNITS)
    first += member * UNITS * WIDTH
    leans += member * LAYERS * UNITS
    wide = tl.arange(0, WIDE)[None, :]
    written_here = real & (wide < CELL)

    place = (member * tokens * rows + row)[:, None] * WIDTH + out
    state = activate(tl.load(entering + place, mask=shown, other=0.0), ACTIVATION)
    tl.store(hidden + place, state, mask=shown)
    tl.debug_barrier()
    for token in range(1, tokens):
        at = ((member * tokens + token) * rows + row)[:, None]
        if KEEP:
            past = (member * (tokens - 1) + token - 1) * rows + row
            before = past - rows
        else:
            past = member * rows + row
            before = past
        mixed = tl.load(entering + at * WIDTH + out, mask=shown, other=0.0)
        said = tl.zeros((ROWS, HEADS), tl.float32) + lean
        if LAYERS > 0:
            made = tl.zeros((ROWS, UNITS), tl.float32) + tl.load(leans + unit)[None, :]
        for k in range(0, WIDTH, INNER):
            within = k + inner
            whole = within < WIDTH
            last_state = tl.load(hidden + (at - rows) * WIDTH + within[None, :], mask=real & whole[None, :], other=0.0)
            telling = tl.load(heads + source * WIDTH + within[:, None], mask=spoken & whole[:, None], other=0.0)
            weight = tl.load(
                across + out * (WIDTH + CELL) + within[:, None], mask=(out < WIDTH) & whole[:, None], other=0.0
            )
            # The widest product last: Triton shares its warps out for all of them by it.
            said = add_product(said, last_state, telling, PRECISION)
            if LAYERS > 0:
                opening = tl.load(first + unit[None, :] * WIDTH + within[:, None], mask=whole[:, None], other=0.0)
                made = add_product(made, last_state, opening, PRECISION)
            mixed = add_product(mixed, last_state, weight, PRECISION)
        tl.store(acted + past[:, None] * 5 + head - CELL, softmax(said, acting), mask=real & acting)
        if LAYERS > 0:
            made = tl.maximum(made, 0.0)
            for layer in tl.static_range(1, LAYERS):
                if KEEP:
                    _keep_units(written, made, member, layer - 1, token - 1, tokens, row, rows, LAYERS, UNITS)
                onward = tl.load(
                    inner_layers
                    + (member * (LAYERS - 1) + layer - 1) * UNITS * UNITS
                    + unit[None, :] * UNITS
                    + unit[:, None]
                )
                biased = tl.zeros((ROWS, UNITS), tl.float32) + tl.load(leans + layer * UNITS + unit)[None, :]
                made = tl.maximum(add_product(biased, made, onward, PRECISION), 0.0)
            if KEEP:
                _keep_units(written, made, member, LAYERS - 1, token - 1, tokens, row, rows, LAYERS, UNITS)
            closing = tl.load(
                last + (member * CELL + wide) * UNITS + unit[:, None],
                mask=(wide < CELL) & (unit[:, None] < UNITS),
                other=0.0,
            )
            value = tl.zeros((ROWS, WIDE), tl.float32) + tl.load(
                least + member * CELL + wide, mask=wide < CELL, other=0.0
            )
            value = add_product(value, made, closing, PRECISION)
            seen_last = tl.load(read + before[:, None] * CELL + wide, mask=written_here & (token > 1), other=0.0)
            tl.store(changes + past[:, None] * CELL + wide, value - seen_last, mask=written_here)
        else:
            seen_before = tl.load(read + before[:, None] * CELL + head, mask=real & valued & (token > 1), other=0.0)
            tl.store(changes + past[:, None] * CELL + head, said - seen_before, mask=real & valued)
        tl.debug_barrier()  # what was said is there for all threads
        if KEEP:
            tape_row = (member * (tokens - 2) + token - 1) * rows + row
            tape_before = tape_row - rows
            stored = token < tokens - 1
        else:
            tape_row = member * rows + row
            tape_before = tape_row
            stored = token < tokens
        seen = move(
            tapes, tables, means, acted, changes, member * rows + row, past, tape_before, tape_row,
            kinds, row < rows, token > 1, stored, CELL, CELLS, ROWS, SPAN
        )  # fmt: skip
        cell = tl.arange(0, CELLS)[None, :]
        tl.store(read + past[:, None] * CELL + cell, seen, mask=real & (cell < CELL))
        tl.debug_barrier()  # and so is what is read
        now = tl.load(read + past[:, None] * CELL + head, mask=real & valued, other=0.0)
        mixed = add_product(mixed, now, reading, PRECISION)
        tl.store(hidden + at * WIDTH + out, activate(mixed, ACTIVATION), mask=shown)
        tl.debug_barrier()  # and so is the state


@triton.jit(do_not_specialize=["tokens", "rows", "kinds"])
def backward(
    grad,
    across,
    heads,
    first,
    inner_layers,
    last,
    tables,
    means,
    hidden,
    acted,
    changes,
    written,
    tapes,
    entered,
    headed,
    changed,
    wrote,
    felt_read,
    carried,
    tokens,
    rows,
    kinds,
    WIDTH: tl.constexpr,
    CELL: tl.constexpr,
    LAYERS: tl.constexpr,
    UNITS: tl.constexpr,
    OUT: tl.constexpr,
    HEADS: tl.constexpr,
    WIDE: tl.constexpr,
    CELLS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
    SPAN: tl.constexpr,
):
    member = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    real = (row < rows)[:, None]
    out, head, inner = tl.arange(0, OUT)[None, :], tl.arange(0, HEADS)[None, :], tl.arange(0, INNER)
    shown, valued = real & (out < WIDTH), head < CELL
    across += member * WIDTH * (WIDTH + CELL)
    source, spoken, spoke = _heads(head, CELL, LAYERS)  # pyright: ignore[reportGeneralTypeIssues]
    heads += member * spoke * WIDTH
    told, tells, _ = _heads(tl.arange(0, HEADS)[:, None], CELL, LAYERS)
    telling = tl.load(heads + told * WIDTH + out, mask=(out < WIDTH) & tells, other=0.0)
    unit = tl.arange(0, UNITS)
    first += member * UNITS * WIDTH
    cell = tl.arange(0, CELLS)[None, :]
    one = member * rows + row

    place = ((member * tokens + tokens - 1) * rows + row)[:, None] * WIDTH + out
    state = tl.load(hidden + place, mask=shown, other=0.0)
    felt = tl.load(grad + place, mask=shown, other=0.0) * slope(state, ACTIVATION)
    tl.store(entered + place, felt, mask=shown)
    tl.debug_barrier()
    for back in range(1, tokens):
        token = tokens - 1 - back
        at = ((member * tokens + token) * rows + row)[:, None]
        past = (member * (tokens - 1) + token) * rows + row
        felt = tl.load(grad + at * WIDTH + out, mask=shown, other=0.0)
        seen = tl.zeros((ROWS, HEADS), tl.float32)  # the gradient of what the next token read
        for k in range(0, WIDTH, INNER):
            within = k + inner
            whole = (within < WIDTH)[:, None]
            next = tl.load(
                entered + (at + rows) * WIDTH + within[None, :], mask=real & (within < WIDTH)[None, :], other=0.0
            )
            line = across + within[:, None] * (WIDTH + CELL)
            reading = tl.load(line + WIDTH + head, mask=valued & whole, other=0.0)
            weight = tl.load(line + out, mask=(out < WIDTH) & whole, other=0.0)
            # As above: the widest product last.
            seen = add_product(seen, next, reading, PRECISION)
            felt = add_product(felt, next, weight, PRECISION)
        overwritten = tl.load(
            changed + (past + rows)[:, None] * CELL + head, mask=real & valued & (back > 1), other=0.0
        )
        tl.store(felt_read + one[:, None] * CELL + head, seen - overwritten, mask=real & valued)
        tl.debug_barrier()  # the gradient of what was read is there for all threads
        shift, stay, forth, back_, far, near = unmove(
            tapes, tables, means, acted, changes, carried, felt_read, one, past,
            (member * (tokens - 2) + token - 1) * rows + row, kinds, row < rows, token > 0, back > 1,
            CELL, CELLS, ROWS, SPAN
        )  # fmt: skip
        tl.store(changed + past[:, None] * CELL + cell, shift, mask=real & (cell < CELL))
        chance = tl.load(
            acted + past[:, None] * 5 + head - CELL, mask=real & (head >= CELL) & (head < CELL + 5), other=0.0
        )
        weighed = tl.where(head == CELL, stay[:, None], 0.0)
        weighed = tl.where(head == CELL + 1, forth[:, None], weighed)
        weighed = tl.where(head == CELL + 2, back_[:, None], weighed)
        weighed = tl.where(head == CELL + 3, far[:, None], weighed)
        weighed = tl.where(head == CELL + 4, near[:, None], weighed)
        said = chance * (weighed - tl.sum(chance * weighed, axis=1)[:, None])
        tl.debug_barrier()  # and so is the gradient of what was written
        value = tl.load(changed + past[:, None] * CELL + head, mask=real & valued, other=0.0)
        if LAYERS == 0:
            said += value
        tl.store(headed + past[:, None] * spoke + source, said, mask=real & spoken)
        felt = add_product(felt, said, telling, PRECISION)
        if LAYERS > 0:
            closing = tl.load(
                last + (member * CELL + tl.arange(0, HEADS)[:, None]) * UNITS + unit[None, :],
                mask=tl.arange(0, HEADS)[:, None] < CELL,
                other=0.0,
            )
            made = add_product(tl.zeros((ROWS, UNITS), tl.float32), value, closing, PRECISION)
            for step in tl.static_range(1, LAYERS):
                layer = LAYERS - step
                made *= _units_slope(written, member, layer, token, tokens, row, rows, LAYERS, UNITS)
                _keep_units(wrote, made, member, layer, token, tokens, row, rows, LAYERS, UNITS)
                onward = tl.load(
                    inner_layers
                    + (member * (LAYERS - 1) + layer - 1) * UNITS * UNITS
                    + unit[:, None] * UNITS
                    + unit[None, :]
                )
                made = add_product(tl.zeros((ROWS, UNITS), tl.float32), made, onward, PRECISION)
            made *= _units_slope(written, member, 0, token, tokens, row, rows, LAYERS, UNITS)
            _keep_units(wrote, made, member, 0, token, tokens, row, rows, LAYERS, UNITS)
            tl.debug_barrier()  # and so are the gradients of the writer's first units
            units = (member * LAYERS * (tokens - 1) + token) * rows + row
            for k in range(0, UNITS, INNER):
                within = k + inner
                some = tl.load(wrote + units[:, None] * UNITS + within[None, :], mask=real, other=0.0)
                opening = tl.load(first + within[:, None] * WIDTH + out, mask=out < WIDTH, other=0.0)
                felt = add_product(felt, some, opening, PRECISION)
        state = tl.load(hidden + at * WIDTH + out, mask=shown, other=0.0)
        tl.store(entered + at * WIDTH + out, felt * slope(state, ACTIVATION), mask=shown)
        tl.debug_barrier()


@triton.jit
def _heads(column, CELL: tl.constexpr, LAYERS: tl.constexpr):
    """Of a column of what is said: its row among the heads, whether it is one of them; and how many they are."""
    if LAYERS == 0:
        return (column + 5) % (CELL + 5), column < CELL + 5, CELL + 5
    else:
        return column - CELL, (column >= CELL) & (column < CELL + 5), 5


@triton.jit
def _keep_units(onto, units, member, layer, token, tokens, row, rows, LAYERS: tl.constexpr, UNITS: tl.constexpr):
    where = ((member * LAYERS + layer) * (tokens - 1) + token) * rows + row
    tl.store(onto + where[:, None] * UNITS + tl.arange(0, UNITS)[None, :], units, mask=(row < rows)[:, None])


@triton.jit
def _units_slope(written, member, layer, token, tokens, row, rows, LAYERS: tl.constexpr, UNITS: tl.constexpr):
    where = ((member * LAYERS + layer) * (tokens - 1) + token) * rows + row
    units = tl.load(
        written + where[:, None] * UNITS + tl.arange(0, UNITS)[None, :], mask=(row < rows)[:, None], other=0.0
    )
    return tl.where(units > 0.0, 1.0, 0.0)
