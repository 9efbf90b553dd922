"""Members as `learn` stores them, without training: rows made by hand, and a store that holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store


def member(
    net: str = "lstm",
    task: str = "parity-check",
    seed: int = 0,
    accuracy: float | None = 0.8,
    unseen: float | None = 0.6,
    solved_at: int | None = None,
    lr: float = 1e-3,
    shape: dict[str, Any] | None = None,
    task_args: dict[str, Any] | None = None,
    schedule: dict[str, Any] | None = None,
    optimiser: dict[str, Any] | None = None,
    **config: Any,
) -> Row:
    """Solved where `solved_at` says when, diverged where it has no accuracy."""
    settings = {
        "net": net,
        "net_version": 1,
        "source": None,
        "shape": {"width": 16, "depth": 1} if shape is None else shape,
        "task": task,
        "task_version": 1,
        "task_args": {"shortest": 1, "longest": 40} if task_args is None else task_args,
        "optimiser": {"name": "adamw", "momentum": 0.9, "betas": [0.9, 0.999], "clip": 1.0} | (optimiser or {}),
        "schedule": {"steps": 2000, "batch": 64, "every": 40, "rows": 32, "unseen": [50, 200], "to_the_end": False}
        | (schedule or {}),
        "seed": seed,
        "lr": lr,
        "weight_decay": 0.0,
    }
    diverged = accuracy is None
    scores = [(1, 1.0), (40, accuracy), (50, unseen), (200, unseen)]
    result = {
        "status": "diverged" if diverged else "unsolved" if solved_at is None else "solved",
        "score": "accuracy",
        "accuracy": accuracy,
        "unseen": None if diverged else unseen,
        "by_length": [] if diverged else [[length, score] for length, score in scores if score is not None],
        "chance": 0.5,
        "threshold": 0.99,
        "steps": 2000 if solved_at is None else solved_at,
        "solved_at": solved_at,
        "curve": [],
        "parameters": 1378,
        "state_size": {"size": 32, "growth_per_token": 0.0},
    }
    facts = {"seconds": 1.5, "device": "cpu", "batching": "ensemble of 8", "provenance": {"version": "1.0"}}
    return Row(Cell(TRAINING, settings | config), result, None, facts)


def stored(folder: Path, rows: list[Row]) -> Path:
    """A store with these rows, finished in this order."""
    cells = [row.cell for row in rows]
    with Store(folder) as store:
        store.plan(cells, lambda free: [Group.of(free)])
        group = store.claim([cell.key for cell in cells])
        assert group is not None
        store.record(group, rows, done=True)
    return folder
