"""Solvers of z = g(z): Picard iteration, Anderson acceleration, Broyden's method, row by row of a batch.

The last dimension of z is the vector, every other one a row of its own. A row that has reached the tolerance keeps what
it found while others go on: convergence is a mask over a fixed number of steps, so that a solver runs under `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from theodolite.errors import BadInput
from theodolite.registry import unknown

Map = Callable[..., Tensor]
_LEAST = 1e-30
_ROUNDING = 64  # times the precision of a number: how far products of unit vectors may be off
_ROOM = 16  # corrections Broyden's method has room for at first; doubled when they are used up
_GLANCE = 4  # steps between two looks at whether all rows are done on a GPU, where looking means waiting


@dataclass(frozen=True)
class Solution:
    """`steps`: evaluations of g until the residual ‖g(z) − z‖ reached the tolerance, relative to 1 + ‖z‖; the number
    of steps allowed where it did not, and `reached` is false. `residual` is the least that was met, and `z` the value
    of g there; they are NaN only where no residual was a number."""

    z: Float[Tensor, "*row size"]
    steps: Int[Tensor, "*row"]
    reached: Bool[Tensor, "*row"]
    residual: Float[Tensor, "*row"]


class Method(Protocol):
    """From where g was evaluated, its value and value − z there: where to evaluate it next."""

    def __call__(self, z: Tensor, value: Tensor, residual: Tensor) -> Tensor: ...


@torch.no_grad()
def solve(
    g: Map, start: Float[Tensor, "*row size"], method: str = "picard", tolerance: float = 1e-9, steps: int = 200,
    memory: int = 5, early: bool = True,
) -> Solution:  # fmt: skip
    """The fixed point of g from `start`. `early` stops when all rows have converged, which changes no result; inside
    `vmap` and inside the capture of a CUDA graph, where nothing may depend on values, all steps are made. No gradient
    goes through the steps: that is for `theodolite.nets.parts.implicit`."""
    if method not in SOLVERS:
        raise BadInput(unknown("solver", method, list(SOLVERS)))
    if steps < 1 or memory < 1 or tolerance <= 0:
        raise BadInput(
            f"{steps} steps, a memory of {memory} and a tolerance of {tolerance:g} solve nothing: use at least 1, 1 "
            "and a tolerance above 0"
        )
    advance = SOLVERS[method](memory)
    every = _GLANCE if start.is_cuda else 1
    early = early and not (start.is_cuda and torch.cuda.is_current_stream_capturing())
    z = start
    value = g(z)
    residual = value - z
    kept, least = value, _size(residual, z)
    open_ = ~(least <= tolerance)  # also where the residual is no number
    taken = torch.ones_like(open_, dtype=torch.long)
    for step in range(1, steps):
        if early and step % every == 0 and _none(open_):
            break
        z = advance(z, value, residual)
        value = g(z)
        residual = value - z
        size = _size(residual, z)
        better = open_ & ((size < least) | least.isnan())  # what is no number is never better than a number
        kept = torch.where(better.unsqueeze(-1), value, kept)
        least = torch.where(better, size, least)
        taken = taken + open_
        open_ = open_ & ~(size <= tolerance)
    return Solution(kept, taken, ~open_, least)


class _Picard:
    def __init__(self, memory: int) -> None:
        pass

    def __call__(self, z: Tensor, value: Tensor, residual: Tensor) -> Tensor:
        return value


class _Anderson:
    """z ← value − Σ γ_j Δvalue_j, where Σ γ_j Δresidual_j is nearest to the residual; Δ over the last `memory` steps.

    Differences are brought to length 1 before the normal equations are solved, and their Gram matrix is lifted by
    its rounding errors: differences that are parallel share their weight, and zero ones get none.
    """

    def __init__(self, memory: int) -> None:
        self.memory, self.step = memory - 1, -1
        self.last: tuple[Tensor, Tensor] | None = None

    def __call__(self, z: Tensor, value: Tensor, residual: Tensor) -> Tensor:
        last, self.last = self.last, (value, residual)
        self.step += 1
        if last is None or not self.memory:
            return value
        change = residual - last[1]
        inverse = 1 / (change.norm(dim=-1, keepdim=True) + _LEAST)
        change, moved = change * inverse, (value - last[0]) * inverse
        slot = (self.step - 1) % self.memory
        if self.step == 1:
            self.changes, self.moves = (_rows_like(x, self.memory) for x in (change, moved))
            # Slots without a difference yet are a unit matrix's: their weight is 0.
            self.gram = torch.diag_embed(torch.ones_like(self.changes[..., 0]))
            self.unit = torch.eye(self.memory, dtype=z.dtype, device=z.device)
            self.lift = _ROUNDING * torch.finfo(z.dtype).eps
        self.changes[..., slot, :] = change
        self.moves[..., slot, :] = moved
        products = self.changes @ torch.stack((change, residual), dim=-1)
        self.gram[..., slot, :] = products[..., 0]
        self.gram[..., :, slot] = products[..., 0]
        self.gram[..., slot, slot] = 1.0
        weights = _weights(self.gram + self.lift * self.unit, products[..., 1:])
        return value - (weights.transpose(-1, -2) @ self.moves).squeeze(-2)


class _Broyden:
    """Newton's method for r(z) = g(z) − z with an inverse Jacobian −1 + Σ u_i v_iᵀ that every step corrects
    (Sherman–Morrison, "good Broyden"); all corrections are kept, as the rows of two matrices."""

    def __init__(self, memory: int) -> None:
        self.count = 0

    def __call__(self, z: Tensor, value: Tensor, residual: Tensor) -> Tensor:
        if self.count == 0:
            self.left, self.right = _rows_like(value, _ROOM), _rows_like(value, _ROOM)
            self.count, self.move = 1, residual
            return z + residual
        used = self.count - 1
        left, right = self.left[..., :used, :], self.right[..., :used, :]
        # One product with the new residual gives both the correction and, once corrected, the next move.
        applied, backward = -residual, -self.move
        if used:
            applied = applied + _through(left, right, residual)
            backward = backward + _through(right, left, self.move)
        scale = _apart_from_zero((self.move * (applied + self.move)).sum(dim=-1, keepdim=True))
        correction = -applied / scale
        if used == self.left.shape[-2]:
            self.left, self.right = (torch.cat((x, torch.zeros_like(x)), dim=-2) for x in (self.left, self.right))
        self.left[..., used, :] = correction
        self.right[..., used, :] = backward
        self.count += 1
        self.move = -applied - correction * (backward * residual).sum(dim=-1, keepdim=True)
        return z + self.move


SOLVERS: dict[str, Callable[[int], Method]] = {"picard": _Picard, "anderson": _Anderson, "broyden": _Broyden}


def _weights(matrix: Tensor, right: Tensor) -> Tensor:
    """matrix⁻¹ right; on a GPU by elimination, since the library's solver cannot be captured in a CUDA graph."""
    return eliminated(matrix, right) if matrix.is_cuda else torch.linalg.solve_ex(matrix, right)[0]


