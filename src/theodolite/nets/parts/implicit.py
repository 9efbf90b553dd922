"""The fixed point of z ↦ f(z, inputs…) as one differentiable operation, with the gradient of the implicit function.

At z* = f(z*, θ), dz*/dθ = (1 − ∂f/∂z)⁻¹ ∂f/∂θ. Backward therefore solves u = (∂f/∂z)ᵀ u + v for the incoming gradient v
and gives (∂f/∂θ)ᵀ u: exact whatever way z* was found, with the memory of one application of f. That u is a fixed point
too, found by the same operation, so gradients of gradients are exact as well. The equation is linear in v: it is solved
for v of length 1 in every row and scaled back, so that a tolerance means the same whatever the scale of a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import maybe_current_level

from theodolite.errors import BadInput
from theodolite.nets.parts.solvers import Map, Solution, solve

Bind = Callable[..., Map]  # from the inputs to the map of z, with what does not depend on z computed once


@dataclass(frozen=True)
class Solving:
    """How both fixed points, forward and backward, are found."""

    method: str = "picard"
    tolerance: float = 1e-12
    steps: int = 500
    memory: int = 5
    early: bool = True

    def of(self, g: Map, start: Tensor) -> Solution:
        return solve(g, start, self.method, self.tolerance, self.steps, self.memory, self.early)


def implicit(
    f: Callable[..., Tensor],
    start: Float[Tensor, "*row size"],
    *inputs: Tensor,
    constants: Sequence[Tensor] = (),
    solving: Solving | None = None,
) -> Float[Tensor, "*row size"]:
    """z* = f(z*, *inputs, *constants) from `start`, with gradients to every tensor of `inputs`.

    `constants` get none, nor does what f closes over, which may not be batched by `vmap`: hand that over instead.
    """
    for tensor in inputs:
        if not tensor.is_floating_point():
            raise BadInput(f"an input of {tensor.dtype} has no gradient: pass it among the constants instead")

    def bind(*given: Tensor) -> Map:
        return lambda z: f(z, *given)

    return _Implicit.apply(  # pyright: ignore[reportReturnType]
        bind, solving or Solving(), len(inputs), start, *inputs, *constants
    )


class _Implicit(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(bind: Bind, solving: Solving, count: int, start: Tensor, *given: Tensor) -> Tensor:
        return solving.of(bind(*given), start).z

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.bind, ctx.solving, ctx.count = inputs[:3]
        ctx.save_for_backward(output, *inputs[4:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        z, *given = ctx.saved_tensors
        find = _transformed if torch.is_grad_enabled() or maybe_current_level() is not None else _plain
        found = find(ctx, z, gradients[0], given[: ctx.count], given[ctx.count :])
        return (None, None, None, None, *found, *(None for _ in given[ctx.count :]))


def _plain(ctx: Any, z: Tensor, v: Tensor, inputs: list[Tensor], constants: list[Tensor]) -> list[Tensor | None]:
    """By autograd, which has less to do per product than function transforms, and one evaluation of the map."""
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        inputs = [x.detach().requires_grad_(need) for x, need in zip(inputs, ctx.needs_input_grad[4:], strict=False)]
        value = ctx.bind(*inputs, *constants)(z)
    v, length = _unit(v)
    u = length * ctx.solving.of(lambda u: torch.autograd.grad(value, z, u, retain_graph=True)[0] + v, v).z
    needed = [x for x in inputs if x.requires_grad]
    slopes = iter(torch.autograd.grad(value, needed, u, allow_unused=True) if needed else ())
    return [next(slopes) if x.requires_grad else None for x in inputs]


def _transformed(ctx: Any, z: Tensor, v: Tensor, inputs: list[Tensor], constants: list[Tensor]) -> tuple[Tensor, ...]:
    """Under `vmap`, `grad` and where gradients are differentiated again."""
    bind = ctx.bind

    def adjoint(z: Tensor, v: Tensor, *given: Tensor) -> Map:
        _, pull, *_ = torch.func.vjp(bind(*given), z)
        return lambda u: pull(u)[0] + v

    v, length = _unit(v)
    u = length * _Implicit.apply(adjoint, ctx.solving, 2 + ctx.count, v, z, v, *inputs, *constants)
    _, pull, *_ = torch.func.vjp(lambda *inputs: bind(*inputs, *constants)(z), *inputs)
    return pull(u)


def _unit(v: Float[Tensor, "*row size"]) -> tuple[Float[Tensor, "*row size"], Float[Tensor, "*row 1"]]:
    """Rows of length 1, and what they were divided by, a constant to gradients; a row of zeros is divided by 1.

    By the largest entry first: squares of float32 numbers below 1e-19 are 0.
    """
    largest = _or_one(v.detach().abs().amax(dim=-1, keepdim=True))
    v = v / largest
    length = _or_one(v.detach().norm(dim=-1, keepdim=True))
    return v / length, largest * length


def _or_one(x: Tensor) -> Tensor:
    return torch.where(x == 0, 1.0, x)
