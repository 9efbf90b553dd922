"""Reads stores while commands write to them: what was read is not read again, and what is new joins it."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite.lab.cell import Row
from theodolite.lab.condition import TRAINING, condition
from theodolite.lab.store.store import Store
from theodolite.serving.folder import STORE, Folder

_KEPT = 4  # stores held in memory
_TRIES = 3

Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass
class Reading:
    """The trained members of a store as of `stamp`, which changes whenever the store does. `groups` has them by what
    all but their seeds and rates say, under a short name; `lines` is for what is computed of a group of so many."""

    stamp: Stamp
    rows: list[Row] = field(default_factory=list)
    groups: dict[str, list[Row]] = field(default_factory=dict)
    group_of: dict[int, str] = field(default_factory=dict)  # by the row's place in memory: it is held here
    lines: dict[tuple[str, int], Any] = field(default_factory=dict)
    newest: int = 0

    def grouped(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        """Some of the rows, by group."""
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(self.group_of[id(row)], []).append(row)
        return found

    def joined(self, rows: Sequence[Row], newest: int, stamp: Stamp) -> Reading:
        """With more rows; those who look at this one meanwhile see no change."""
        groups, group_of = {name: list(own) for name, own in self.groups.items()}, dict(self.group_of)
        for row in rows:
            name = hashlib.sha256(condition(row.cell.config).encode()).hexdigest()[:16]
            groups.setdefault(name, []).append(row)
            group_of[id(row)] = name
        lines = {key: line for key, line in self.lines.items() if key[1] == len(groups[key[0]])}
        return Reading(stamp, [*self.rows, *rows], groups, group_of, lines, newest)


class Stores:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: OrderedDict[Path, Reading] = OrderedDict()
        self._locks: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def stamp(self, below: str) -> Stamp:
        file = self._folder.file(below, STORE)
        return tuple(_seen(file.with_name(file.name + suffix)) for suffix in ("", "-wal"))

    def read(self, below: str) -> Reading:
        """Every finished training of a store. One that is being read is waited for, and not read twice."""
        place = self._folder.file(below, STORE).parent
        with self._lock:
            own = self._locks.setdefault(place, threading.Lock())
        with own:
            return self._read(below, place)

    def _read(self, below: str, place: Path) -> Reading:
        stamp, known = self.stamp(below), self._kept.get(place)
        if known is None or known.stamp != stamp:
            known = _joined(known, place, stamp)
            for _ in range(_TRIES):  # a command that began to write meanwhile may have changed what was read
                if (stamp := self.stamp(below)) == known.stamp:
                    break
                known = _joined(known, place, stamp)
        with self._lock:
            self._kept[place] = known
            self._kept.move_to_end(place)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return known


def _joined(known: Reading | None, place: Path, stamp: Stamp) -> Reading:
    """With what is new; from the beginning where the store is another file now, or has gone back."""
    with Store(place, read_only=True) as store:
        if known is not None and known.stamp[0] and stamp[0] and known.stamp[0][0] == stamp[0][0]:
            rows, newest = store.rows_since(known.newest, TRAINING)
            if newest >= known.newest:
                return known.joined([row for row in rows if row.error is None], newest, stamp)
        rows, newest = store.rows_since(0, TRAINING)
    return Reading(stamp).joined([row for row in rows if row.error is None], newest, stamp)


def _seen(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
