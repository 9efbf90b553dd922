"""S ← α (S − β k kᵀS) + β k vᵀ over all tokens in one kernel, read by a query after each; its gradient in three.

Everything is read where it lies, with whatever strides; results have the order of memory (…, batch, token, head,
width). All arithmetic is float32. What is kept for the gradient is as large as the values: no state is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from theodolite.kernels.launch import FirstDerivative, declare, members_first
from theodolite.kernels.strides import laid_out, tile, with_members


def recur(query: Tensor, key: Tensor, value: Tensor, rate: Tensor | None, log_decay: Tensor | None) -> Tensor:
    """qᵀS after every token, (…, batch, head, token, value); several steps per token where keys are as many.

    Without `rate` the rule is S ← α S + k vᵀ.
    """
    found = _Recur.apply(query, key, value, rate, log_decay, torch.is_grad_enabled())
    return found[0].transpose(-2, -3)  # pyright: ignore[reportOptionalSubscript]


def takes(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether `recur` knows the case: heads side by side."""
    return query.dim() >= 4 and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]


class _Recur(torch.autograd.Function):
    """What is found, (…, batch, token, head, value), and v − kᵀαS of every step where the gradient will need it."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        return _forward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs[:-1], *output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, rate, log_decay, found, missing = ctx.saved_tensors
        gradient = gradients[0].transpose(-2, -3)
        slopes: Any = _Gradient.apply(gradient, query, key, value, rate, log_decay, missing)
        at_query, at_key, at_value = (each.transpose(-2, -3) for each in slopes)
        at_rate = at_decay = None
        if rate is not None:
            at_rate = (at_value * missing.transpose(-2, -3)).sum(dim=-1).to(rate.dtype)
            at_value = at_value * rate.unsqueeze(-1)
        if log_decay is not None:
            # ⟨S, ∂S⟩ is the same before and after a decay, and the decay's gradient: a read adds its g·y to it, a
            # step its v·∂v, so that it is the sum of what comes later. The first decays nothing.
            written = (value * at_value).sum(dim=-1).unflatten(-1, (query.shape[-2], -1)).sum(dim=-1)
            later = (gradient * found.transpose(-2, -3)).sum(dim=-1) - written
            summed = later[..., 1:].flip(-1).cumsum(dim=-1).flip(-1)
            at_decay = torch.nn.functional.pad(summed, (1, 0)).to(log_decay.dtype)
        return at_query, at_key, at_value.to(value.dtype), at_rate, at_decay, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, int]]:
        return _Recur.apply(*members_first(info, in_dims, *args)), (0, 0)


class _Gradient(FirstDerivative):
    """At queries, at keys and at β (v − kᵀαS) of every step, (…, batch, token, head, width) each."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        return _backward(*inputs)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, int, int]]:
        return _Gradient.apply(*members_first(info, in_dims, *args)), (0, 0, 0)


def _run_forward(
    query: Tensor, key: Tensor, value: Tensor, rate: Tensor | None, log_decay: Tensor | None, keep: bool
) -> tuple[Tensor, Tensor]:
    found, missing = _shapes_forward(query, key, value, rate, log_decay, keep)
    if found.numel():
        sizes = _sizes(query, key, value.shape[-1], query.shape[-1])
        _rows().forward[sizes.pop("grid")](
            *(*laid_out(query), *laid_out(key), *laid_out(value), *_scalars(rate), *_scalars(log_decay)),
            *(found, missing if missing.numel() else None),
            **sizes,
        )
    return found, missing


def _run_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rate: Tensor | None,
    log_decay: Tensor | None,
    missing: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    at_query, at_key, at_value = _shapes_backward(gradient, query, key, value)
    if gradient.numel():
        rows, width = _rows(), value.shape[-1]
        q, k, g = laid_out(query), laid_out(key), laid_out(gradient)
        u = laid_out(value if rate is None else missing.transpose(-2, -3))
        scalars = (*_scalars(rate), *_scalars(log_decay))
        met = None if rate is None else torch.empty_like(at_key, dtype=torch.float32)
        sizes = _sizes(query, key, width, query.shape[-1])
        rows.at_values[sizes.pop("grid")](*q, *k, *g, *scalars, at_value, **sizes)
        sizes = _sizes(query, key, query.shape[-1], width)
        grid = sizes.pop("grid")
        rows.at_queries[grid](*k, *u, *g, *scalars, at_value, at_query, met, **sizes)
        rows.at_keys[grid](*q, *k, *u, *g, *scalars, at_value, met, at_key, **sizes)
    return at_query, at_key, at_value


def _shapes_forward(
    query: Tensor, key: Tensor, value: Tensor, rate: Tensor | None, _log_decay: Tensor | None, keep: bool
) -> tuple[Tensor, Tensor]:
    *front, heads, tokens, _ = query.shape
    width = value.shape[-1]
    kept = width if keep and rate is not None else 0
    missing = value.new_empty((*front, key.shape[-2], heads, kept), dtype=torch.float32)
    return value.new_empty((*front, tokens, heads, width)), missing


def _shapes_backward(
    _gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (
        each.new_empty((*each.shape[:-3], each.shape[-2], each.shape[-3], each.shape[-1]), dtype=dtype)
        for each, dtype in ((query, query.dtype), (key, key.dtype), (value, torch.float32))
    )
    return query, key, value


@cache
def _rows() -> Any:
    """The kernels; Triton is imported when they are first needed."""
    from theodolite.kernels import scan_rows

    return scan_rows


_forward = declare(
    "scan(Tensor query, Tensor key, Tensor value, Tensor? rate, Tensor? log_decay, bool keep) -> (Tensor, Tensor)",
    _run_forward,
    _shapes_forward,
)
_backward = declare(
    "scan_gradient(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor? rate, Tensor? log_decay, "
    "Tensor missing) -> (Tensor, Tensor, Tensor)",
    _run_backward,
    _shapes_backward,
)


@dataclass(frozen=True)
class Settings:
    """Warps of a program, vectors of a thread, and how many tokens are on their way from memory at a time.

    A row's result is written at every token: one warp does so without waiting for others.
    """

    warps: int = 1
    vectors: int = 1
    stages: int = 3


SETTINGS = Settings()


def _sizes(query: Tensor, key: Tensor, columns: int, width: int) -> dict[str, Any]:
    """Of a kernel with `columns` rows for every head, each with a vector of `width` numbers."""
    batch, heads, tokens = query.shape[-4:-1]
    cut = tile(width, query.shape[:-2].numel() * columns, SETTINGS.warps, SETTINGS.vectors)
    shape = {"batch": batch, "heads": heads, "columns": columns, "tokens": tokens}
    return {**cut, **shape, "steps": key.shape[-2] // tokens, "width": width, "STAGES": SETTINGS.stages}


def _scalars(x: Tensor | None) -> tuple[Any, ...]:
    """(…, batch, head, token) with its strides over members, batch, heads and tokens."""
    if x is None:
        return None, 0, 0, 0, 0
    x = with_members(x.unsqueeze(-1))
    return x, *x.stride()[:-1]
