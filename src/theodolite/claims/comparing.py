"""Trained members side by side: their cells and their scores."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from theodolite.bench.plan import training_cells
from theodolite.lab.cell import Cell, Row
from theodolite.tasks.contract import make_task
from theodolite.training.group import Schedule

Name = TypeVar("Name", bound=Hashable)


def trained(
    net: str,
    shape: Mapping[str, Any],
    task: str,
    task_args: Mapping[str, Any],
    seeds: int | range,
    rate: float,
    **schedule: Any,
) -> tuple[Cell, ...]:
    """Members of a net, one per seed; `schedule` are fields of `Schedule`."""
    return training_cells(net, make_task(task, task_args), Schedule(**schedule), [rate], seeds, shape)


def members(rows: Sequence[Row], name: Callable[[Mapping[str, Any]], Name]) -> dict[Name, list[Row]]:
    """The rows of trained members by what `name` makes of their configurations."""
    found: dict[Name, list[Row]] = {}
    for row in rows:
        found.setdefault(name(row.cell.config), []).append(row)
    return found


def scores(rows: Sequence[Row], field: str) -> list[float]:
    """One per member; one that diverged has 0."""
    return [row[field] or 0.0 for row in rows]
