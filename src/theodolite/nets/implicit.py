"""The fixed point of z ↦ f(z, inputs…) as one differentiable operation, with the gradient of the implicit function.

At z* = f(z*, θ), dz*/dθ = (1 − ∂f/∂z)⁻¹ ∂f/∂θ. Backward therefore solves u = (∂f/∂z)ᵀ u + v for the incoming gradient v
and gives (∂f/∂θ)ᵀ u: exact whatever way z* was found, with the memory of one application of f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.nets.solvers import solve


@dataclass(frozen=True)
class Solving:
    """How both fixed points, forward and backward, are found. `early` must be off under `vmap`."""

    method: str = "picard"
    tolerance: float = 1e-12
    steps: int = 500
    memory: int = 5
    early: bool = True

    def of(self, g: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        return solve(g, start, self.method, self.tolerance, self.steps, self.memory, self.early).z


def implicit(
    f: Callable[..., Tensor], start: Float[Tensor, "*row size"], *inputs: Tensor, solving: Solving | None = None
) -> Float[Tensor, "*row size"]:
    """z* = f(z*, *inputs) from `start`, with gradients to every tensor of `inputs`; what f closes over gets none."""
    for tensor in inputs:
        if not tensor.is_floating_point():
            raise BadInput(f"an input of {tensor.dtype} has no gradient: let the map close over it instead")
    return _Implicit.apply(f, solving or Solving(), start, *inputs)  # pyright: ignore[reportReturnType]


class _Implicit(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(f: Callable[..., Tensor], solving: Solving, start: Tensor, *inputs: Tensor) -> Tensor:
        return solving.of(lambda z: f(z, *inputs), start)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.f, ctx.solving = inputs[0], inputs[1]
        ctx.save_for_backward(output, *inputs[3:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        z, *inputs = ctx.saved_tensors
        _, pull_z, *_ = torch.func.vjp(lambda z: ctx.f(z, *inputs), z)
        u = ctx.solving.of(lambda u: pull_z(u)[0] + gradients[0], gradients[0])
        _, pull_inputs, *_ = torch.func.vjp(lambda *given: ctx.f(z, *given), *inputs)
        return (None, None, None, *pull_inputs(u))
