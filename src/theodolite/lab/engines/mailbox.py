"""A folder as a queue between two machines that share a file system: numbered files, whole or not there.

The files are pickles of our own classes, written by this command and its own jobs into a folder that only the user can
open. A network's file system may show a file seconds late; it never shows half of one.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any


class Mailbox:
    """One side puts, the other takes; each counts for itself."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._put = self._taken = 0

    @property
    def waiting(self) -> bool:
        return self._next().exists()

    def put(self, content: Any) -> None:
        target = self._folder / f"{self._put:08d}"
        unfinished = target.with_suffix(".part")
        with unfinished.open("wb") as file:
            pickle.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
        self._put += 1

    def take(self) -> list[Any]:
        """Everything that is there, in order."""
        found = []
        while self.waiting:
            file = self._next()
            found.append(pickle.loads(file.read_bytes()))
            file.unlink()
            self._taken += 1
        return found

    def _next(self) -> Path:
        return self._folder / f"{self._taken:08d}"
