"""The gated recurrent unit over all tokens: one program for a block of rows of one member.

`kept` is (member, token, row, 4 width): reset, update, candidate, and what the state gives to the candidate. Weights
that fit (`RESIDENT`) are read once, and what the next token needs is fetched meanwhile; others are streamed at every
token in tiles of `INNER` × `COLUMNS`, and the state goes through memory; `begin` and `span` as in `lstm`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.tiles import (
    add_product,
    load_four,
    load_row,
    load_three,
    load_tile,
    store_four,
    store_tile,
    tanh,
)


@triton.jit
def _biases(bias, column, WIDTH: tl.constexpr):
    return (
        load_row(bias, column, WIDTH),
        load_row(bias + WIDTH, column, WIDTH),
        load_row(bias + 2 * WIDTH, column, WIDTH),
    )


@triton.jit
def _cell(reset_in, update_in, candidate_in, given, hidden):
    reset, update = tl.sigmoid(reset_in), tl.sigmoid(update_in)
    candidate = tanh(candidate_in + reset * given)
    return reset, update, candidate, candidate + update * (hidden - candidate)


@triton.jit
def _cell_backward(hidden_grad, reset, update, candidate, given, before):
    """Gradients at what enters reset, update and candidate, at `given`, and directly at the state before."""
    candidate_grad = hidden_grad * (1 - update) * (1 - candidate * candidate)
    return (
        candidate_grad * given * reset * (1 - reset),
        hidden_grad * (before - candidate) * update * (1 - update),
        candidate_grad,
        candidate_grad * reset,
        hidden_grad * update,
    )


@triton.jit
def _store_grads(entering_grad, given_grad, reset, update, candidate, given, row, column, rows, WIDTH: tl.constexpr):
    store_tile(entering_grad, reset, row, column, 3 * WIDTH, rows, WIDTH)
    store_tile(entering_grad + WIDTH, update, row, column, 3 * WIDTH, rows, WIDTH)
    store_tile(entering_grad + 2 * WIDTH, candidate, row, column, 3 * WIDTH, rows, WIDTH)
    store_tile(given_grad, reset, row, column, 3 * WIDTH, rows, WIDTH)
    store_tile(given_grad + WIDTH, update, row, column, 3 * WIDTH, rows, WIDTH)
    store_tile(given_grad + 2 * WIDTH, given, row, column, 3 * WIDTH, rows, WIDTH)


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
    """`carried` is not used: the state is all that goes on."""
    blocks = tl.cdiv(rows, ROWS)
    member = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    token_states = rows.to(tl.int64) * WIDTH
    entering += member * entering_member
    bias += member * bias_member
    across += member * across_member
    states += member * tokens * token_states
    if KEEP:
        kept += member * tokens * token_states * 4
    GATE: tl.constexpr = WIDTH * ACROSS_OUT
    if RESIDENT:
        column = tl.arange(0, COLUMNS)
        to_reset, to_update, to_candidate = load_three(
            across, column, column, ACROSS_IN, ACROSS_OUT, GATE, WIDTH, WIDTH
        )
        for_reset, for_update, for_candidate = _biases(bias, column, WIDTH)
        hidden = tl.zeros((ROWS, COLUMNS), tl.float32)
        ahead_reset, ahead_update, ahead_candidate = load_three(
            entering, row, column, entering_row, 1, WIDTH, rows, WIDTH
        )
        for token in range(tokens):
            reset, update = ahead_reset + for_reset, ahead_update + for_update
            candidate = ahead_candidate + for_candidate
            entering += entering_token
            more = rows * tl.minimum(tokens - 1 - token, 1)
            ahead_reset, ahead_update, ahead_candidate = load_three(
                entering, row, column, entering_row, 1, WIDTH, more, WIDTH
            )
            reset = add_product(reset, hidden, to_reset, PRECISION)
            update = add_product(update, hidden, to_update, PRECISION)
            given = add_product(tl.zeros((ROWS, COLUMNS), tl.float32), hidden, to_candidate, PRECISION)
            reset, update, candidate, hidden = _cell(reset, update, candidate, given, hidden)
            store_tile(states, hidden, row, column, WIDTH, rows, WIDTH)
            if KEEP:
                store_four(kept, reset, update, candidate, given, row, column, 4 * WIDTH, rows, WIDTH)
                kept += token_states * 4
            states += token_states
    else:
        inner = tl.arange(0, INNER)
        entering += begin.to(tl.int64) * entering_token
        states += begin * token_states
        if KEEP:
            kept += begin * token_states * 4
        for token in range(begin, begin + span):
            started = tl.minimum(token, 1)
            for first in range(tl.program_id(1) * COLUMNS, WIDTH, tl.num_programs(1) * COLUMNS):
                column = first + tl.arange(0, COLUMNS)
                reset, update, candidate = load_three(entering, row, column, entering_row, 1, WIDTH, rows, WIDTH)
                for_reset, for_update, for_candidate = _biases(bias, column, WIDTH)
                reset, update, candidate = reset + for_reset, update + for_update, candidate + for_candidate
                given = tl.zeros((ROWS, COLUMNS), tl.float32)
                for start in range(0, started * WIDTH, INNER):
                    k = start + inner
                    hidden = load_tile(states - token_states, row, k, WIDTH, 1, rows, WIDTH)
                    to_reset, to_update, to_candidate = load_three(
                        across, k, column, ACROSS_IN, ACROSS_OUT, GATE, WIDTH, WIDTH
                    )
                    reset = add_product(reset, hidden, to_reset, PRECISION)
                    update = add_product(update, hidden, to_update, PRECISION)
                    given = add_product(given, hidden, to_candidate, PRECISION)
                hidden = load_tile(states - token_states, row, column, WIDTH, 1, rows * started, WIDTH)
                reset, update, candidate, hidden = _cell(reset, update, candidate, given, hidden)
                store_tile(states, hidden, row, column, WIDTH, rows, WIDTH)
                if KEEP:
                    store_four(kept, reset, update, candidate, given, row, column, 4 * WIDTH, rows, WIDTH)
            tl.debug_barrier()  # other threads read this state
            entering += entering_token
            states += token_states
            if KEEP:
                kept += token_states * 4


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
    """`given_grad` is at what the state gives, which the reset gate multiplies before it meets what enters."""
    blocks = tl.cdiv(rows, ROWS)
    member = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    last = tokens.to(tl.int64) - 1
    token_states = rows.to(tl.int64) * WIDTH
    shown_grad += member * shown_member + last * shown_token
    across += member * across_member
    states += (member * tokens + last) * token_states
    kept += (member * tokens + last) * token_states * 4
    entering_grad += (member * tokens + last) * token_states * 3
    given_grad += (member * tokens + last) * token_states * 3
    carried += member * token_states
    GATE: tl.constexpr = WIDTH * ACROSS_OUT
    if RESIDENT:
        column = tl.arange(0, COLUMNS)
        to_reset, to_update, to_candidate = load_three(
            across, column, column, ACROSS_OUT, ACROSS_IN, GATE, WIDTH, WIDTH
        )
        from_later = tl.zeros((ROWS, COLUMNS), tl.float32)
        for later in range(tokens):
            started = tl.minimum(tokens - 1 - later, 1)
            hidden_grad = from_later + load_tile(shown_grad, row, column, shown_row, 1, rows, WIDTH)
            reset, update, candidate, given = load_four(kept, row, column, 4 * WIDTH, 1, WIDTH, rows, WIDTH)
            before = load_tile(states - token_states, row, column, WIDTH, 1, rows * started, WIDTH)
            reset, update, candidate, given, direct = _cell_backward(
                hidden_grad, reset, update, candidate, given, before
            )
            _store_grads(entering_grad, given_grad, reset, update, candidate, given, row, column, rows, WIDTH)
            from_later = add_product(direct, reset, to_reset, PRECISION)
            from_later = add_product(from_later, update, to_update, PRECISION)
            from_later = add_product(from_later, given, to_candidate, PRECISION)
            shown_grad -= shown_token
            states -= token_states
            kept -= token_states * 4
            entering_grad -= token_states * 3
            given_grad -= token_states * 3
    else:
        inner = tl.arange(0, INNER)
        shown_grad -= begin.to(tl.int64) * shown_token
        states -= begin * token_states
        kept -= begin * token_states * 4
        entering_grad -= begin * token_states * 3
        given_grad -= begin * token_states * 3
        for later in range(begin, begin + span):
            ended, started = tl.minimum(later, 1), tl.minimum(tokens - 1 - later, 1)
            for first in range(tl.program_id(1) * COLUMNS, WIDTH, tl.num_programs(1) * COLUMNS):
                column = first + tl.arange(0, COLUMNS)
                hidden_grad = load_tile(shown_grad, row, column, shown_row, 1, rows, WIDTH)
                for start in range(0, ended * (3 * WIDTH), INNER):
                    k = start + inner
                    gate_grad = load_tile(given_grad + token_states * 3, row, k, 3 * WIDTH, 1, rows, 3 * WIDTH)
                    weight = load_tile(across, k, column, ACROSS_OUT, ACROSS_IN, 3 * WIDTH, WIDTH)
                    hidden_grad = add_product(hidden_grad, gate_grad, weight, PRECISION)
                hidden_grad += load_tile(carried, row, column, WIDTH, 1, rows * ended, WIDTH)
                reset, update, candidate, given = load_four(kept, row, column, 4 * WIDTH, 1, WIDTH, rows, WIDTH)
                before = load_tile(states - token_states, row, column, WIDTH, 1, rows * started, WIDTH)
                reset, update, candidate, given, direct = _cell_backward(
                    hidden_grad, reset, update, candidate, given, before
                )
                _store_grads(entering_grad, given_grad, reset, update, candidate, given, row, column, rows, WIDTH)
                store_tile(carried, direct, row, column, WIDTH, rows, WIDTH)
            tl.debug_barrier()  # other threads read these gradients
            shown_grad -= shown_token
            states -= token_states
            kept -= token_states * 4
            entering_grad -= token_states * 3
            given_grad -= token_states * 3
