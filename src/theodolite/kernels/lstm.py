"""Long short-term memory over all tokens: one program for a block of rows of one member.

`kept` is (member, token, row, 5 width): forget, input, output gate, candidate, cell. Weights that fit (`RESIDENT`) are
read once, and what the next token needs is fetched meanwhile; others are streamed at every token in tiles of `INNER` ×
`COLUMNS`, and the state goes through memory: a launch takes `span` tokens, the first of them `begin` after the first
(before the last, going back), and the programs of its second axis share the units.
"""

from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.tiles import add_product, load_four, load_row, load_tile, store_four, store_tile, tanh


@triton.jit
def _biases(bias, column, WIDTH: tl.constexpr):
    return (
        load_row(bias, column, WIDTH),
        load_row(bias + WIDTH, column, WIDTH),
        load_row(bias + 2 * WIDTH, column, WIDTH),
        load_row(bias + 3 * WIDTH, column, WIDTH),
    )


@triton.jit
def _cell(forget_in, input_in, output_in, candidate_in, cell):
    forget, enter, out = tl.sigmoid(forget_in), tl.sigmoid(input_in), tl.sigmoid(output_in)
    candidate = tanh(candidate_in)
    cell = forget * cell + enter * candidate
    return forget, enter, out, candidate, cell, out * tanh(cell)


@triton.jit
def _cell_backward(hidden_grad, cell_grad, forget, enter, out, candidate, cell, cell_before):
    """Gradients at the four that enter the gates, and at the cell before."""
    shown = tanh(cell)
    cell_grad += hidden_grad * out * (1 - shown * shown)
    return (
        cell_grad * cell_before * forget * (1 - forget),
        cell_grad * candidate * enter * (1 - enter),
        hidden_grad * shown * out * (1 - out),
        cell_grad * enter * (1 - candidate * candidate),
        cell_grad * forget,
    )


