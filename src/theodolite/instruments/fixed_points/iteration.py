"""A map applied again and again to many starts at once: where they go, what repeats, and the derivatives on the way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]
_FAR = 1e8  # a state this many times further out than the starts is gone for good
_LOOSE = 100.0  # times the tolerance: how far apart states of one attractor may lie
_TOGETHER = 1 << 24  # numbers of orbits compared at once
_BLOCK = 64  # steps between looks at whether anything still moves


@dataclass(frozen=True)
class Iteration:
    """Where each start is at the end. `period` 0: nothing repeats. `reached`: the step at which it first moved by less
    than the tolerance, or all that were taken."""

    z: Tensor
    period: Tensor
    diverged: Tensor
    reached: Tensor


@torch.no_grad()
def iterate(g: Map, z: Tensor, steps: int, tolerance: float, longest_period: int) -> Iteration:
    limit = _FAR * (1 + z.norm(dim=-1).max())
    diverged = torch.zeros(len(z), dtype=torch.bool, device=z.device)
    reached = torch.full((len(z),), steps, device=z.device)
    for number in range(steps):
        following, diverged = _kept(g(z), z, limit, diverged)
        still = (following - z).norm(dim=-1) <= tolerance * (1 + z.norm(dim=-1))
        reached = torch.where(still & (reached == steps) & ~diverged, number + 1, reached)
        z = following
        if number % _BLOCK == _BLOCK - 1 and bool((diverged | (reached < steps)).all()) and number > 4 * _BLOCK:
            break  # all stand still or are gone
    orbit = z.new_empty(2 * longest_period + 1, *z.shape)  # (time, start, size)
    orbit[0] = z
    for number in range(2 * longest_period):
        orbit[number + 1], diverged = _kept(g(orbit[number]), orbit[number], limit, diverged)
    some = max(1, _TOGETHER // orbit[:, 0].numel())  # starts at once
    period = torch.cat([_period(part, tolerance, longest_period) for part in orbit.split(some, dim=1)])
    return Iteration(orbit[-1].clone(), torch.where(diverged, 0, period), diverged, reached)


def _period(orbit: Tensor, tolerance: float, longest: int) -> Tensor:
    """Of each start, the least after which all of the orbit is where it was; 0 where none is."""
    scale = tolerance * (1 + orbit.norm(dim=-1).amax(dim=0)) * _LOOSE
    period = torch.zeros(orbit.shape[1], dtype=torch.long, device=orbit.device)
    for p in range(longest, 0, -1):
        apart = (orbit[p:] - orbit[:-p]).norm(dim=-1).amax(dim=0)
        period = torch.where(apart <= scale, p, period)
    return period


def _kept(following: Tensor, z: Tensor, limit: Tensor, diverged: Tensor) -> tuple[Tensor, Tensor]:
    """A start that has gone out of bounds stays where it was last seen."""
    size = following.norm(dim=-1)
    diverged = diverged | ~(size <= limit)  # not finite compares false
    return torch.where(diverged.unsqueeze(-1), z, following), diverged


@torch.no_grad()
def attractors_of(g: Map, found: Iteration, tolerance: float) -> tuple[list[Tensor], list[int], Tensor]:
    """Distinct cycles, each by its lexicographically smallest state, their periods, and each start's cycle or −1."""
    rows = torch.nonzero(found.period > 0).flatten().tolist()
    member = torch.full((len(found.z),), -1)
    if not rows:
        return [], [], member
    longest = int(found.period.max())
    orbit = [found.z]
    for _ in range(longest - 1):
        orbit.append(g(orbit[-1]))
    states = torch.stack(orbit).cpu()
    near = tolerance * _LOOSE * 10
    points: list[Tensor] = []
    periods: list[int] = []
    lengths = found.period.cpu()
    for row in rows:
        if member[row] >= 0:
            continue
        period = int(lengths[row])
        point = min(states[:period, row], key=lambda state: state.tolist())
        left = torch.nonzero((lengths == period) & (member < 0)).flatten()
        apart = torch.stack([(states[step, left] - point).norm(dim=-1) for step in range(period)]).amin(0)
        member[left[apart <= near * (1 + point.norm())]] = len(points)
        member[row] = len(points)
        points.append(point)
        periods.append(period)
    return [point.to(found.z.device) for point in points], periods, member


def tangent(g: Map, z: Tensor, vector: Tensor) -> tuple[Tensor, Tensor]:
    """g(z) and its derivative along the vector; by central differences where g has no forward derivative."""
    try:
        value, slope = torch.func.jvp(g, (z,), (vector,))  # pyright: ignore[reportAssignmentType]
    except (RuntimeError, NotImplementedError):
        with torch.no_grad():
            step = 1e-6 * (1 + z.norm(dim=-1, keepdim=True)) / math.sqrt(z.shape[-1])
            value, slope = g(z), (g(z + step * vector) - g(z - step * vector)) / (2 * step)
    return value.detach(), slope.detach()


def jacobian(g: Map, z: Tensor) -> Tensor:
    """(start, row, column): one forward derivative per column, all starts at once."""
    axes = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    return torch.stack([tangent(g, z, axis.expand_as(z))[1] for axis in axes], dim=-1)
