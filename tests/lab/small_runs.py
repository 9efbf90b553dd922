"""Training that takes half a second, nets that misbehave, and what to ask of the store afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from theodolite.bench.learn import learn
from theodolite.lab.cell import Row

# Two members solve it early, two never do: rows come in the middle of the group and at its end.
MLP: dict[str, Any] = {
    "net": "mlp",
    "task": "parity",
    "seeds": 2,
    "lr": [2e-2, 1e-6],
    "steps": 200,
    "every": 20,
    "batch": 16,
    "rows": 2,
    "shape": {"width": 8},
    "task_args": {"bits": 4, "relevant": 2},
    "chunk": 2,
    "save_every": 0.0,
}
RNN: dict[str, Any] = {
    **MLP,
    "net": "rnn",
    "task": "parity-check",
    "steps": 60,
    "shape": {"width": 4},
    "task_args": {"longest": 4},
    "unseen": "6,8",
}

# A user's net that is fine until something happens: `{}` is what happens in its forward, which counts calls to train.
NET = """
import multiprocessing, os, signal, torch
from torch import nn

class Net(nn.Module):
    def __init__(self, features, outputs, width=4):
        super().__init__()
        self.inner, self.outer = nn.Linear(features, width), nn.Linear(width, outputs)
        self.calls = 0

    def forward(self, x):
        self.calls += self.training
        {}
        return self.outer(torch.tanh(self.inner(x)))
"""
HARMLESS = "pass"


def held(gate: Path, calls: int = 120, pause: float | None = None) -> str:
    """What happens in a net that trains no further before the file `gate` is there, so that no run of it ends before.

    With a `pause` it goes on, but so slowly that a run has minutes left, and still hears that it shall stop.
    """
    word = "while" if pause is None else "if"
    wait = f"__import__('time').sleep({pause or 0.01})"
    return f"{word} self.calls > {calls} and not os.path.exists({str(gate)!r}): {wait}"


def net_file(folder: Path, happens: str = HARMLESS, name: str = "net.py") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(NET.format(happens))
    return f"{folder / name}:Net"


def rows_of(run: dict[str, Any], folder: Path, **changed: Any) -> dict[str, Row]:
    """By key: what an undisturbed run gives, in a folder of its own."""
    return keyed(learn(**{**run, **changed}, out=folder).rows)


def keyed(rows: Iterable[Row]) -> dict[str, Row]:
    return {row.cell.key: row for row in rows}


def asked(folder: Path, question: str) -> list[tuple[Any, ...]]:
    """Straight from the file, without our own store."""
    with sqlite3.connect(f"file:{folder / 'store.db'}?mode=ro", uri=True, timeout=30) as db:
        found = db.execute(question).fetchall()
    db.close()
    return found


def open_groups(folder: Path) -> list[tuple[Any, ...]]:
    """(step, checkpoint, owner) of every group that is not done."""
    return asked(folder, "SELECT step, checkpoint, owner FROM groups ORDER BY number")


def checkpoints(folder: Path) -> list[str]:
    return sorted(file.name for file in (folder / "checkpoints").iterdir())
