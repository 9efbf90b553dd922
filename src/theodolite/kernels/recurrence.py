"""A recurrence over all tokens in one kernel, and the gradient in another.

What enters the gates is computed for all tokens before; the kernels add what the state gives, token after token. The
weights' gradient is one product over all tokens and rows afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels.launch import FirstDerivative, declare, members_first, precision
from theodolite.kernels.product import batched_product, faster

Cell = Literal["tanh", "relu", "lstm", "gru"]

_MODULES = {"tanh": "elman", "relu": "elman", "lstm": "lstm", "gru": "gru"}
_GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}
_KEPT = {"tanh": 0, "relu": 0, "lstm": 5, "gru": 4}  # what the gradient needs of a token beside its state, in widths
_FEW = 100  # blocks of rows: so few leave processors idle
_RESIDENT, _ALIGNED = 32, 32  # the largest width whose weights stay on the chip, and what wider ones are filled up to


@dataclass(frozen=True)
class Tiles:
    """One program takes `rows` rows of a member. Weights are read in tiles of `inner` × `columns`, or with `resident`
    once, as one tile; `stages` tiles are on their way at once. With `split`, every token is a launch of its own, whose
    programs take `columns` units each."""

    rows: int
    columns: int
    inner: int
    resident: bool
    warps: int
    stages: int
    split: bool = False


def tiles(members: int, rows: int, width: int, gates: int, backward: bool) -> Tiles:
    """Small weights stay on the chip. Where there are fewer blocks of rows than some 132 processors, each token is a
    launch that all of them share; else a program takes all tokens, and as many rows as leave one for most processors,
    since it reads all weights at every token. The best of seven tried on an H200."""
    if width <= _RESIDENT:
        return Tiles(16, 16, 16, True, 1, 2) if width <= 16 else Tiles(16, 32, 16, True, 4, 2)
    columns = 128 if width > 64 else 64
    blocks = members * -(-rows // 32)
    if blocks < _FEW:
        return Tiles(32 if rows > 16 else 16, 64, 32, False, 8, 3, split=True)
    if rows <= 16:
        wide = backward or gates == 1  # one tile of weights at a time, not one for each gate
        return Tiles(16, columns, 64, False, 8, 3) if wide else Tiles(16, 64, 32, False, 8, 3)
    if blocks <= 132:
        return Tiles(32, columns, 32, False, 8, 3)
    return Tiles(32, 64, 32, False, 4, 3)


def over_time(
    cell: Cell, x: Float[Tensor, "row token feature"], into: nn.Linear, across: nn.Linear
) -> Float[Tensor, "row token width"]:
    """The states of all tokens from a zero state: `into` is applied to what enters, `across` to the state before.

    Widths that are read tile by tile are filled up with units of zero weights, which stay 0: rows of a multiple of
    `_ALIGNED` numbers are loaded several times as fast as others.
    """
    rows, tokens = x.shape[:2]
    width = across.weight.shape[-1]
    more = -width % _ALIGNED if width > _RESIDENT else 0
    weight, bias, recurrent = into.weight, into.bias, across.weight
    if more:
        weight = F.pad(weight.unflatten(0, (-1, width)), (0, 0, 0, more)).flatten(0, 1)
        recurrent = F.pad(recurrent.unflatten(0, (-1, width)), (0, more, 0, more)).flatten(0, 1)
        bias = F.pad(bias.unflatten(0, (-1, width)), (0, more)).flatten()
    entering = x.transpose(0, 1).flatten(0, 1) @ weight.mT  # flat: one product for each member, not for each token
    entering, keep = entering.unflatten(0, (tokens, rows)), torch.is_grad_enabled()
    states, _ = _OverTime.apply(entering, bias, recurrent, cell, keep, precision())
    return states[..., :width].transpose(0, 1)


class _OverTime(torch.autograd.Function):
    """Any axes in front of entering and across are members."""

    @staticmethod
    def forward(
        entering: Tensor, bias: Tensor, across: Tensor, cell: Cell, keep: bool, multiplied: str
    ) -> tuple[Tensor, Tensor]:
        return _forward(entering, bias, across, cell, keep, multiplied)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _, _, across, ctx.cell, _, ctx.multiplied = inputs
        states, kept = output
        ctx.mark_non_differentiable(kept)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(across, states, kept)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad_outputs[0] is None:
            return (None,) * 6
        across, states, kept = ctx.saved_tensors
        entering_grad, across_grad = _Backward.apply(grad_outputs[0], across, states, kept, ctx.cell, ctx.multiplied)
        return entering_grad, entering_grad.sum(dim=(-3, -2), dtype=across.dtype), across_grad, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        return _OverTime.apply(*members_first(info, in_dims, *args)), (0, 0)


class _Backward(FirstDerivative):
    """The gradients at what enters and at `across`."""

    @staticmethod
    def forward(
        shown_grad: Tensor, across: Tensor, states: Tensor, kept: Tensor, cell: Cell, multiplied: str
    ) -> tuple[Tensor, Tensor]:
        entering_grad, given_grad = _backward(shown_grad, across, states, kept, cell, multiplied)
        given_grad = given_grad if cell == "gru" else entering_grad
        before, after = states[..., :-1, :, :].flatten(-3, -2), given_grad[..., 1:, :, :].flatten(-3, -2)
        return entering_grad, _product(before.mT, after, multiplied).mT.to(across.dtype)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        return _Backward.apply(*members_first(info, in_dims, *args)), (0, 0)


def _product(left: Tensor, right: Tensor, multiplied: str) -> Tensor:
    """Of the last two axes, by whichever is faster."""
    if left.shape[-1] == 0:  # one token alone
        return left @ right
    one, other = _flat(left, 2), _flat(right, 2)
    if not faster(one, other):
        return left @ right
    return batched_product(one, other, multiplied).view(*left.shape[:-1], right.shape[-1])


def _forward_shapes(
    entering: Tensor, bias: Tensor, across: Tensor, cell: Cell, keep: bool, multiplied: str
) -> tuple[Tensor, Tensor]:
    *lead, tokens, rows, _ = entering.shape
    width = across.shape[-1]
    states = entering.new_empty(*lead, tokens, rows, width)
    return states, entering.new_empty(*lead, tokens, rows, _KEPT[cell] * width if keep else 0)


def _backward_shapes(
    shown_grad: Tensor, across: Tensor, states: Tensor, kept: Tensor, cell: Cell, multiplied: str
) -> tuple[Tensor, Tensor]:
    gates = _GATES[cell] * across.shape[-1]
    return (
        states.new_empty(*states.shape[:-1], gates),
        states.new_empty(*states.shape[:-1], gates if cell == "gru" else 0),
    )


def _run_forward(
    entering: Tensor, bias: Tensor, across: Tensor, cell: Cell, keep: bool, multiplied: str
) -> tuple[Tensor, Tensor]:
    states, kept = _forward_shapes(entering, bias, across, cell, keep, multiplied)
    entering, bias, across = _flat(entering, 3), _flat(bias, 1), _flat(across, 2)
    members, tokens, rows, _ = entering.shape
    width = across.shape[-1]
    chosen = tiles(members, rows, width, _GATES[cell], backward=False)
    carried = entering.new_empty(0 if chosen.resident else members * rows * width, dtype=torch.float32)
    kernel = _module(cell).forward[_grid(chosen, members, rows, width)]
    for begin, span in _spans(chosen, tokens):
        kernel(
            entering, bias, across, states, kept, carried, rows, tokens, begin, span,
            *entering.stride()[:3], bias.stride(0), *across.stride(),
            WIDTH=width, **_constants(chosen, cell), KEEP=keep, PRECISION=multiplied,
        )  # fmt: skip
    return states, kept


def _run_backward(
    shown_grad: Tensor, across: Tensor, states: Tensor, kept: Tensor, cell: Cell, multiplied: str
) -> tuple[Tensor, Tensor]:
    entering_grad, given_grad = _backward_shapes(shown_grad, across, states, kept, cell, multiplied)
    shown_grad, across, states, kept = _flat(shown_grad, 3), _flat(across, 2), states.contiguous(), kept.contiguous()
    members, tokens, rows, width = shown_grad.shape
    chosen = tiles(members, rows, width, _GATES[cell], backward=True)
    carried = states.new_empty(0 if chosen.resident else members * rows * width, dtype=torch.float32)
    kernel = _module(cell).backward[_grid(chosen, members, rows, width)]
    for begin, span in _spans(chosen, tokens):
        kernel(
            shown_grad, across, states, kept, carried, entering_grad, given_grad, rows, tokens, begin, span,
            *shown_grad.stride()[:3], *across.stride(),
            WIDTH=width, **_constants(chosen, cell), PRECISION=multiplied,
        )  # fmt: skip
    return entering_grad, given_grad


def _flat(tensor: Tensor, own: int) -> Tensor:
    """One axis of members before its own; along one of the last two axes neighbours are neighbours in memory."""
    flat = tensor.reshape(-1, *tensor.shape[-own:])
    return flat if flat.stride(-1) == 1 or (own == 2 and flat.stride(-2) == 1) else flat.contiguous()


def _module(cell: Cell) -> Any:
    return import_module(f"theodolite.kernels.{_MODULES[cell]}")


def _grid(chosen: Tiles, members: int, rows: int, width: int) -> tuple[int, int]:
    return members * -(-rows // chosen.rows), -(-width // chosen.columns) if chosen.split else 1


def _spans(chosen: Tiles, tokens: int) -> list[tuple[int, int]]:
    """The first of its tokens and how many of every launch; going back the first is the last."""
    return [(token, 1) for token in range(tokens)] if chosen.split else [(0, tokens)]


def _constants(chosen: Tiles, cell: Cell) -> dict[str, Any]:
    own = {"BOUNDED": cell == "tanh"} if _MODULES[cell] == "elman" else {}
    sizes = {"ROWS": chosen.rows, "COLUMNS": chosen.columns, "INNER": chosen.inner, "RESIDENT": chosen.resident}
    return own | sizes | {"num_warps": chosen.warps, "num_stages": chosen.stages}


_forward = declare(
    "recurrence(Tensor entering, Tensor bias, Tensor across, str cell, bool keep, str precision) -> (Tensor, Tensor)",
    _run_forward,
    _forward_shapes,
)
_backward = declare(
    "recurrence_backward(Tensor shown_grad, Tensor across, Tensor states, Tensor kept, str cell, str precision)"
    " -> (Tensor, Tensor)",
    _run_backward,
    _backward_shapes,
)