@triton.jit(do_not_specialize=["rows", "tokens", "begin", "span"])
def forward(
    entering,
    bias,
    across,
    states,
    kept,
    carried,
    rows,
    tokens,
    begin,
    span,
    entering_member,
    entering_token,
    entering_row,
    bias_member,
    across_member,
    ACROSS_OUT: tl.constexpr,
    ACROSS_IN: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    RESIDENT: tl.constexpr,
    KEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):
    blocks = tl.cdiv(rows, ROWS)
    member = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    entering += member * entering_member
    bias += member * bias_member
    across += member * across_member
    token_states = rows.to(tl.int64) * WIDTH
    states += member * tokens * token_states
    GATE: tl.constexpr = WIDTH * ACROSS_OUT
    if KEEP:
        kept += member * tokens * rows * (5 * WIDTH)
    carried += member * rows * WIDTH
    if RESIDENT:
        column = tl.arange(0, COLUMNS)
        to_forget, to_input, to_output, to_candidate = load_four(
            across, column, column, ACROSS_IN, ACROSS_OUT, GATE, WIDTH, WIDTH
        )
        for_forget, for_input, for_output, for_candidate = _biases(bias, column, WIDTH)
        hidden = tl.zeros((ROWS, COLUMNS), tl.float32)
        cell = tl.zeros((ROWS, COLUMNS), tl.float32)
        ahead_forget, ahead_input, ahead_output, ahead_candidate = load_four(
            entering, row, column, entering_row, 1, WIDTH, rows, WIDTH
        )
        for token in range(tokens):
            forget, enter = ahead_forget + for_forget, ahead_input + for_input
            out, candidate = ahead_output + for_output, ahead_candidate + for_candidate
            entering += entering_token
            more = rows * tl.minimum(tokens - 1 - token, 1)
            ahead_forget, ahead_input, ahead_output, ahead_candidate = load_four(
                entering, row, column, entering_row, 1, WIDTH, more, WIDTH
            )
            forget = add_product(forget, hidden, to_forget, PRECISION)
            enter = add_product(enter, hidden, to_input, PRECISION)
            out = add_product(out, hidden, to_output, PRECISION)
            candidate = add_product(candidate, hidden, to_candidate, PRECISION)
            forget, enter, out, candidate, cell, hidden = _cell(forget, enter, out, candidate, cell)
            store_tile(states, hidden, row, column, WIDTH, rows, WIDTH)
            if KEEP:
                store_four(kept, forget, enter, out, candidate, row, column, 5 * WIDTH, rows, WIDTH)
                store_tile(kept + 4 * WIDTH, cell, row, column, 5 * WIDTH, rows, WIDTH)
                kept += rows.to(tl.int64) * (5 * WIDTH)
            states += token_states
    else:
        inner = tl.arange(0, INNER)
        entering += begin.to(tl.int64) * entering_token
        states += begin * token_states
        if KEEP:
            kept += begin * token_states * 5
        for token in range(begin, begin + span):
            started = tl.minimum(token, 1)
            for first in range(tl.program_id(1) * COLUMNS, WIDTH, tl.num_programs(1) * COLUMNS):
                column = first + tl.arange(0, COLUMNS)
                forget, enter, out, candidate = load_four(entering, row, column, entering_row, 1, WIDTH, rows, WIDTH)
                for_forget, for_input, for_output, for_candidate = _biases(bias, column, WIDTH)
                forget, enter = forget + for_forget, enter + for_input
                out, candidate = out + for_output, candidate + for_candidate
                for start in range(0, started * WIDTH, INNER):
                    k = start + inner
                    hidden = load_tile(states - token_states, row, k, WIDTH, 1, rows, WIDTH)
                    to_forget, to_input, to_output, to_candidate = load_four(
                        across, k, column, ACROSS_IN, ACROSS_OUT, GATE, WIDTH, WIDTH
                    )
                    forget = add_product(forget, hidden, to_forget, PRECISION)
                    enter = add_product(enter, hidden, to_input, PRECISION)
                    out = add_product(out, hidden, to_output, PRECISION)
                    candidate = add_product(candidate, hidden, to_candidate, PRECISION)
                cell = load_tile(carried, row, column, WIDTH, 1, rows * started, WIDTH)
                forget, enter, out, candidate, cell, hidden = _cell(forget, enter, out, candidate, cell)
                store_tile(states, hidden, row, column, WIDTH, rows, WIDTH)
                store_tile(carried, cell, row, column, WIDTH, rows, WIDTH)
                if KEEP:
                    store_four(kept, forget, enter, out, candidate, row, column, 5 * WIDTH, rows, WIDTH)
                    store_tile(kept + 4 * WIDTH, cell, row, column, 5 * WIDTH, rows, WIDTH)
            tl.debug_barrier()  # other threads read this state
            entering += entering_token
            states += token_states
            if KEEP:
                kept += rows.to(tl.int64) * (5 * WIDTH)


