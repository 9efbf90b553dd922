"""The Elman network over all tokens: one program for a block of rows of one member.

The gradient needs nothing but the states. Weights that fit (`RESIDENT`) are read once, and what the next token needs
is fetched meanwhile; others are streamed at every token in tiles of `INNER` × `COLUMNS`, and the state goes through
memory; `begin` and `span` as in `lstm`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.tiles import add_product, load_row, load_tile, store_tile, tanh


@triton.jit
def _activation(x, BOUNDED: tl.constexpr):
    if BOUNDED:
        return tanh(x)
    else:
        return tl.where(x < 0, 0.0, x)


@triton.jit
def _activation_backward(grad, hidden, BOUNDED: tl.constexpr):
    if BOUNDED:
        return grad * (1 - hidden * hidden)
    else:
        return tl.where(hidden <= 0, 0.0, grad)


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
    BOUNDED: tl.constexpr,
):
    """`kept` is empty and `carried` is not used: the state is all that goes on."""
    blocks = tl.cdiv(rows, ROWS)
    member = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    token_states = rows.to(tl.int64) * WIDTH
    entering += member * entering_member
    bias += member * bias_member
    across += member * across_member
    states += member * tokens * token_states
    if RESIDENT:
        column = tl.arange(0, COLUMNS)
        weight = load_tile(across, column, column, ACROSS_IN, ACROSS_OUT, WIDTH, WIDTH)
        shift = load_row(bias, column, WIDTH)
        hidden = tl.zeros((ROWS, COLUMNS), tl.float32)
        ahead = load_tile(entering, row, column, entering_row, 1, rows, WIDTH)
        for token in range(tokens):
            total = ahead + shift
            entering += entering_token
            more = rows * tl.minimum(tokens - 1 - token, 1)
            ahead = load_tile(entering, row, column, entering_row, 1, more, WIDTH)
            hidden = _activation(add_product(total, hidden, weight, PRECISION), BOUNDED)
            store_tile(states, hidden, row, column, WIDTH, rows, WIDTH)
            states += token_states
    else:
        inner = tl.arange(0, INNER)
        entering += begin.to(tl.int64) * entering_token
        states += begin * token_states
        for token in range(begin, begin + span):
            started = tl.minimum(token, 1)
            for first in range(tl.program_id(1) * COLUMNS, WIDTH, tl.num_programs(1) * COLUMNS):
                column = first + tl.arange(0, COLUMNS)
                total = load_tile(entering, row, column, entering_row, 1, rows, WIDTH) + load_row(bias, column, WIDTH)
                for start in range(0, started * WIDTH, INNER):
                    k = start + inner
                    hidden = load_tile(states - token_states, row, k, WIDTH, 1, rows, WIDTH)
                    weight = load_tile(across, k, column, ACROSS_IN, ACROSS_OUT, WIDTH, WIDTH)
                    total = add_product(total, hidden, weight, PRECISION)
                store_tile(states, _activation(total, BOUNDED), row, column, WIDTH, rows, WIDTH)
            tl.debug_barrier()  # other threads read this state
            entering += entering_token
            states += token_states


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
    BOUNDED: tl.constexpr,
):
    """`kept` and `given_grad` are empty, `carried` is not used: what the state gives is added to what enters."""
    blocks = tl.cdiv(rows, ROWS)
    member = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    last = tokens.to(tl.int64) - 1
    token_states = rows.to(tl.int64) * WIDTH
    shown_grad += member * shown_member + last * shown_token
    across += member * across_member
    states += (member * tokens + last) * token_states
    entering_grad += (member * tokens + last) * token_states
    if RESIDENT:
        column = tl.arange(0, COLUMNS)
        weight = load_tile(across, column, column, ACROSS_OUT, ACROSS_IN, WIDTH, WIDTH)
        total_grad = tl.zeros((ROWS, COLUMNS), tl.float32)
        ahead = load_tile(shown_grad, row, column, shown_row, 1, rows, WIDTH)
        ahead_hidden = load_tile(states, row, column, WIDTH, 1, rows, WIDTH)
        for later in range(tokens):
            hidden_grad, hidden = ahead, ahead_hidden
            shown_grad -= shown_token
            states -= token_states
            more = rows * tl.minimum(tokens - 1 - later, 1)
            ahead = load_tile(shown_grad, row, column, shown_row, 1, more, WIDTH)
            ahead_hidden = load_tile(states, row, column, WIDTH, 1, more, WIDTH)
            hidden_grad = add_product(hidden_grad, total_grad, weight, PRECISION)
            total_grad = _activation_backward(hidden_grad, hidden, BOUNDED)
            store_tile(entering_grad, total_grad, row, column, WIDTH, rows, WIDTH)
            entering_grad -= token_states
    else:
        inner = tl.arange(0, INNER)
        shown_grad -= begin.to(tl.int64) * shown_token
        states -= begin * token_states
        entering_grad -= begin * token_states
        for later in range(begin, begin + span):
            ended = tl.minimum(later, 1)
            for first in range(tl.program_id(1) * COLUMNS, WIDTH, tl.num_programs(1) * COLUMNS):
                column = first + tl.arange(0, COLUMNS)
                hidden_grad = load_tile(shown_grad, row, column, shown_row, 1, rows, WIDTH)
                for start in range(0, ended * WIDTH, INNER):
                    k = start + inner
                    total_grad = load_tile(entering_grad + token_states, row, k, WIDTH, 1, rows, WIDTH)
                    weight = load_tile(across, k, column, ACROSS_OUT, ACROSS_IN, WIDTH, WIDTH)
                    hidden_grad = add_product(hidden_grad, total_grad, weight, PRECISION)
                hidden = load_tile(states, row, column, WIDTH, 1, rows, WIDTH)
                total_grad = _activation_backward(hidden_grad, hidden, BOUNDED)
                store_tile(entering_grad, total_grad, row, column, WIDTH, rows, WIDTH)
            tl.debug_barrier()  # other threads read these gradients
            shown_grad -= shown_token
            states -= token_states
            entering_grad -= token_states
