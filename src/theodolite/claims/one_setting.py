"""Transformers that differ in one setting of their shape, trained alike at full size: what P8 and S8 compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.claims.comparing import members, trained
from theodolite.claims.full_size import MEMBERS
from theodolite.claims.tables.trained import LOOK
from theodolite.lab.cell import Cell, Row

MARGIN = 0.05  # of mean accuracy
TASKS: dict[str, dict[str, Any]] = {
    "dyck": {"depth": 3, "longest": 8},
    "copy": {"symbols": 3, "longest": 4},
    "recall": {"keys": 8, "values": 4, "shortest": 2, "longest": 3},
    "even-pairs": {"longest": 6},
}
_SHAPE = {"width": 16, "depth": 2, "heads": 2}
_RATE, _SEEDS = 3e-3, range(200, 200 + MEMBERS)  # none that an earlier run looked at
_SCHEDULE: dict[str, Any] = {"batch": 32, "every": LOOK, "rows": 32, "to_the_end": True, "grows": True}


@dataclass(frozen=True)
class OneSetting:
    """`net` with each of the `values` of a setting, on these `tasks`."""

    net: str
    setting: str
    values: tuple[str, ...]
    tasks: dict[str, dict[str, Any]]

    def cells(self, tasks: Sequence[str], steps: int) -> list[Cell]:
        return [
            cell
            for task in tasks
            for value in self.values
            for cell in trained(
                self.net,
                {**_SHAPE, self.setting: value},
                task,
                self.tasks[task],
                _SEEDS,
                _RATE,
                steps=steps,
                **_SCHEDULE,
            )
        ]

    def members(self, rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
        """By task and value."""
        return members(rows, lambda config: (config["task"], config["shape"][self.setting]))