@triton.jit(do_not_specialize=["rows", "tokens", "begin", "span"])
def backward(
    shown_grad,
    across,
    states,
    kept,
    carried,
    entering_grad,
    given_grad,
    rows,
    tokens,
    begin,
    span,
    shown_member,
    shown_token,
    shown_row,
    across_member,
    ACROSS_OUT: tl.constexpr,
    ACROSS_IN: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    RESIDENT: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """`given_grad` is empty: what the state gives is added to what enters."""
    blocks = tl.cdiv(rows, ROWS)
    member = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    last = tokens.to(tl.int64) - 1
    token_kept = rows.to(tl.int64) * (5 * WIDTH)
    token_grad = rows.to(tl.int64) * (4 * WIDTH)
    shown_grad += member * shown_member + last * shown_token
    across += member * across_member
    kept += (member * tokens + last) * token_kept
    entering_grad += (member * tokens + last) * token_grad
    carried += member * rows * WIDTH
    GATE: tl.constexpr = WIDTH * ACROSS_OUT
    if RESIDENT:
        column = tl.arange(0, COLUMNS)
        to_forget, to_input, to_output, to_candidate = load_four(
            across, column, column, ACROSS_OUT, ACROSS_IN, GATE, WIDTH, WIDTH
        )
        from_later = tl.zeros((ROWS, COLUMNS), tl.float32)
        cell_grad = tl.zeros((ROWS, COLUMNS), tl.float32)
        for later in range(tokens):
            started = tl.minimum(tokens - 1 - later, 1)
            hidden_grad = from_later + load_tile(shown_grad, row, column, shown_row, 1, rows, WIDTH)
            forget, enter, out, candidate = load_four(kept, row, column, 5 * WIDTH, 1, WIDTH, rows, WIDTH)
            cell = load_tile(kept + 4 * WIDTH, row, column, 5 * WIDTH, 1, rows, WIDTH)
            cell_before = load_tile(kept - token_kept + 4 * WIDTH, row, column, 5 * WIDTH, 1, rows * started, WIDTH)
            forget, enter, out, candidate, cell_grad = _cell_backward(
                hidden_grad, cell_grad, forget, enter, out, candidate, cell, cell_before
            )
            store_four(entering_grad, forget, enter, out, candidate, row, column, 4 * WIDTH, rows, WIDTH)
            from_later = tl.zeros((ROWS, COLUMNS), tl.float32)
            from_later = add_product(from_later, forget, to_forget, PRECISION)
            from_later = add_product(from_later, enter, to_input, PRECISION)
            from_later = add_product(from_later, out, to_output, PRECISION)
            from_later = add_product(from_later, candidate, to_candidate, PRECISION)
            shown_grad -= shown_token
            kept -= token_kept
            entering_grad -= token_grad
    else:
        inner = tl.arange(0, INNER)
        shown_grad -= begin.to(tl.int64) * shown_token
        kept -= begin * token_kept
        entering_grad -= begin * token_grad
        for later in range(begin, begin + span):
            ended, started = tl.minimum(later, 1), tl.minimum(tokens - 1 - later, 1)
            for first in range(tl.program_id(1) * COLUMNS, WIDTH, tl.num_programs(1) * COLUMNS):
                column = first + tl.arange(0, COLUMNS)
                hidden_grad = load_tile(shown_grad, row, column, shown_row, 1, rows, WIDTH)
                for start in range(0, ended * (4 * WIDTH), INNER):
                    k = start + inner
                    gate_grad = load_tile(entering_grad + token_grad, row, k, 4 * WIDTH, 1, rows, 4 * WIDTH)
                    weight = load_tile(across, k, column, ACROSS_OUT, ACROSS_IN, 4 * WIDTH, WIDTH)
                    hidden_grad = add_product(hidden_grad, gate_grad, weight, PRECISION)
                cell_grad = load_tile(carried, row, column, WIDTH, 1, rows * ended, WIDTH)
                forget, enter, out, candidate = load_four(kept, row, column, 5 * WIDTH, 1, WIDTH, rows, WIDTH)
                cell = load_tile(kept + 4 * WIDTH, row, column, 5 * WIDTH, 1, rows, WIDTH)
                cell_before = load_tile(kept - token_kept + 4 * WIDTH, row, column, 5 * WIDTH, 1, rows * started, WIDTH)
                forget, enter, out, candidate, cell_grad = _cell_backward(
                    hidden_grad, cell_grad, forget, enter, out, candidate, cell, cell_before
                )
                store_four(entering_grad, forget, enter, out, candidate, row, column, 4 * WIDTH, rows, WIDTH)
                store_tile(carried, cell_grad, row, column, WIDTH, rows, WIDTH)
            tl.debug_barrier()  # other threads read these gradients
            shown_grad -= shown_token
            kept -= token_kept
            entering_grad -= token_grad
