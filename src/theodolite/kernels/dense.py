"""Layers x Wᵀ + b of many members, and two of them with GELU between: what is added and applied to the products is so
where they are made, instead of in passes over memory of its own.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.kernels.launch import FirstDerivative, declare, members_first, precision

_LARGEST = 1 << 16  # weights of a layer: cuBLAS fills the chip with more
_LONG = 512  # rows in a sum: more and smaller tiles share it


def takes(x: Tensor, *weights: Tensor) -> bool:
    """Whether these layers are small enough, and multiply in float32: in TF32 torch's own take no longer."""
    small = all(w.shape[-1] * w.shape[-2] <= _LARGEST for w in weights)
    return small and precision() == "tf32x3" and all(t.dtype == torch.float32 for t in (x, *weights))


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x Wᵀ + b over the last axis."""
    return _Linear.apply(x, weight, bias, precision())  # pyright: ignore[reportReturnType]


def perceptron(x: Tensor, wide: Tensor, wide_bias: Tensor, narrow: Tensor, narrow_bias: Tensor) -> Tensor:
    """gelu(x Wᵀ + b) Vᵀ + c over the last axis."""
    found = _Perceptron.apply(x, wide, wide_bias, narrow, narrow_bias, precision())
    return found[0]  # pyright: ignore[reportOptionalSubscript]


class _Linear(torch.autograd.Function):
    """As many axes in front of the weights as there are members' axes, which lead those of x too."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, how: str) -> Tensor:
        rows, own = _rows(x, weight), _matrices(weight)
        return _product(rows, own.mT, _vectors(bias), None, "", how)[0].view(*x.shape[:-1], weight.shape[-2])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _, ctx.how = inputs
        ctx.save_for_backward(x, weight)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        found: Any = _LinearGradient.apply(gradients[0], *ctx.saved_tensors, ctx.needs_input_grad[0], ctx.how)
        return found[0] if ctx.needs_input_grad[0] else None, *found[1:], None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        """Written out: what asks for it is rare and small."""
        return _along(*ctx.saved_tensors, *tangents[:3])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, int]:
        return _Linear.apply(*members_first(info, in_dims, *args)), 0


class _LinearGradient(FirstDerivative):
    """At x, or of no size where that is not asked for, the weights and the biases."""

    @staticmethod
    def forward(gradient: Tensor, x: Tensor, weight: Tensor, of_x: bool, how: str) -> tuple[Tensor, Tensor, Tensor]:
        g, own = _rows(gradient, weight), _matrices(weight)
        at_x = _product(g, own, None, None, "", how)[0].view(x.shape) if of_x else x.new_empty(*weight.shape[:-2], 0)
        at_weight, at_bias = _summed(g, _rows(x, weight), "", how)
        return at_x, at_weight.view(weight.shape), at_bias.view(weight.shape[:-1])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, ...]]:
        return _LinearGradient.apply(*members_first(info, in_dims, *args)), (0, 0, 0)


class _Perceptron(torch.autograd.Function):
    """What is found, and what enters GELU, (member, row, width): of the layer in the middle nothing else is kept."""

    @staticmethod
    def forward(
        x: Tensor, wide: Tensor, wide_bias: Tensor, narrow: Tensor, narrow_bias: Tensor, how: str
    ) -> tuple[Tensor, Tensor]:
        inner = _product(_rows(x, wide), _matrices(wide).mT, _vectors(wide_bias), None, "", how)[0]
        found = _product(inner, _matrices(narrow).mT, _vectors(narrow_bias), None, "left", how)[0]
        return found.view(*x.shape[:-1], narrow.shape[-2]), inner.view(*x.shape[:-1], wide.shape[-2])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        x, wide, wide_bias, narrow, _, ctx.how = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, wide, narrow, output[1])
        ctx.save_for_forward(x, wide, wide_bias, narrow)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 6
        found: Any = _PerceptronGradient.apply(gradients[0], *ctx.saved_tensors, ctx.how)
        return *found, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, None]:
        x, wide, wide_bias, narrow = ctx.saved_tensors
        inner = _times(x, wide) + _beside(wide_bias, x)
        moved = torch.ops.aten.gelu_backward(_along(x, wide, *tangents[:3]), inner)  # the same factor, either way
        return _along(F.gelu(inner), narrow, moved, *tangents[3:5]), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, int]]:
        return _Perceptron.apply(*members_first(info, in_dims, *args)), (0, 0)


