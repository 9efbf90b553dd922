"""Cells, groups and rows for the tests of the store, and a crash that happens inside this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from theodolite.lab.cell import Cell, Row
from theodolite.lab.group import Group
from theodolite.lab.store import owner
from theodolite.lab.store.store import Store


def cells_of(count: int, start: int = 0) -> list[Cell]:
    return [Cell("learn", {"net": "lstm", "seed": seed}) for seed in range(start, start + count)]


def by(size: int, **how: object) -> Callable[[list[Cell]], list[Group]]:
    return lambda free: [Group.of(free[i : i + size], how) for i in range(0, len(free), size)]


def keys_of(cells: list[Cell] | tuple[Cell, ...]) -> list[str]:
    return [cell.key for cell in cells]


def row(cell: Cell, value: object = 1) -> Row:
    return Row(cell, {"value": value})


def leave_a_checkpoint(opened: Store, group: Group, step: int, age: float = 0) -> str:
    name = group.checkpoint_name(step)
    (opened.checkpoints / name).write_text(f"state at {step}")
    os.utime(opened.checkpoints / name, (time.time() - age,) * 2)
    return name


def crash(opened: Store) -> None:
    """What kill -9 leaves of a store: nothing is released, and its owner is not there any more."""
    opened._leave.detach()
    owner._open_here.discard(opened._owner.token)
    opened._database.close()


def one_finished(folder: Path) -> Cell:
    cell = cells_of(1)[0]
    with Store(folder) as made:
        made.plan([cell], by(1))
        made.record(made.claim([cell.key]), [row(cell)], done=True)
    return cell
