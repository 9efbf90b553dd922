"""softmax(Q Kᵀ / √d + bias) V and its gradient, row by row or sequence by sequence: no matrix of weights is stored.

Queries, keys and values are read where they lie, with whatever strides, so that heads split from a projection are not
copied; results have the order of memory (…, batch, token, head, width). A weight of −∞ is exactly 0; a row with NaN
or +∞, or without any key it sees, is NaN, as softmax makes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from theodolite.kernels.launch import FirstDerivative, declare, members_first, precision
from theodolite.kernels.strides import laid_out, tile, with_members


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Of (…, batch, head, token, width) each; `bias` is broadcast to the logits and has no gradient."""
    found = _Attend.apply(query, key, value, bias, precision())
    return found[0].transpose(-2, -3)  # pyright: ignore[reportOptionalSubscript]


def takes(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> bool:
    """Whether `attend` knows the case: heads side by side, and nothing to learn in the bias."""
    alike = query.dim() >= 4 and key.shape == value.shape and key.shape[:-2] == query.shape[:-2]
    return alike and key.shape[-1] == query.shape[-1] and not (bias is not None and bias.requires_grad)


class _Attend(torch.autograd.Function):
    """What is found, (…, batch, token, head, width), and log Σ exp of its logits, (…, batch, token, head)."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        return _forward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.precision = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, *output)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias, found, sums = ctx.saved_tensors
        gradient = gradients[0].transpose(-2, -3)
        slopes: Any = _Gradient.apply(gradient, query, key, value, bias, found, sums, ctx.precision)
        return *(each.transpose(-2, -3) for each in slopes), None, None

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
        *tensors, bias, how = args
        tensors = members_first(info, in_dims[:3], *tensors)
        found: Any = _Attend.apply(*tensors, _bias_of_members(bias, in_dims[3], tensors[0]), how)
        return found, (0, 0)


class _Gradient(FirstDerivative):
    """At queries, keys and values, (…, batch, token, head, width) each."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        return _backward(*inputs)

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


def _run_forward(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, how: str) -> tuple[Tensor, Tensor]:
    found, sums = _shapes_forward(query, key, value, bias, how)
    if found.numel():
        entering = [item for each in (query, key, value) for item in laid_out(each)]
        if settings(query, key, how).tiles:
            sizes = _sizes_of_tiles(query, key, how)
            _tiles().forward[sizes.pop("grid")](*entering, *_biased(bias, query, key, -1), found, sums, **sizes)
        else:
            sizes = _sizes_of_rows(query, key, query.shape[-2], how)
            _rows().forward[sizes.pop("grid")](*entering, *_biased(bias, query, key, -2), found, sums, **sizes)
    return found, sums


def _run_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    found: Tensor,
    sums: Tensor,
    how: str,
) -> tuple[Tensor, Tensor, Tensor]:
    slopes = _shapes_backward(gradient, query, key, value)
    if query.numel() and key.numel():
        entering = [item for each in (query, key, value, gradient) for item in laid_out(each)]
        by_key = _biased(bias, query, key, -1)
        if settings(query, key, how).tiles:
            sizes = _sizes_of_tiles(query, key, how)
            _tiles().backward[sizes.pop("grid")](*entering, *by_key, found, sums, *slopes, **sizes)
        else:
            share, by_query = torch.empty_like(sums), _biased(bias, query, key, -2)
            sizes = _sizes_of_rows(query, key, query.shape[-2], how)
            _rows().of_queries[sizes.pop("grid")](*entering, *by_query, found, sums, slopes[0], share, **sizes)
            sizes = _sizes_of_rows(query, key, key.shape[-2], how)
            _rows().of_keys[sizes.pop("grid")](*entering, *by_key, sums, share, *slopes[1:], **sizes)
    return slopes


def _shapes_forward(query: Tensor, _key: Tensor, value: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    *front, heads, queries, width = query.shape
    sums = query.new_empty((*front, queries, heads), dtype=torch.float32)
    return value.new_empty((*front, queries, heads, width)), sums


def _shapes_backward(
    _gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any
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


@cache
def _tiles() -> Any:
    from theodolite.kernels import attention_tiles

    return attention_tiles


_forward = declare(
    "attention(Tensor query, Tensor key, Tensor value, Tensor? bias, str precision) -> (Tensor, Tensor)",
    _run_forward,
    _shapes_forward,
)
_backward = declare(
    "attention_gradient(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor found, "
    "Tensor sums, str precision) -> (Tensor, Tensor, Tensor)",
    _run_backward,
    _shapes_backward,
)


@dataclass(frozen=True)
class Settings:
    """Whether a sequence's logits are one tile or go row by row; warps of a program; vectors of a thread, of rows."""

    tiles: bool
    warps: int
    vectors: int = 1


def settings(query: Tensor, key: Tensor, how: str) -> Settings:
    """Rows waste nothing on padding but read every key for every query; wide heads are better on tensor cores, and
    long sequences too where a product is one pass of these (`how`)."""
    tokens, width = max(query.shape[-2], key.shape[-2]), query.shape[-1]
    padded = _padded(tokens)
    if (12 if padded < 64 else 8) <= width <= 64 and padded <= 64:
        return Settings(tiles=True, warps=1 if padded < 64 else 4)
    if 8 <= width <= 64 and padded == 128 and how != "tf32x3":
        return Settings(tiles=True, warps=8)
    return Settings(tiles=False, warps=4)


def _sizes_of_rows(query: Tensor, key: Tensor, tokens: int, how: str) -> dict[str, Any]:
    chosen, width = settings(query, key, how), query.shape[-1]
    cut = tile(width, query.shape[:-2].numel() * tokens, chosen.warps, chosen.vectors)
    return {**cut, **_shape(query, key)}


def _sizes_of_tiles(query: Tensor, key: Tensor, how: str) -> dict[str, Any]:
    tokens = _padded(max(query.shape[-2], key.shape[-2]))
    cut = {"WIDTH": _padded(query.shape[-1]), "TOKENS": tokens, "PRECISION": how}
    grid = {"grid": (query.shape[:-2].numel(),), "num_warps": settings(query, key, how).warps}
    return {**grid, **cut, **_shape(query, key)}


def _shape(query: Tensor, key: Tensor) -> dict[str, Any]:
    batch, heads, queries, width = query.shape[-4:]
    counts = {"batch": batch, "heads": heads, "queries": queries, "keys": key.shape[-2]}
    return {**counts, "scale": 1 / math.sqrt(width), "width": width}


def _padded(size: int) -> int:
    """A side of a tile for tensor cores."""
    return max(16, 1 << (size - 1).bit_length())


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
