"""Reads stores while commands write to them: what has not changed since the last look is not read again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from theodolite.bench.runs import Runs, runs
from theodolite.serving.folder import STORE, Folder

_KEPT = 4  # stores held in memory
_TRIES = 3

Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True)
class Reading:
    """The runs of a store as of `stamp`, which changes whenever the store does."""

    runs: Runs
    stamp: Stamp


class Stores:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: OrderedDict[Path, Reading] = OrderedDict()
        self._lock = threading.Lock()

    def stamp(self, below: str) -> Stamp:
        file = self._folder.file(below, STORE)
        return tuple(_seen(file.with_name(file.name + suffix)) for suffix in ("", "-wal"))

    def read(self, below: str) -> Reading:
        """Every finished training of a store."""
        place = self._folder.file(below, STORE).parent
        stamp = self.stamp(below)
        with self._lock:
            known = self._kept.get(place)
            if known is not None and known.stamp == stamp:
                self._kept.move_to_end(place)
                return known
        found = Reading(runs(place), stamp)
        for _ in range(_TRIES):  # a command that began to write meanwhile may have changed what was read
            if (stamp := self.stamp(below)) == found.stamp:
                break
            found = Reading(runs(place), stamp)
        with self._lock:
            self._kept[place] = found
            self._kept.move_to_end(place)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def _seen(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