class _PerceptronGradient(FirstDerivative):
    """At x and at both layers' weights and biases."""

    @staticmethod
    def forward(
        gradient: Tensor, x: Tensor, wide: Tensor, narrow: Tensor, inner: Tensor, how: str
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        g, entered = _rows(gradient, wide), _rows(inner, wide)
        at_inner = _product(g, _matrices(narrow), None, entered, "", how)[0]
        at_narrow, at_narrow_bias = _summed(g, entered, "right", how)
        at_wide, at_wide_bias = _summed(at_inner, _rows(x, wide), "", how)
        at_x = _product(at_inner, _matrices(wide), None, None, "", how)[0]
        return (
            at_x.view(x.shape),
            at_wide.view(wide.shape),
            at_wide_bias.view(wide.shape[:-1]),
            at_narrow.view(narrow.shape),
            at_narrow_bias.view(narrow.shape[:-1]),
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, ...]]:
        return _PerceptronGradient.apply(*members_first(info, in_dims, *args)), (0, 0, 0, 0, 0)


def _rows(x: Tensor, weight: Tensor) -> Tensor:
    """(member, row, width), one after another in memory."""
    return x.reshape(weight.shape[:-2].numel(), -1, x.shape[-1]).contiguous()


def _matrices(weight: Tensor) -> Tensor:
    return weight.reshape(-1, *weight.shape[-2:])


def _vectors(bias: Tensor) -> Tensor:
    return bias.reshape(-1, bias.shape[-1]).contiguous()


def _summed(gradient: Tensor, x: Tensor, gelu: Literal["", "right"], how: str) -> tuple[Tensor, Tensor]:
    """Over the rows: gradientᵀ x, and the gradient."""
    return _product(gradient.mT, x, None, None, gelu, how, True)


def _times(x: Tensor, weight: Tensor) -> Tensor:
    """x Wᵀ with the members' axes in front of both."""
    flat = x.reshape(*weight.shape[:-2], -1, x.shape[-1]) @ weight.mT
    return flat.reshape(*x.shape[:-1], weight.shape[-2])


def _beside(bias: Tensor, x: Tensor) -> Tensor:
    return bias.reshape(*bias.shape[:-1], *[1] * (x.dim() - bias.dim()), bias.shape[-1])


def _along(x: Tensor, weight: Tensor, *tangents: Tensor | None) -> Tensor:
    """The derivative of x Wᵀ + b toward those of x, W and b; what is missing does not move."""
    of_x, of_weight, of_bias = tangents
    found = torch.zeros_like(_times(x, weight))
    if of_x is not None:
        found = found + _times(of_x, weight)
    if of_weight is not None:
        found = found + _times(x, of_weight)
    return found if of_bias is None else found + _beside(of_bias, x)


def _run(
    left: Tensor, right: Tensor, bias: Tensor | None, slopes: Tensor | None, gelu: Any, how: str, summed: bool = False
) -> tuple[Tensor, Tensor]:
    from theodolite.kernels.product_triton import Tile, launch

    found, sums = _shapes(left, right, bias, slopes, gelu, how, summed)
    own = lambda size, most: min(most, max(16, 1 << (size - 1).bit_length()))
    inner = left.shape[2]
    rows = 32 if inner >= _LONG else 64
    tile = Tile(own(left.shape[1], rows), own(right.shape[2], 64), own(inner, 32), 4, 4)
    launch(left, right, found, how, tile, bias=bias, slopes=slopes, sums=sums if summed else None, gelu=gelu)
    return found, sums


def _shapes(
    left: Tensor, right: Tensor, bias: Tensor | None, slopes: Tensor | None, gelu: Any, how: str, summed: bool = False
) -> tuple[Tensor, Tensor]:
    members, rows = left.shape[:2]
    return left.new_empty(members, rows, right.shape[2]), left.new_empty(members, rows if summed else 0)


_product = declare(
    "dense(Tensor left, Tensor right, Tensor? bias, Tensor? slopes, str gelu, str precision, bool summed=False)"
    " -> (Tensor, Tensor)",
    _run,
    _shapes,
)
