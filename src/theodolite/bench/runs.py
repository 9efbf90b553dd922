"""`runs`: the members that earlier commands trained, filtered, put together and handed to other tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.bench.export import export
from theodolite.bench.frames import csv_text, frame
from theodolite.bench.selection import select
from theodolite.bench.summary import flat, summarise
from theodolite.lab.cell import Row
from theodolite.lab.condition import TRAINING
from theodolite.lab.store.store import Store
from theodolite.notebook import Shown

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Runs(Shown):
    """Finished members, in the order of finishing."""

    rows: tuple[Row, ...]

    @property
    def table(self) -> list[dict[str, Any]]:
        """One entry per member, plain values only."""
        return [flat(row) for row in self.rows]

    @property
    def summary(self) -> list[dict[str, Any]]:
        """One entry per net × task."""
        return summarise(self.rows)

    def to_pandas(self) -> pandas.DataFrame:
        """One line per member; needs the extra `data`."""
        return frame(self.table)

    def to_csv(self) -> str:
        """A header and one line per member."""
        return csv_text(self.table)

    def to_json(self) -> dict[str, Any]:
        return {"summary": self.summary, "members": self.table}

    def export(self, format: str, folder: str | Path) -> int:
        """Every member as a run of `tensorboard`, `wandb` (offline) or `mlflow`, by their own libraries; how many were
        not there before."""
        return export(self.rows, format, folder)


def runs(
    out: str | Path = "runs",
    *,
    net: str | None = None,
    task: str | None = None,
    status: str | None = None,
    where: Mapping[str, Any] | None = None,
) -> Runs:
    """The trained members of a store.

    Parameters:
        out: folder of the store that `learn` wrote to
        net: only these nets, with commas between them
        task: only these tasks, likewise
        status: only members that are solved, unsolved or diverged
        where: values of columns of the table or of entries of shape, task_args, schedule and optimiser: {"lr": 0.001,
            "width": 16}. Names that no member has are refused, since they are misspelt

    Examples:
        >>> import tempfile
        >>> from theodolite.bench.learn import learn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained = learn("mlp", "majority", seeds=3, lr=[1e-2, 1e-4], steps=9, task_args={"bits": 5}, out=folder)
        ...     len(runs(folder, where={"lr": 1e-2}).rows)
        3
    """
    return Runs(tuple(select(trained(out), net, task, status, where)))


def trained(out: str | Path) -> list[Row]:
    """Every finished training row of a store, which must be there."""
    with Store(out, read_only=True) as store:
        return [row for row in store.rows(TRAINING) if row.error is None]


def failures(out: str | Path = "runs") -> list[dict[str, Any]]:
    """What could not be run, oldest first: time, group, cells, sentence, traceback, retried, host, pid."""
    with Store(out, read_only=True) as store:
        return store.failures()
