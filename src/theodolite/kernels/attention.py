"""softmax(Q Kᵀ / √d + bias) V in one pass over the keys, and its gradient in two: no matrix of weights is stored.

Queries, keys and values are read where they lie, with whatever strides, so that heads split from a projection are not
copied; results have the order of memory (…, batch, token, head, width). A weight of −∞ is exactly 0; a row with NaN
or +∞, or without any key it sees, is NaN, as softmax makes it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

from theodolite.kernels.launch import declare, members_first
from theodolite.kernels.strides import laid_out, tile, with_members


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Of (…, batch, head, token, width) each; `bias` is broadcast to the logits and has no gradient."""
    return _Attend.apply(query, key, value, bias)[0].transpose(-2, -3)  # pyright: ignore[reportOptionalSubscript]


def takes(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> bool:
    """Whether `attend` knows the case: heads side by side, and nothing to learn in the bias."""
    alike = query.dim() >= 4 and key.shape == value.shape and key.shape[:-2] == query.shape[:-2]
    return alike and key.shape[-1] == query.shape[-1] and not (bias is not None and bias.requires_grad)


class _Attend(torch.autograd.Function):
    """What is found, (…, batch, token, head, width), and log Σ exp of its logits, (…, batch, token, head)."""

    @staticmethod
    def forward(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        return _forward(query, key, value, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, *output)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias, found, sums = ctx.saved_tensors
        slopes = _Gradient.apply(gradients[0].transpose(-2, -3), query, key, value, bias, found, sums)
        return *(each.transpose(-2, -3) for each in slopes), None  # pyright: ignore[reportGeneralTypeIssues]

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor, None]:
        """Written out: what asks for it is rare and small."""
        query, key, value, bias = ctx.saved_tensors
        toward = [torch.zeros_like(x) if t is None else t for x, t in zip((query, key, value), tangents, strict=False)]
        size = 1 / math.sqrt(query.shape[-1])
        logits = (query * size) @ key.mT
        weights = torch.softmax(logits if bias is None else logits + bias, dim=-1)
        moved = (toward[0] * size) @ key.mT + (query * size) @ toward[1].mT
        moved = weights * (moved - (weights * moved).sum(dim=-1, keepdim=True))
        return (moved @ value + weights @ toward[2]).transpose(-2, -3), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        *tensors, bias = args
        tensors = members_first(info, in_dims[:-1], *tensors)
        return _Attend.apply(*tensors, _bias_of_members(bias, in_dims[-1], tensors[0])), (0, 0)  # pyright: ignore[reportReturnType]


class _Gradient(torch.autograd.Function):
    """At queries, keys and values, (…, batch, token, head, width) each."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        return _backward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        raise NotImplementedError("fused attention has no second derivative: ask for it on the CPU or in float64")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, int, int]]:
        bias = args[4]
        tensors = members_first(info, in_dims[:4] + in_dims[5:], *args[:4], *args[5:])
        return _Gradient.apply(*tensors[:4], _bias_of_members(bias, in_dims[4], tensors[1]), *tensors[4:]), (0, 0, 0)


def _bias_of_members(bias: Tensor | None, axis: int | None, query: Tensor) -> Tensor | None:
    """With its members in front of as many axes as the queries have; one bias for all members stays as it is."""
    if bias is None or axis is None:
        return bias
    bias = bias.movedim(axis, 0)
    return bias.reshape(bias.shape[0], *(1,) * (query.dim() - bias.dim()), *bias.shape[1:])


def _run_forward(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    found, sums = _shapes_forward(query, key, value, bias)
    if found.numel():
        sizes = _sizes(query, key, query.shape[-2])
        _rows().forward[sizes.pop("grid")](
            *(item for each in (query, key, value) for item in laid_out(each)),
            *_biased(bias, query, key, -2),
            *(found, sums),
            **sizes,
        )
    return found, sums


def _run_backward(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, found: Tensor, sums: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    slopes = _shapes_backward(gradient, query, key, value, bias, found, sums)
    if query.numel() and key.numel():
        entering = [item for each in (query, key, value, gradient) for item in laid_out(each)]
        share = torch.empty_like(sums)
        sizes = _sizes(query, key, query.shape[-2])
        _rows().of_queries[sizes.pop("grid")](
            *(*entering, *_biased(bias, query, key, -2), found, sums, slopes[0], share), **sizes
        )
        sizes = _sizes(query, key, key.shape[-2])
        _rows().of_keys[sizes.pop("grid")](
            *(*entering, *_biased(bias, query, key, -1), sums, share, slopes[1], slopes[2]), **sizes
        )
    return slopes


def _shapes_forward(query: Tensor, _key: Tensor, value: Tensor, _bias: Tensor | None) -> tuple[Tensor, Tensor]:
    *front, heads, queries, width = query.shape
    sums = query.new_empty((*front, queries, heads), dtype=torch.float32)
    return value.new_empty((*front, queries, heads, width)), sums


def _shapes_backward(
    _gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (
        each.new_empty((*each.shape[:-3], each.shape[-2], each.shape[-3], each.shape[-1]))
        for each in (query, key, value)
    )
    return query, key, value


@cache
def _rows() -> Any:
    """The kernels; Triton is imported when they are first needed."""
    from theodolite.kernels import attention_rows

    return attention_rows


_forward = declare(
    "attention(Tensor query, Tensor key, Tensor value, Tensor? bias) -> (Tensor, Tensor)", _run_forward, _shapes_forward
)
_backward = declare(
    "attention_gradient(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor found, "
    "Tensor sums) -> (Tensor, Tensor, Tensor)",
    _run_backward,
    _shapes_backward,
)


SETTINGS = {"warps": 4, "vectors": 1}  # of a program and of a thread


def _sizes(query: Tensor, key: Tensor, tokens: int) -> dict[str, Any]:
    heads, queries, width = query.shape[-3:]
    cut = tile(width, query.shape[:-3].numel() * heads * tokens, **SETTINGS)
    shape = {"batch": query.shape[-4], "heads": heads, "queries": queries, "keys": key.shape[-2]}
    return {**cut, **shape, "scale": 1 / math.sqrt(width), "width": width}


def _biased(bias: Tensor | None, query: Tensor, key: Tensor, fastest: int) -> tuple[Any, ...]:
    """The bias with its strides over members, batch, heads, queries and keys; neighbours along `fastest` are read
    together, so they lie side by side."""
    if bias is None:
        return None, 0, 0, 0, 0, 0
    bias = bias.expand(*(1,) * (2 - bias.dim()), *bias.shape)
    if bias.shape[fastest] > 1 and bias.stride(fastest) not in (0, 1):
        bias = bias.contiguous() if fastest == -1 else bias.mT.contiguous().mT
    bias = with_members(bias.expand(*query.shape[:-1], key.shape[-2]))
    return bias, *bias.stride()
