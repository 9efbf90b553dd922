"""Learning curves for TensorBoard, as they are measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from theodolite.bench.export import run_name, summary_writer
from theodolite.errors import BadInput
from theodolite.lab.campaign import Listener
from theodolite.lab.group import Group
from theodolite.lab.work import Update


class Board:
    """A folder of event files, one run per member, named by net, task, rates and seed."""

    def __init__(self, folder: str | Path) -> None:
        self._make = summary_writer()
        self._folder = Path(folder)
        self._writers: dict[str, Any] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"the folder '{folder}' cannot be made ({error.strerror}): choose another") from error

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.close()

    def listening(self, listener: Listener) -> Listener:
        """The same listener, and we hear updates too."""

        def update(group: Group, news: Update) -> None:
            self._write(group, news)
            listener.update(group, news)

        return replace(listener, update=update)

    def _write(self, group: Group, news: Update) -> None:
        cells = {cell.key: cell.config for cell in group.cells}
        for look in news.looks:
            writer = self._writer(look.key, cells[look.key])
            writer.add_scalar("accuracy", look.score, look.step)
            if look.loss is not None:
                writer.add_scalar("loss", look.loss, look.step)
        for row in news.rows:  # a file that is open for every member of a long run would be too many
            if writer := self._writers.pop(row.cell.key, None):
                writer.close()

    def _writer(self, key: str, config: Any) -> Any:
        if key not in self._writers:
            self._writers[key] = self._make(str(self._folder / run_name(key, config)))
        return self._writers[key]
