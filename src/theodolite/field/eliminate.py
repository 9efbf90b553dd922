"""Rank, pivots and solves modulo p by blocked elimination in place.

A step takes the leading block D of what is left, [[D, Q], [R, S]], and replaces Q by W = D⁻¹·Q and S by S − R·W.
Almost all arithmetic is one matrix product; no row or column is moved while D has an inverse without pivoting, which
at random points it almost always has. When it has none, the pivots of the block's columns are searched with the same
elimination on a copy, in smaller blocks, down to a column-by-column search that never leaves the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.field.inverse import inverse
from theodolite.field.modulus import Modulus
from theodolite.field.product import product, subtract_product_

_BLOCK = 512
_SMALLEST = 16


@dataclass(frozen=True)
class Elimination:
    """What an elimination leaves: `factors` holds D⁻¹, W and R of each block of `bounds`, in pivot order."""

    modulus: Modulus
    factors: Tensor
    bounds: tuple[int, ...]
    rows: Tensor  # the original row at each place; the first `rank` are the pivot rows
    columns: Tensor

    @property
    def rank(self) -> int:
        return self.bounds[-1]

    @property
    def pivot_rows(self) -> Tensor:
        return self.rows[: self.rank]

    @property
    def pivot_columns(self) -> Tensor:
        return self.columns[: self.rank]

    def solve(self, right: Tensor) -> Tensor:
        """x with (pivot minor)·x = right, both in pivot order; `right` has one column per system."""
        x, m, a, rank = right.clone(), self.modulus, self.factors, self.rank
        blocks = list(zip(self.bounds, self.bounds[1:], strict=False))
        for start, stop in blocks:
            x[start:stop] = product(a[start:stop, start:stop], x[start:stop], m)
            subtract_product_(x[stop:], a[stop:rank, start:stop], x[start:stop], m)
        for start, stop in reversed(blocks):
            if stop < rank:
                x[start:stop] = m.reduce_(x[start:stop] - product(a[start:stop, stop:rank], x[stop:], m))
        return x


def eliminate(matrix: Tensor, modulus: Modulus, *, overwrite: bool = False, block: int | None = None) -> Elimination:
    """Eliminate a matrix of centred residues. `overwrite` saves the copy and destroys the matrix."""
    if matrix.dim() != 2 or matrix.dtype != torch.float64:
        raise BadInput(
            f"elimination needs a float64 matrix of residues, not {matrix.dim()} dimensions of {matrix.dtype}: "
            "use Modulus.lift"
        )
    a = matrix if overwrite and matrix.stride(1) == 1 else matrix.clone(memory_format=torch.contiguous_format)
    block = min(block or _BLOCK, modulus.terms)
    height, width = a.shape
    rows, columns = torch.arange(height), torch.arange(width)
    done, bounds = 0, [0]
    while done < min(height, width):
        size = min(block, height - done, width - done)
        inverted = inverse(a[done : done + size, done : done + size], modulus)
        if inverted is None:
            found_rows, found_columns = _panel_pivots(a[done:, done : done + size], modulus, block)
            found = len(found_rows)
            if not found and not bool(a[done:, done:width].any()):
                break
            _bring_forward(a, rows, found_rows + done, done)
            # Columns of the panel that hold no pivot are combinations of those that do: they leave to the right.
            _bring_forward(a.T, columns, found_columns + done, done)
            _send_back(a.T, columns, done + found, done + size, width)
            width -= size - found
            if not found:
                continue
            size = found
            inverted = inverse(a[done : done + size, done : done + size], modulus)
            if inverted is None:
                raise AssertionError("the pivots of a panel form a minor that eliminates without pivoting")
        stop = done + size
        right = a[done:stop, stop:width]
        right.copy_(product(inverted, right, modulus))
        a[done:stop, done:stop] = inverted
        subtract_product_(a[stop:, stop:width], a[stop:, done:stop], right, modulus)
        done = stop
        bounds.append(done)
    return Elimination(modulus, a, tuple(bounds), rows, columns)


def rank(matrix: Tensor, modulus: Modulus) -> int:
    """Rank over GF(p) of a matrix of residues."""
    return eliminate(matrix, modulus).rank


def _panel_pivots(panel: Tensor, modulus: Modulus, block: int) -> tuple[Tensor, Tensor]:
    """Pivot rows and columns of a tall panel, in an order in which its minor eliminates without pivoting."""
    if block > _SMALLEST:
        done = eliminate(panel, modulus, block=max(_SMALLEST, block // 4))
        return done.pivot_rows, done.pivot_columns
    a = panel.clone()
    places = torch.arange(a.shape[0], device=a.device)
    free = torch.ones(a.shape[0], dtype=torch.bool, device=a.device)
    chosen, pivots = [], []
    for k in range(a.shape[1]):
        candidate = (a[:, k] != 0) & free
        at = candidate.to(torch.int8).argmax()
        pivot = torch.where(candidate[at], a[at, k], 0.0)
        free = free & ((places != at) | (pivot == 0))
        factor = modulus.reduce_(a[:, k] * modulus.inverses(pivot)) * free
        modulus.reduce_(a.sub_(factor[:, None] * a[at][None, :]))
        chosen.append(at)
        pivots.append(pivot)
    kept = torch.stack(pivots).cpu() != 0
    return torch.stack(chosen).cpu()[kept], torch.arange(a.shape[1])[kept]


def _bring_forward(a: Tensor, order: Tensor, chosen: Tensor, place: int) -> None:
    """Exchange rows of `a` so that the chosen ones stand from `place` on, in their order."""
    target = list(range(len(order)))
    where = {row: row for row in chosen.tolist()}  # where each original row stands now
    for offset, row in enumerate(chosen.tolist()):
        current, wanted = where[row], place + offset
        if current != wanted:
            displaced = target[wanted]
            target[wanted], target[current] = target[current], displaced
            if displaced in where:
                where[displaced] = current
            where[row] = wanted
    _apply(a, order, target)


def _send_back(a: Tensor, order: Tensor, start: int, stop: int, end: int) -> None:
    """Exchange rows start..stop with the last ones before `end`."""
    moved = stop - start
    target = list(range(len(order)))
    target[start:end] = (
        target[stop:end] + target[start:stop]
        if end - stop < moved
        else (target[end - moved : end] + target[stop : end - moved] + target[start:stop])
    )
    _apply(a, order, target)


def _apply(a: Tensor, order: Tensor, target: list[int]) -> None:
    moved = [i for i, source in enumerate(target) if i != source]
    if moved:
        to = torch.tensor(moved)
        source = torch.tensor([target[i] for i in moved])
        order[to] = order[source]
        a[to.to(a.device)] = a[source.to(a.device)]
