"""How many points the ranks of a comparison may take so that it stays below about a minute, from the nets' sizes.

Nothing is timed: the same command takes the same points on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from theodolite.errors import BadInput
from theodolite.instruments.degree.equal_budget import Design
from theodolite.instruments.rank.exact import SURPLUS

MAX_POINTS = 2048
_WORK = {"cpu": 4e10, "cuda": 4e12}  # multiplications of a whole comparison: below a minute on one core, on an H200
_ENTRY = 16  # multiplications that reducing one entry of a layer modulo a prime is worth
_FEWEST = 16  # points that are worth a look


def affordable_points(designs: Sequence[Design], device: torch.device) -> list[int]:
    """Most points for each design. Ranks that a cap holds within the usual points come first; the others share what is
    left."""
    if not designs:
        return []
    work, costs = _WORK.get(device.type, _WORK["cpu"]), [_cost(design) for design in designs]
    needs = [_need(design) for design in designs]
    closed = sum(cost * need**2 for cost, need in zip(costs, needs, strict=True) if need <= MAX_POINTS)
    first = closed <= work * 3 / 4
    sharing = [not first or need > MAX_POINTS for need in needs]
    left = work - closed if first else work
    total = sum(cost for cost, shares in zip(costs, sharing, strict=True) if shares)
    share = min(MAX_POINTS, math.isqrt(int(left / total))) if total else MAX_POINTS
    if share < _FEWEST:
        largest = max(design.parameters for design in designs)
        raise BadInput(
            f"exact ranks of {len(designs)} networks of up to {largest:,} parameters take too long: use a smaller "
            "--width or --budget, or say with --max-points how many points to take all the same"
        )
    return [share if shares else MAX_POINTS for shares in sharing]


def _cost(design: Design) -> float:
    """Multiplications for one pair of points."""
    entries = design.family.width * sum(design.degrees)
    return design.family.shape.get("tokens", 1) * (design.parameters + _ENTRY * entries)


def _need(design: Design) -> float:
    cap = design.cap
    return math.inf if cap is None else cap + SURPLUS
