"""How long an experiment will take: a few steps of the shallowest and the deepest shape of every size are timed."""

from __future__ import annotations

from collections.abc import Container
from itertools import groupby

import torch

from theodolite.lab.cell import Cell
from theodolite.lab.condition import condition
from theodolite.scaling.experiment import Planned
from theodolite.scaling.shapes import SizedShape
from theodolite.training.optimiser import Rule
from theodolite.training.precision import check_precision, multiplying
from theodolite.training.program import Batching
from theodolite.training.trial import member_steps, try_sizes

_SECONDS = 0.1  # per chunk that is tried


def estimated_seconds(planned: Planned, finished: Container[str], device: torch.device) -> float:
    """Of training what is not finished, without evaluation and compiling, in one process. Between two depths of a size
    the time of a step is taken to grow evenly."""
    left = [cell for cell in planned.cells if cell.key not in finished]
    shape_of = lambda cell: planned.shapes[cell.key]
    left.sort(key=lambda cell: (shape_of(cell).size, shape_of(cell).depth))
    total = 0.0
    for size, cells in groupby(left, lambda cell: shape_of(cell).size):
        own = list(cells)
        ends = [own[0], own[-1]]
        members = sum(shape_of(cell) == shape_of(own[0]) for cell in own)
        spent = {shape_of(cell).depth: _seconds(planned, cell, members, device) for cell in ends}
        steps = planned.experiment.steps(size)
        total += sum(steps * _between(spent, shape_of(cell)) for cell in own)
    return total


def _seconds(planned: Planned, cell: Cell, members: int, device: torch.device) -> float:
    """Of one step of one member, many at once."""
    _, pairing = planned.training.conditions[condition(cell.config)]
    batch, chunk = planned.experiment.batch, planned.chunk(device)
    with multiplying(check_precision(planned.experiment.precision, str(device)), device):
        if chunk is not None:
            together = Batching(min(chunk, members), batched=True, graphs=True)
            return 1 / member_steps(pairing, Rule(), batch, together, device, _SECONDS)
        trial = try_sizes(pairing, Rule(), batch, members, device, _SECONDS)
    return 1 / trial.rate(trial.best_size(members, graphs=device.type == "cuda"))


def _between(spent: dict[int, float], shape: SizedShape) -> float:
    low, high = min(spent), max(spent)
    share = 0.0 if low == high else (shape.depth - low) / (high - low)
    return spent[low] + share * (spent[high] - spent[low])
