"""Layer norm of many short rows, each member with its own weights; its gradient in one pass over the rows."""

# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from theodolite.kernels.launch import FirstDerivative, declare, members_first

_NUMBERS = 4096  # of a program's rows


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """(x − mean) / √(variance + ε) · weight + bias over the last axis."""
    return _Norm.apply(x, weight, bias, epsilon)  # pyright: ignore[reportReturnType]


class _Norm(torch.autograd.Function):
    """As many axes in front of the weights as there are members' axes, which lead those of x too."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        return _forward(_rows(x, weight), weight.reshape(-1, x.shape[-1]), bias.reshape(-1, x.shape[-1]), epsilon).view(
            x.shape
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _, ctx.epsilon = inputs
        ctx.save_for_backward(x, weight)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        found: Any = _Gradient.apply(gradients[0], x, weight, ctx.epsilon)
        return *found, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        """Written out: what asks for it is rare and small."""
        x, weight = ctx.saved_tensors
        along, along_weight, along_bias, _ = tangents
        beside = lambda values: values.reshape(*weight.shape[:-1], *[1] * (x.dim() - weight.dim()), x.shape[-1])
        centred = x - x.mean(dim=-1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + ctx.epsilon)
        standard = centred * scale
        found = torch.zeros_like(x)
        if along is not None:
            moved = along - along.mean(dim=-1, keepdim=True)
            moved = (moved - standard * (along * standard).mean(dim=-1, keepdim=True)) * scale
            found = found + moved * beside(weight)
        if along_weight is not None:
            found = found + standard * beside(along_weight)
        return found if along_bias is None else found + beside(along_bias)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, int]:
        return _Norm.apply(*members_first(info, in_dims, *args)), 0


class _Gradient(FirstDerivative):
    """At x, the weights and the biases."""

    @staticmethod
    def forward(gradient: Tensor, x: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
        of_x, of_weight, of_bias = _backward(
            _rows(gradient, weight), _rows(x, weight), weight.reshape(-1, x.shape[-1]), epsilon
        )
        return of_x.view(x.shape), of_weight.sum(dim=1).view(weight.shape), of_bias.sum(dim=1).view(weight.shape)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, int, int]]:
        return _Gradient.apply(*members_first(info, in_dims, *args)), (0, 0, 0)


def _rows(x: Tensor, weight: Tensor) -> Tensor:
    """(member, row, width), one after another in memory."""
    return x.reshape(weight.shape[:-1].numel(), -1, x.shape[-1]).contiguous()


def _sizes(x: Tensor) -> dict[str, Any]:
    members, rows, width = x.shape
    padded = max(16, 1 << (width - 1).bit_length())
    block = max(1, min(_NUMBERS // padded, 1 << (rows - 1).bit_length()))
    blocks = -(-rows // block)
    return {"grid": (members * blocks,), "rows": rows, "blocks": blocks, "width": width, "ROWS": block, "WIDTH": padded}


def _run_forward(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    from theodolite.kernels.norm_triton import forward

    found = torch.empty_like(x)
    sizes = _sizes(x)
    forward[sizes.pop("grid")](x, weight.contiguous(), bias.contiguous(), found, epsilon, **sizes, num_warps=4)
    return found


def _run_backward(gradient: Tensor, x: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    from theodolite.kernels.norm_triton import backward

    found = _backward_shapes(gradient, x, weight, epsilon)
    sizes = _sizes(x)
    backward[sizes.pop("grid")](gradient, x, weight.contiguous(), *found, epsilon, **sizes, num_warps=4)
    return found


def _backward_shapes(gradient: Tensor, x: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    parts = (len(x), _sizes(x)["blocks"], x.shape[-1])
    return torch.empty_like(x), weight.new_empty(parts), weight.new_empty(parts)


_forward = declare(
    "layer_norm(Tensor x, Tensor weight, Tensor bias, float epsilon) -> Tensor",
    _run_forward,
    lambda x, weight, bias, epsilon: torch.empty_like(x),
)
_backward = declare(
    "layer_norm_gradient(Tensor gradient, Tensor x, Tensor weight, float epsilon) -> (Tensor, Tensor, Tensor)",
    _run_backward,
    _backward_shapes,
)
