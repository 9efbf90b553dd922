"""Solvers of z = g(z): Picard iteration, Anderson acceleration, Broyden's method, row by row of a batch.

The last dimension of z is the vector, every other one a row of its own. A row that has reached the tolerance stands
still while others go on: convergence is a mask over a fixed number of steps, so that a solver runs under `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.registry import unknown

Map = Callable[[Tensor], Tensor]
_LEAST = 1e-30


@dataclass(frozen=True)
class Solution:
    """`steps`: evaluations of g until the residual ‖g(z) − z‖ reached the tolerance, relative to 1 + ‖z‖; the number
    of steps allowed where it did not, and `reached` is false."""

    z: Float[Tensor, "*row size"]
    steps: Int[Tensor, "*row"]
    reached: Tensor


def solve(
    g: Map, start: Float[Tensor, "*row size"], method: str = "picard", tolerance: float = 1e-9, steps: int = 200,
    memory: int = 5, early: bool = True,
) -> Solution:  # fmt: skip
    """The fixed point of g from `start`. `early` stops when all rows have converged; under `vmap` it must be off, since
    what is computed there may not depend on values."""
    if method not in SOLVERS:
        raise BadInput(unknown("solver", method, list(SOLVERS)))
    if steps < 1 or memory < 1 or tolerance <= 0:
        raise BadInput(
            f"{steps} steps, a memory of {memory} and a tolerance of {tolerance:g} solve nothing: use at least 1, 1 "
            "and a tolerance above 0"
        )
    return SOLVERS[method](g, start, tolerance, steps, memory, early)


def _picard(g: Map, z: Tensor, tolerance: float, steps: int, memory: int, early: bool) -> Solution:
    done, taken = _fresh(z)
    for _ in range(steps):
        following = g(z)
        reached = _small(following - z, z, tolerance)
        taken = taken + (~done).long()
        z = torch.where(done.unsqueeze(-1), z, following)
        done = done | reached
        if early and bool(done.all()):
            break
    return Solution(z, taken, done)


def _anderson(g: Map, z: Tensor, tolerance: float, steps: int, memory: int, early: bool) -> Solution:
    """z ← Σ α_i g(z_i), Σ α_i = 1, of the last `memory` steps, where Σ α_i (g(z_i) − z_i) is least."""
    done, taken = _fresh(z)
    values: list[Tensor] = []
    residuals: list[Tensor] = []
    for _ in range(steps):
        value = g(z)
        values, residuals = [*values, value][-memory:], [*residuals, value - z][-memory:]
        reached = _small(residuals[-1], z, tolerance)
        taken = taken + (~done).long()
        history = torch.stack(residuals, dim=-2)
        gram = history @ history.transpose(-1, -2)
        scale = gram.diagonal(dim1=-2, dim2=-1).amax(dim=-1, keepdim=True).unsqueeze(-1) + _LEAST
        # Minimum-norm solution of the least squares: a history of parallel residuals is no fault.
        weights = torch.linalg.pinv(gram / scale, hermitian=True, rtol=1e-12).sum(dim=-1)
        weights = weights / _apart_from_zero(weights.sum(dim=-1, keepdim=True))
        mixed = (weights.unsqueeze(-1) * torch.stack(values, dim=-2)).sum(dim=-2)
        z = torch.where(done.unsqueeze(-1), z, torch.where(reached.unsqueeze(-1), value, mixed))
        done = done | reached
        if early and bool(done.all()):
            break
    return Solution(z, taken, done)


def _broyden(g: Map, z: Tensor, tolerance: float, steps: int, memory: int, early: bool) -> Solution:
    """Newton's method for r(z) = g(z) − z with an inverse Jacobian −1 + Σ u_i v_iᵀ that every step corrects
    (Sherman–Morrison, "good Broyden"); all corrections are kept."""
    done, taken = _fresh(z)
    left: list[Tensor] = []
    right: list[Tensor] = []

    def inverse(vector: Tensor) -> Tensor:
        return _low_rank(-vector, vector, left, right)

    def transposed(vector: Tensor) -> Tensor:
        return _low_rank(-vector, vector, right, left)

    residual = g(z) - z
    taken = taken + 1
    done = _small(residual, z, tolerance)
    for _ in range(steps - 1):
        if early and bool(done.all()):
            break
        move = -inverse(residual)
        following = z + move
        fresh = g(following) - following
        change = fresh - residual
        forward, backward = inverse(change), transposed(move)
        scale = _apart_from_zero((move * forward).sum(dim=-1, keepdim=True))
        left, right = [*left, (move - forward) / scale], [*right, backward]
        reached = _small(fresh, following, tolerance)
        taken = taken + (~done).long()
        z = torch.where(done.unsqueeze(-1), z, following)
        residual = torch.where(done.unsqueeze(-1), residual, fresh)
        done = done | reached
    return Solution(z + torch.where(done.unsqueeze(-1), residual, 0 * residual), taken, done)


SOLVERS = {"picard": _picard, "anderson": _anderson, "broyden": _broyden}


def _low_rank(start: Tensor, vector: Tensor, left: list[Tensor], right: list[Tensor]) -> Tensor:
    for u, v in zip(left, right, strict=True):
        start = start + u * (v * vector).sum(dim=-1, keepdim=True)
    return start


def _fresh(z: Tensor) -> tuple[Tensor, Tensor]:
    """No row done, no step taken; made from z, so that they are batched where z is."""
    nothing = torch.zeros_like(z[..., 0])
    return nothing > 0, nothing.long()


def _small(residual: Tensor, z: Tensor, tolerance: float) -> Tensor:
    return residual.norm(dim=-1) <= tolerance * (1 + z.norm(dim=-1))


def _apart_from_zero(x: Tensor) -> Tensor:
    return torch.where(x.abs() < _LEAST, _LEAST * torch.ones_like(x), x)
