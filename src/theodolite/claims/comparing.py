"""Trained members side by side: their cells and their scores."""

from __future__ import annotations

from typing import Any

from theodolite.lab.cell import Cell, Row


def trained(
    net: str, shape: dict[str, Any], task: str, task_args: dict[str, Any], seeds: int, rate: float, **schedule: Any
) -> Cell:
    """Members of a registered net, one per seed."""
    return Cell("trained-members", {"net": net, **training(shape, task, task_args, seeds, rate, **schedule)})


def training(
    shape: dict[str, Any], task: str, task_args: dict[str, Any], seeds: int, rate: float, **schedule: Any
) -> dict[str, Any]:
    """What such a cell says besides the net."""
    return {
        "shape": shape,
        "task": task,
        "task_args": task_args,
        "seeds": seeds,
        "rates": [rate],
        "schedule": schedule,
    }


def scores(row: Row, field: str) -> list[float]:
    """One per seed; a member that diverged has 0."""
    return [m[field] or 0.0 for m in row["members"]]
