"""Pieces of a token of the nets with a memory: the activation of their controller, and how likely actions are."""

from __future__ import annotations

import triton
import triton.language as tl

from theodolite.kernels.tiles import tanh


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "relu":
        return tl.maximum(x, 0.0)
    else:
        return tanh(x)


@triton.jit
def slope(y, ACTIVATION: tl.constexpr):
    """The derivative of the activation, by what it gave."""
    if ACTIVATION == "relu":
        return tl.where(y > 0.0, 1.0, 0.0)
    else:
        return 1.0 - y * y


@triton.jit
def softmax(x, chosen):
    """Over the chosen columns; 0 in the others."""
    x = tl.where(chosen, x, float("-inf"))
    grown = tl.exp(x - tl.max(x, axis=1)[:, None])
    return grown / tl.sum(grown, axis=1)[:, None]
