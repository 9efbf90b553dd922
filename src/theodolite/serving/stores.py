"""Reads stores while commands write to them, and never writes itself."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from theodolite.errors import StoreError
from theodolite.lab.store.trained import Trained
from theodolite.serving.calculator import Busy
from theodolite.serving.folder import STORE, Folder

T = TypeVar("T")
_TRIES = 5
_KEPT = 4  # stores of an older version whose digest is held in memory

Stamp = tuple[tuple[int, int, int] | None, ...]


class Stores:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._asides: OrderedDict[Path, sqlite3.Connection] = OrderedDict()
        self._locks: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def stamp(self, below: str) -> Stamp:
        """Another whenever the store is."""
        file = self._folder.file(below, STORE)
        return tuple(_seen(file.with_name(file.name + suffix)) for suffix in ("", "-wal"))

    def read(self, below: str, answer: Callable[[Trained], T]) -> T:
        """An answer from a store. One that no command has open is read as it lies there, without a lock, which would be
        a file: if a command begins to write meanwhile, what was read may be of two moments, or look damaged, and is
        read again."""
        for _ in range(_TRIES):
            before = self.stamp(below)
            try:
                with self.open(below) as trained:
                    found = answer(trained)
            except StoreError:
                if self.stamp(below) == before:
                    raise
                continue
            if before[1] is not None or self.stamp(below) == before:
                return found
        raise Busy("the store is being written: ask again in a moment")

    @contextmanager
    def open(self, below: str) -> Iterator[Trained]:
        """The trained members of a store, as they are now. One that an older version wrote is read once and then held
        in memory: those who ask for it meanwhile wait for that."""
        place = self._folder.file(below, STORE).parent
        with self._lock:
            own = self._locks.setdefault(place, threading.Lock())
        with own:
            trained = Trained(place, read_only=True, aside=self._asides.get(place))
            self._keep(place, trained.aside)
            if trained.aside is not None:  # one connection, which one thread uses at a time
                with trained:
                    yield trained
                return
        with trained:
            yield trained

    def _keep(self, place: Path, aside: sqlite3.Connection | None) -> None:
        with self._lock:
            self._asides.pop(place, None)
            if aside is not None:
                self._asides[place] = aside
            while len(self._asides) > _KEPT:
                self._asides.popitem(last=False)


def _seen(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
