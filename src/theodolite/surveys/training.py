"""The training cells that sections plan alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.bench.plan import plan_training
from theodolite.errors import NotApplicable
from theodolite.lab.cell import Cell
from theodolite.surveys.candidate import Candidate
from theodolite.tasks.contract import Task
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.session import Schedule


def training_cells(
    net: Candidate, task: Task, schedule: Schedule, rates: Sequence[float], seeds: int, shape: Mapping[str, Any]
) -> tuple[Cell, ...]:
    """One cell per seed and rate; `NotApplicable` with the reason where net and task do not fit."""
    plan = plan_training(
        net.net,
        task,
        schedule=schedule,
        rule=Rule(),
        rates=[Rates(rate, 0.0) for rate in rates],
        seeds=range(seeds),
        shape=shape,
    )
    if plan.skipped:
        raise NotApplicable(plan.skipped[0])
    return plan.cells
