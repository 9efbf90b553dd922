"""The recurrence of a net with a stack: all tokens in one kernel, and all their gradients in another.

After token t the stack holds `depth(t)` cells that can still be read. A row keeps it flat behind the value the next
token pushes, so that push, stay and pop are three reads, a cell apart. With gradients to come the stacks of all tokens
are kept, one behind the other; else two take turns.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.kernels import launch
from theodolite.kernels.controller import flat, options, over_tokens, padded, tiling

ACTIONS = 3


def stack_over_time(
    entering: Float[Tensor, "token row width"],
    across: Float[Tensor, "width width_cell"],
    heads: Float[Tensor, "head width"],
    bias: Float[Tensor, " head"],
    cells: int,
    activation: str,
) -> Float[Tensor, "token row width"]:
    """The states of all tokens from a zero state and an empty stack, which `cells` bounds."""
    given = (each.float() for each in (entering, across, heads, bias))
    made = _OverTime.apply(*given, cells, activation, launch.precision(), torch.is_grad_enabled())
    return made[0].to(entering.dtype)


class _OverTime(torch.autograd.Function):
    """States and, for the gradient: what was read, how likely the actions were, and the stacks. Any axes in front of
    the tensors are members."""

    @staticmethod
    def forward(
        entering: Tensor,
        across: Tensor,
        heads: Tensor,
        bias: Tensor,
        cells: int,
        activation: str,
        precision: str,
        keep: bool,
    ) -> tuple[Tensor, ...]:
        given = flat(entering, 3), flat(across, 2), flat(heads, 2), flat(bias, 1)
        made = _FORWARD(*given, cells, activation, precision, keep)
        return tuple(each.reshape(*entering.shape[:-3], *each.shape[1:]) for each in made)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, across, heads, _, *ctx.how, _ = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(across, heads, *output)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        return *_Backward.apply(grad_outputs[0], *ctx.saved_tensors, *ctx.how), None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _OverTime.apply(*launch.members_first(info, in_dims, *args)), (0, 0, 0, 0)


class _Backward(launch.FirstDerivative):
    """The gradients at what enters and at the weights."""

    @staticmethod
    def forward(
        grad: Tensor,
        across: Tensor,
        heads: Tensor,
        hidden: Tensor,
        read: Tensor,
        acted: Tensor,
        stacks: Tensor,
        cells: int,
        activation: str,
        precision: str,
    ) -> tuple[Tensor, ...]:
        states, tops = flat(hidden, 3), flat(read, 3)
        given = flat(grad, 3), flat(across, 2), flat(heads, 2), states, flat(acted, 3), flat(stacks, 3)
        entered, headed = _BACKWARD(*given, cells, activation, precision)
        after, before = entered[:, 1:], states[:, :-1]
        crossed = torch.cat((over_tokens(after, before, precision), over_tokens(after, tops, precision)), dim=-1)
        found = entered, crossed, over_tokens(headed, before, precision), headed.sum(dim=(1, 2))
        return tuple(each.reshape(*grad.shape[:-3], *each.shape[1:]) for each in found)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _Backward.apply(*launch.members_first(info, in_dims, *args)), (0, 0, 0, 0)


def depths(tokens: int, cells: int) -> list[int]:
    """How many cells the stack has before each token but the last, and before that."""
    return [min(token, tokens - token, cells) for token in range(tokens)]


def kept(tokens: int, cells: int) -> int:
    """The cells of all stacks of a row, each with the value that is pushed upon it."""
    return sum(depth + 1 for depth in depths(tokens, cells)[:-1])


def _forward(
    entering: Tensor,
    across: Tensor,
    heads: Tensor,
    bias: Tensor,
    cells: int,
    activation: str,
    precision: str,
    keep: bool,
) -> tuple[Tensor, ...]:
    from theodolite.kernels import stack_triton as kernels

    entering, across, heads, bias = (each.contiguous() for each in (entering, across, heads, bias))
    made = _forward_shapes(entering, across, heads, bias, cells, activation, precision, keep)
    hidden, read, acted, stacks = made
    members, tokens, rows, width = entering.shape
    cell = heads.shape[1] - ACTIONS
    half = max(depths(tokens, cells)) + 1
    total = kept(tokens, cells) if keep else 2 * half
    held = stacks if keep else entering.new_empty(members, rows, total, cell)
    doing = acted if keep else entering.new_empty(members, 1, rows, ACTIONS)
    tiled = tiling(members, rows, width)
    kernels.forward[members, -(-rows // tiled.rows)](
        *(entering, across, heads, bias, hidden, read, doing, held),
        *(tokens, rows, cells, total, half),
        **_constants(across, heads, activation, precision),
        **options(tiled, KEEP=keep),
    )
    return made


def _forward_shapes(
    entering: Tensor,
    across: Tensor,
    heads: Tensor,
    bias: Tensor,
    cells: int,
    activation: str,
    precision: str,
    keep: bool,
) -> tuple[Tensor, ...]:
    members, tokens, rows, _ = entering.shape
    cell = heads.shape[1] - ACTIONS
    acting = tokens - 1 if keep else 0
    return (
        torch.empty_like(entering, memory_format=torch.contiguous_format),
        entering.new_empty(members, acting, rows, cell),
        entering.new_empty(members, acting, rows, ACTIONS),
        entering.new_empty(members, rows, kept(tokens, cells) if keep else 0, cell),
    )


def _backward(
    grad: Tensor,
    across: Tensor,
    heads: Tensor,
    hidden: Tensor,
    acted: Tensor,
    stacks: Tensor,
    cells: int,
    activation: str,
    precision: str,
) -> tuple[Tensor, Tensor]:
    from theodolite.kernels import stack_triton as kernels

    grad, across, heads = (each.contiguous() for each in (grad, across, heads))
    entered, headed = _backward_shapes(grad, across, heads, hidden, acted, stacks, cells, activation, precision)
    members, tokens, rows, width = grad.shape
    cell = heads.shape[1] - ACTIONS
    half = max(depths(tokens, cells))
    carried = grad.new_empty(members, rows, 2 * half, cell)
    tiled = tiling(members, rows, width)
    kernels.backward[members, -(-rows // tiled.rows)](
        *(grad, across, heads, hidden.contiguous(), acted.contiguous(), stacks.contiguous(), entered, headed, carried),
        *(tokens, rows, cells, kept(tokens, cells), half),
        **_constants(across, heads, activation, precision),
        **options(tiled),
    )
    return entered, headed


def _backward_shapes(
    grad: Tensor,
    across: Tensor,
    heads: Tensor,
    hidden: Tensor,
    acted: Tensor,
    stacks: Tensor,
    cells: int,
    activation: str,
    precision: str,
) -> tuple[Tensor, Tensor]:
    members, tokens, rows, _ = grad.shape
    entered = torch.empty_like(grad, memory_format=torch.contiguous_format)
    return entered, grad.new_empty(members, tokens - 1, rows, heads.shape[1])


def _constants(across: Tensor, heads: Tensor, activation: str, precision: str) -> dict[str, Any]:
    width, cell = across.shape[1], heads.shape[1] - ACTIONS
    made = {"WIDTH": width, "CELL": cell, "OUT": padded(width), "HEADS": padded(cell + ACTIONS)}
    return {**made, "ACTIVATION": activation, "PRECISION": precision}


_FORWARD = launch.declare(
    "stack_forward(Tensor entering, Tensor across, Tensor heads, Tensor bias, int cells, str activation, "
    "str precision, bool keep) -> (Tensor, Tensor, Tensor, Tensor)",
    _forward,
    _forward_shapes,
)
_BACKWARD = launch.declare(
    "stack_backward(Tensor grad, Tensor across, Tensor heads, Tensor hidden, Tensor acted, Tensor stacks, int cells, "
    "str activation, str precision) -> (Tensor, Tensor)",
    _backward,
    _backward_shapes,
)
