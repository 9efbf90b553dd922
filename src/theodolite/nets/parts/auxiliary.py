"""A cost that a net adds to whatever loss it is trained with, carried by its output instead of beside it."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def with_cost(output: Float[Tensor, "*any"], cost: Float[Tensor, ""]) -> Float[Tensor, "*any"]:
    """The output as it is; the gradient of any loss of it is that of the loss plus the cost.

    So a net with a cost of its own keeps the contract of all others, one tensor in and one out. The cost is not
    multiplied by what multiplies the loss, and it is added once for every backward pass through this output. Under
    `vmap` every member has its own.
    """
    return _WithCost.apply(output, cost)  # pyright: ignore[reportReturnType]


class _WithCost(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(output: Tensor, cost: Tensor) -> Tensor:
        return output.view_as(output)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (cost,) = ctx.saved_tensors
        return gradients[0], torch.ones_like(cost)
