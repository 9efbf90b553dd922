"""From a row of logits to weights that sum to 1: softmax, and three maps that give exactly 0 to what falls far behind.

A logit of −∞ has weight 0 and gradient 0 in all of them; a row needs one that is finite. A row with NaN or +∞ has no
weights: all of them are NaN, and other rows do not notice.

- softmax: every weight is positive, so that n tokens within a range of logits r have at least e^−r / n each.
- thresholded: softmax weights below a share of the largest are set to 0 and the others are scaled up to sum to 1.
- sparsemax: the point of the simplex nearest to the logits (Martins & Astudillo 2016).
- entmax: between softmax and sparsemax, α = 1.5 (Peters, Niculae & Martins 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.nets.contract import choice

KINDS = ("softmax", "thresholded", "sparsemax", "entmax")

Weighing = Callable[[Tensor], Tensor]


def weighing(kind: str, threshold: float) -> Weighing:
    """The map of this name; `threshold` is that of the thresholded one."""
    choice("attention", kind, KINDS)
    if not 0 < threshold <= 1:
        raise BadInput(f"threshold must be a share above 0 and at most 1, not {threshold!r}")
    maps = {
        "softmax": softmax,
        "thresholded": partial(thresholded, threshold=threshold),
        "sparsemax": sparsemax,
        "entmax": entmax,
    }
    return maps[kind]


def softmax(logits: Float[Tensor, "*row key"]) -> Float[Tensor, "*row key"]:
    return torch.softmax(logits, dim=-1)


def thresholded(logits: Float[Tensor, "*row key"], threshold: float) -> Float[Tensor, "*row key"]:
    """Softmax over the keys whose weight is at least `threshold` times the largest, which is their renormalisation.

    Relative to the largest weight, no row can become empty, and a lead of log(1/threshold) in the logits is enough to
    be seen alone, however many keys there are.
    """
    least = logits.detach().amax(dim=-1, keepdim=True) + math.log(threshold)
    return torch.softmax(logits.masked_fill(logits < least, -math.inf), dim=-1)


def sparsemax(logits: Float[Tensor, "*row key"]) -> Float[Tensor, "*row key"]:
    """(z − τ)₊ with the τ that makes it sum to 1."""
    return _Sparsemax.apply(logits)  # pyright: ignore[reportReturnType]


def entmax(logits: Float[Tensor, "*row key"]) -> Float[Tensor, "*row key"]:
    """(z/2 − τ)₊² with the τ that makes it sum to 1."""
    return _Entmax.apply(logits)  # pyright: ignore[reportReturnType]


# Both maps are given by τ ≥ max − 1, so what lies 1 or more below the largest is 0 whatever it is: clamped there, −∞
# does no harm in the sums. τ of the k largest alone is a formula; of all k, the largest whose k-th entry is still
# above its τ is the right one. Gradients need the weights only, so that nothing of the search is kept.


class _Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(logits: Tensor) -> Tensor:
        x = logits - logits.amax(dim=-1, keepdim=True)
        ordered, count = _descending(x)
        return (x - _last((ordered.cumsum(dim=-1) - 1) / count, ordered)).clamp(min=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """On the support, the gradient less its mean there."""
        (weights,) = ctx.saved_tensors
        return _projected(gradients[0], (weights > 0).to(weights.dtype))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], *args: Tensor) -> tuple[Tensor, int]:
        return sparsemax(args[0].movedim(in_dims[0], 0)), 0


class _Entmax(torch.autograd.Function):
    @staticmethod
    def forward(logits: Tensor) -> Tensor:
        x = (logits - logits.amax(dim=-1, keepdim=True)) / 2
        ordered, count = _descending(x)
        mean = ordered.cumsum(dim=-1) / count
        # Σ (x_i − τ)² = 1 over the k largest: k·(mean − τ)² = 1 − k·variance
        left = (1 - ordered.square().cumsum(dim=-1)) / count + mean.square()
        return (x - _last(mean - left.clamp(min=0).sqrt(), ordered)).clamp(min=0).square()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """dp_i = √p_i (dz_i − dτ), where dτ is the mean of dz weighted by √p."""
        (weights,) = ctx.saved_tensors
        return _projected(gradients[0], weights.sqrt())

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], *args: Tensor) -> tuple[Tensor, int]:
        return entmax(args[0].movedim(in_dims[0], 0)), 0


def _descending(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in descending order, from 0 down to −1, and 1, 2, 3, …"""
    ordered = x.clamp(min=-1).sort(dim=-1, descending=True).values
    return ordered, torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)


def _last(tau: Tensor, ordered: Tensor) -> Tensor:
    """τ at the end of the support, which begins with the first of a row; rounding must not bring in what is clamped."""
    tau = tau.clamp(min=-1)
    support = (ordered > tau).sum(dim=-1, keepdim=True)
    return tau.gather(-1, (support - 1).clamp(min=0))  # nothing is above a τ of NaN: such a row takes its first, NaN


def _projected(gradient: Tensor, slope: Tensor) -> Tensor:
    """slope·(g − Σ slope·g / Σ slope): what is left of a gradient once the weights must sum to 1."""
    weighted = slope * gradient
    return weighted - slope * (weighted.sum(dim=-1, keepdim=True) / slope.sum(dim=-1, keepdim=True))
