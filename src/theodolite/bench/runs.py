"""`runs`: the members that earlier commands trained, filtered, put together and handed to other tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.bench.columns import flat
from theodolite.bench.selection import choose
from theodolite.lab.cell import Row
from theodolite.lab.store.store import Store
from theodolite.lab.store.trained import Tell, Trained
from theodolite.notebook import Shown

if TYPE_CHECKING:
    import pandas


class Runs(Shown):
    """Finished members: how many, what they come to, and each of them where that is asked for.

    `summary` has one entry per net × task.
    """

    def __init__(self, members: int, summary: list[dict[str, Any]], read: Callable[[], Sequence[Row]]) -> None:
        self.members, self.summary, self._read = members, summary, read

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """In the order of finishing; read from the store when they are first asked for."""
        return tuple(self._read())

    @property
    def table(self) -> list[dict[str, Any]]:
        """One entry per member, plain values only."""
        return [flat(row) for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """One line per member; needs the extra `data`."""
        from theodolite.bench.frames import frame

        return frame(self.table)

    def to_csv(self) -> str:
        """A header and one line per member."""
        from theodolite.bench.frames import csv_text

        return csv_text(self.table)

    def to_json(self) -> dict[str, Any]:
        return {"summary": self.summary, "members": self.table}

    def export(self, format: str, folder: str | Path) -> int:
        """Every member as a run of `tensorboard`, `wandb` (offline) or `mlflow`, by their own libraries; how many were
        not there before."""
        from theodolite.bench.export import export

        return export(self.rows, format, folder)


def runs(
    out: str | Path = "runs",
    *,
    net: str | None = None,
    task: str | None = None,
    status: str | None = None,
    where: Mapping[str, Any] | None = None,
    tell: Tell | None = None,
) -> Runs:
    """The trained members of a store.

    Parameters:
        out: folder of the store that `learn` wrote to
        net: only these nets, with commas between them
        task: only these tasks, likewise
        status: only members that are solved, unsolved or diverged
        where: values of columns of the table or of entries of shape, task_args, schedule and optimiser: {"lr": 0.001,
            "width": 16}. Names that no member has are refused, since they are misspelt
        tell: is told (rows, of so many) while a store of an older version is brought up to date, once

    Examples:
        >>> import tempfile
        >>> from theodolite.bench.learn import learn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained = learn("mlp", "majority", seeds=3, lr=[1e-2, 1e-4], steps=9, task_args={"bits": 5}, out=folder)
        ...     runs(folder, where={"lr": 1e-2}).members
        3
    """
    with Trained(out, tell=tell) as trained:
        chosen = choose(trained, net, task, status, where)
        summary, upto, known = chosen.summary(), trained.upto, chosen.rows

    def read() -> list[Row]:
        if known is not None:
            return [row for _, row in known]
        with Trained(out, tell=tell) as again:  # a row that is there is never changed
            return choose(again, net, task, status, where).read(upto=upto)

    return Runs(chosen.count, summary, read)


def failures(out: str | Path = "runs") -> list[dict[str, Any]]:
    """What could not be run, oldest first: time, group, cells, sentence, traceback, retried, host, pid."""
    with Store(out, read_only=True) as store:
        return store.failures()