def eliminated(matrix: Float[Tensor, "*row n n"], right: Float[Tensor, "*row n k"]) -> Float[Tensor, "*row n k"]:
    """matrix⁻¹ right for positive definite matrices of a few rows: Gauss and Jordan's elimination of all at once."""
    joined = torch.cat((matrix, right), dim=-1)
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for j in range(matrix.shape[-1]):
        column, rest = joined[..., :1], joined[..., 1:]
        pivot = rest[..., j : j + 1, :] / column[..., j : j + 1, :]
        joined = torch.addcmul(rest, column - unit[:, j : j + 1], pivot, value=-1)
    return joined


def _through(left: Tensor, right: Tensor, vector: Tensor) -> Tensor:
    """Σ u_i ⟨v_i, vector⟩."""
    weights = right @ vector.unsqueeze(-1)
    return (weights.transpose(-1, -2) @ left).squeeze(-2)


def _rows_like(x: Tensor, count: int) -> Tensor:
    """Zeros for `count` vectors per row; made from x, so that they are batched where x is."""
    return torch.zeros_like(x).unsqueeze(-2).repeat_interleave(count, dim=-2)


def _size(residual: Tensor, z: Tensor) -> Tensor:
    return residual.norm(dim=-1) / (1 + z.norm(dim=-1))


def _none(mask: Tensor) -> bool:
    """Whether it may be asked, and no row is open."""
    return not is_functorch_wrapped_tensor(mask) and not bool(mask.any())


def _apart_from_zero(x: Tensor) -> Tensor:
    return torch.where(x.abs() < _LEAST, _LEAST, x)
