"""Which training cells belong together; kept apart from the training itself, so that reading results needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.lab.cell import Cell
from theodolite.measurement import canonical

TRAINING = "training"  # the measure of a cell that `learn` runs


def condition(config: Mapping[str, Any]) -> str:
    """What members of one group have in common: everything but seed and rates."""
    return canonical({k: v for k, v in config.items() if k not in ("seed", "lr", "weight_decay")})


def lineage(cell: Cell) -> Cell:
    """What a training is, however long: where its schedule `grows`, the cell without its number of steps.

    Draws follow from it, so that a longer training of the same lineage begins with the steps of a shorter one.
    """
    schedule = cell.config.get("schedule", {})
    if not schedule.get("grows"):
        return cell
    without = {name: value for name, value in schedule.items() if name != "steps"}
    return Cell(cell.measure, {**cell.config, "schedule": without})
