"""Re Σ c h after every token, where h ← a h + x with complex modes a of every channel, in one kernel.

The gradient at x is the same system run from the last token to the first. That at the modes needs Σ g h and
Σ g ∂h/∂a over all tokens and rows, and ∂h/∂a obeys a recurrence beside h's own: nothing is stored but inputs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from theodolite.kernels.launch import FirstDerivative, NoSecondDerivative, declare, members_first
from theodolite.kernels.strides import tile


def respond(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Of x (…, batch, token, channel), with modes a + ib and weights c + id (…, channel, state)."""
    return _Respond.apply(x, a, b, c, d, False)  # pyright: ignore[reportReturnType]


class _Respond(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        return _response(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.reverse = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.reverse:
            raise NoSecondDerivative
        x, a, b, c, d = ctx.saved_tensors
        at_x = _Respond.apply(gradients[0], a, b, c, d, True) if ctx.needs_input_grad[0] else None
        sums: Any = _Sums.apply(gradients[0], x, a, b)
        (met, met_i), (moved, moved_i) = (each.unbind(-3) for each in sums)
        at_a, at_b = c * moved - d * moved_i, -c * moved_i - d * moved
        return at_x, at_a.to(a.dtype), at_b.to(b.dtype), met.to(c.dtype), -met_i.to(d.dtype), None  # pyright: ignore[reportReturnType]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, int]:
        return _Respond.apply(*members_first(info, in_dims, *args)), 0


class _Sums(FirstDerivative):
    """Σ g h and Σ g ∂h/∂a, (…, 2, channel, state) each: real and imaginary parts."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        return _sums(*inputs)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, int]]:
        return _Sums.apply(*members_first(info, in_dims, *args)), (0, 0)


_PART = 8  # rows of a batch that one program sums over
_WARPS, _VECTORS, _STAGES = 1, 1, 3


def _run_response(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, reverse: bool) -> Tensor:
    y = _shape_of_response(x, a, b, c, d, reverse)
    if y.numel():
        batch, tokens, channels = x.shape[-3:]
        cut = tile(a.shape[-1], x.shape[:-2].numel() * channels, _WARPS, _VECTORS)
        _rows().response[cut.pop("grid")](
            *(*_placed(x), *(each.contiguous() for each in (a, b, c, d)), y),
            **{"batch": batch, "channels": channels, "tokens": tokens, "ones": 1, "width": a.shape[-1]},
            **{"reverse": reverse, "STAGES": _STAGES},
            **cut,
        )
    return y


def _run_sums(gradient: Tensor, x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    batch, tokens, channels = x.shape[-3:]
    members, width, parts = x.shape[:-3].numel(), a.shape[-1], -(-batch // _PART)
    make = a.new_empty if x.numel() else a.new_zeros
    met, moved = (make((2, members, parts, channels, width), dtype=torch.float32) for _ in range(2))
    if x.numel():
        cut = tile(width, members * parts * channels, _WARPS, _VECTORS)
        _rows().sums[cut.pop("grid")](
            *(*_placed(x), *_placed(gradient), a.contiguous(), b.contiguous(), met, moved),
            **{"batch": batch, "channels": channels, "tokens": tokens, "parts": parts, "size": _PART, "width": width},
            **{"STAGES": _STAGES},
            **cut,
        )
    shape = (*x.shape[:-3], 2, channels, width)
    met, moved = (each.sum(dim=2).transpose(0, 1).reshape(shape).contiguous() for each in (met, moved))
    return met, moved


def _shape_of_response(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.shape)


def _shapes_of_sums(_gradient: Tensor, x: Tensor, a: Tensor, _b: Tensor) -> tuple[Tensor, Tensor]:
    met, moved = (a.new_empty((*x.shape[:-3], 2, *a.shape[-2:]), dtype=torch.float32) for _ in range(2))
    return met, moved


@cache
def _rows() -> Any:
    """The kernels; Triton is imported when they are first needed."""
    from theodolite.kernels import diagonal_rows

    return diagonal_rows


_response = declare(
    "diagonal_response(Tensor x, Tensor a, Tensor b, Tensor c, Tensor d, bool reverse) -> Tensor",
    _run_response,
    _shape_of_response,
)
_sums = declare(
    "diagonal_sums(Tensor gradient, Tensor x, Tensor a, Tensor b) -> (Tensor, Tensor)", _run_sums, _shapes_of_sums
)


def _placed(x: Tensor) -> tuple[Any, ...]:
    """With its strides over members, batch, tokens and channels."""
    x = x.unsqueeze(0) if x.dim() == 3 else x.flatten(0, -4)
    return x, *x.stride()
