"""The store: which cells are finished, which groups are open, and who runs them. Several commands may share one."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from theodolite.errors import ClaimLost, StoreError
from theodolite.lab.cell import Cell, Row
from theodolite.lab.group import CHECKPOINT, Group
from theodolite.lab.store.database import Database
from theodolite.lab.store.digest import take_in
from theodolite.lab.store.entries import AMONG, ROWS, Found, cell_of, decoded, listed, rows_of
from theodolite.lab.store.owner import Owner
from theodolite.measurement import finite

logger = logging.getLogger(__name__)

LEFTOVER = 60.0  # seconds: a checkpoint that nobody refers to may still be on its way into the store
# Also the unfinished files that `write_checkpoint` and the library below it rename.
OURS = re.compile(rf"{CHECKPOINT}|\.{CHECKPOINT}\.\w+|\.tmp\w{{6}}")

TAKEN_IN = 1000  # rows of an older version or program that a record takes into the digest beside its own
UNFINISHED = "NOT EXISTS (SELECT 1 FROM rows WHERE rows.key = members.key)"
WANTED = f"EXISTS (SELECT 1 FROM members WHERE members.number = groups.number AND {UNFINISHED} AND key IN {AMONG})"
UNWANTED = WANTED.replace("key IN", "key NOT IN")


class Store:
    """A folder with `store.db` and `checkpoints/`, on a local disk.

    A command plans its cells, claims groups until there is none, and records rows as they finish. When `claim` gives
    None while cells are unfinished, another command holds them (`waiting_for`) or gave them up: plan again.

    The file may come from anywhere, so what it says of a cell counts only if the cell's key follows from it. `refused`:
    by key, why the store's entry of a cell is not used; it stays as it is. `read_only`: nothing in the folder changes.
    """

    def __init__(
        self, folder: str | Path, *, must_exist: bool = False, read_only: bool = False, timeout: float = 30.0
    ) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "store.db"
        self.checkpoints = self.folder / "checkpoints"
        self._database = Database(self.path, must_exist=must_exist, read_only=read_only, timeout=timeout)
        if not self._database.read_only:
            try:
                self.checkpoints.mkdir(exist_ok=True)
            except OSError as error:
                self._database.close()
                raise StoreError(
                    f"the folder '{self.checkpoints}' cannot be made ({error.strerror}): choose another folder"
                ) from error
        self.refused: dict[str, str] = {}
        self._owner = Owner.here()
        # Also when the store is dropped unclosed, or at the end of the process: what it claimed is free at once. The
        # wait is short because the collector may find us inside another store's transaction.
        self._leave = weakref.finalize(self, _leave, self._database, self._owner, 1.0)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release every claim and close the file; the store cannot be used afterwards."""
        if self._leave.detach() is not None:
            _leave(self._database, self._owner, self._database.timeout)

    # Finished cells

    def finished(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows of those of these cells that are finished."""
        with self._database.reading() as db:
            found = db.execute(f"{ROWS} WHERE key IN {AMONG} ORDER BY number", (listed(keys),)).fetchall()
        return {row.cell.key: row for row in self._rows(found)}

    def rows(self, measure: str | None = None) -> list[Row]:
        """Every finished row, in the order of finishing."""
        return self.rows_since(0, measure)[0]

    def rows_since(self, number: int, measure: str | None = None) -> tuple[list[Row], int]:
        """Those finished after the row of this number, and the number of the newest: what a next look begins with."""
        with self._database.reading() as db:
            condition = "WHERE number > ? AND (? IS NULL OR measure = ?)"
            found = db.execute(f"{ROWS} {condition} ORDER BY number", (number, measure, measure)).fetchall()
            (newest,) = db.execute("SELECT coalesce(max(number), 0) FROM rows").fetchone()
        return self._rows(found), newest

    # Groups

    def plan(self, cells: Sequence[Cell], make: Callable[[list[Cell]], list[Group]]) -> None:
        """Put every cell that is neither finished nor in an open group into a group; `make` says which, and is pure.

        An open group that nobody owns and that never began is dissolved where it would run more than these cells;
        one that began is finished as it was begun.
        """
        wanted = {cell.key: cell for cell in cells}
        keys = listed(wanted)
        with self._database.writing() as db:
            self._bury(db)
            db.execute(
                "DELETE FROM groups WHERE owner IS NULL AND checkpoint IS NULL AND step = 0 "
                f"AND {WANTED} AND {UNWANTED}",
                (keys, keys),
            )
            taken = {
                key
                for table in ("rows", "members")
                for (key,) in db.execute(f"SELECT key FROM {table} WHERE key IN {AMONG}", (keys,))
            }
            free = [cell for key, cell in wanted.items() if key not in taken]
            if free:
                groups = make(free)
                if sorted(cell.key for group in groups for cell in group.cells) != sorted(wanted.keys() - taken):
                    raise ValueError("the groups of a plan must hold every cell they are made of once, and no other")
                for group in groups:
                    _insert(db, group)

    def claim(self, keys: Collection[str], refuse: Callable[[Group], str | None] = lambda group: None) -> Group | None:
        """The next open group with an unfinished cell of these that no living command owns; it is ours from now on.

        One that is not what its name says, or that `refuse` gives a reason against, stays open.
        """
        with self._database.writing() as db:
            self._bury(db)
            while found := db.execute(
                f"SELECT number FROM groups WHERE owner IS NULL AND {WANTED} ORDER BY number LIMIT 1",
                (listed(key for key in keys if key not in self.refused),),
            ).fetchone():
                (number,) = found
                members = self._members(db, number)
                group = self._group(db, number, [cell for _, cell in members])
                reason = self._changed("open group") if group is None else refuse(group)
                if group is not None and reason is None:
                    self._own(db, number)
                    return group
                self._refuse([key for key, _ in members], str(reason))
        return None

    def record(
        self,
        group: Group,
        finished: Sequence[Row] = (),
        step: int | None = None,
        checkpoint: str | None = None,
        done: bool = False,
    ) -> None:
        """All of this at once or not at all; the checkpoint it replaces is deleted. A finished cell keeps its row."""
        now = _now()
        rows = [
            (row.cell.key, _encoded(row.result), _encoded(row.error), _encoded({"finished": now, **row.facts}))
            for row in finished
        ]
        with self._database.writing() as db:
            number, replaced = self._ours(db, group)
            members = {key for (key,) in db.execute("SELECT key FROM members WHERE number = ?", (number,))}
            if strange := [key for key, *_ in rows if key not in members]:
                raise ValueError(f"cell {strange[0]} is not of group {group.id}")
            if checkpoint is not None and not _is_file_of(self.checkpoints, checkpoint):
                raise StoreError(f"there is no checkpoint '{checkpoint}' in '{self.checkpoints}': write it there first")
            db.executemany(
                "INSERT INTO rows (key, result, error, facts) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING", rows
            )
            if rows:
                self._take_in(db, len(rows))
            db.execute(
                "UPDATE groups SET step = coalesce(?, step), checkpoint = coalesce(?, checkpoint) WHERE number = ?",
                (step, checkpoint, number),
            )
            if done:
                db.execute("DELETE FROM groups WHERE number = ?", (number,))
        self._discard(
            replaced if checkpoint != replaced and (done or checkpoint) else None, checkpoint if done else None
        )

    def release(self, group: Group) -> None:
        """Stop owning it; its checkpoint stays, and any command may go on with it."""
        with self._database.writing() as db:
            db.execute("UPDATE groups SET owner = NULL WHERE id = ? AND owner = ?", (group.id, self._owner.token))

    def fail(self, group: Group, sentence: str, traceback: str, *, key: str | None = None, retry: bool) -> None:
        """Keep a failure (of one cell: `key`). With `retry` we go on owning the group; else it is given up, and a later
        plan may take its unfinished cells again."""
        with self._database.writing() as db:
            number, checkpoint = self._ours(db, group)
            unfinished = db.execute(
                f"SELECT key FROM members WHERE number = ? AND {UNFINISHED} ORDER BY place", (number,)
            )
            cells = [key] if key is not None else [each for (each,) in unfinished]
            owner = self._owner
            db.execute(
                'INSERT INTO failures (time, "group", cells, sentence, traceback, retried, host, pid) '
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    _now(),
                    group.id,
                    _encoded([each[:12] for each in cells]),
                    _plain(sentence),
                    _plain(traceback),
                    retry,
                    owner.host,
                    owner.pid,
                ),
            )
            if retry:
                db.execute("UPDATE groups SET attempts = attempts + 1 WHERE number = ?", (number,))
            else:
                db.execute("DELETE FROM groups WHERE number = ?", (number,))
        self._discard(None if retry else checkpoint)

    def failures(self) -> list[dict[str, Any]]:
        """Every failure, oldest first: time, group, cells (short keys), sentence, traceback, retried, host, pid."""
        names = ("time", "group", "cells", "sentence", "traceback", "retried", "host", "pid")
        with self._database.reading() as db:
            selected = ", ".join(f'"{name}"' for name in names)
            found = [dict(zip(names, values, strict=True)) for values in db.execute(f"SELECT {selected} FROM failures")]
        return [{**one, "cells": decoded(one["cells"], self.path), "retried": bool(one["retried"])} for one in found]

    # Other commands

    def waiting_for(self, keys: Iterable[str]) -> list[str]:
        """Which other commands hold open groups with unfinished cells of these."""
        with self._database.reading() as db:
            holding = {
                token for (token,) in db.execute(f"SELECT DISTINCT owner FROM groups WHERE {WANTED}", (listed(keys),))
            }
            return [
                f"pid {owner.pid} on {owner.host}, last seen {max(silence, 0):.0f} s ago"
                for owner, silence in _owners(db)
                if owner.token in holding and owner != self._owner and not owner.dead(silence)
            ]

    def beat(self) -> None:
        """Say that we are alive; from a thread, every few seconds."""
        with self._database.writing() as db:
            db.execute("UPDATE owners SET seen = ? WHERE token = ?", (time.time(), self._owner.token))

    # Measured choices, and what crashes leave behind

    def trial(self, key: str) -> dict[str, Any] | None:
        """What an earlier command measured under this name."""
        with self._database.reading() as db:
            found = db.execute("SELECT result FROM trials WHERE key = ?", (key,)).fetchone()
        return None if found is None else decoded(found[0], self.path)

    def keep_trial(self, key: str, result: Mapping[str, Any]) -> None:
        """Replaces an older one."""
        with self._database.writing() as db:
            db.execute("INSERT OR REPLACE INTO trials VALUES (?, ?)", (key, _encoded(result)))

    def clean(self) -> None:
        """Delete checkpoints that no open group refers to: ours by name, older than a minute, of no running group."""
        with self._database.writing() as db:  # nobody can begin to refer to one of them meanwhile
            self._bury(db)
            # Left by a command that was killed between its last row and the end of the group; nobody claims it again.
            unfinished = f"SELECT number FROM members WHERE {UNFINISHED}"
            db.execute(f"DELETE FROM groups WHERE owner IS NULL AND number NOT IN ({unfinished})")
            groups = db.execute("SELECT id, checkpoint, owner FROM groups").fetchall()
            kept = {checkpoint for _, checkpoint, _ in groups}
            running = {name for name, _, owner in groups if owner is not None}
            for file in self.checkpoints.iterdir() if self.checkpoints.is_dir() else ():
                if OURS.fullmatch(file.name) and file.name not in kept and file.name.lstrip(".")[:16] not in running:
                    self._discard(file.name, older_than=LEFTOVER)

    # What the methods above share

    def _bury(self, db: sqlite3.Connection) -> None:
        """The groups of dead owners are free again: their `owner` refers to the row that is deleted here."""
        for owner, silence in _owners(db):
            if owner != self._owner and owner.dead(silence):
                logger.info("pid %d on %s is gone: its groups are free", owner.pid, owner.host)
                db.execute("DELETE FROM owners WHERE token = ?", (owner.token,))
        db.execute("UPDATE groups SET owner = NULL WHERE owner NOT IN (SELECT token FROM owners)")

    def _ours(self, db: sqlite3.Connection, group: Group) -> tuple[int, str | None]:
        found = db.execute(
            "SELECT number, checkpoint FROM groups WHERE id = ? AND owner = ?", (group.id, self._owner.token)
        ).fetchone()
        if found is None:
            raise ClaimLost(f"group {group.id} is not held by this command any more: leave it to the one that took it")
        return found

    def _own(self, db: sqlite3.Connection, number: int) -> None:
        owner = self._owner
        db.execute(
            "INSERT INTO owners VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (token) DO UPDATE SET seen = excluded.seen",
            (owner.token, owner.host, owner.place, owner.pid, owner.start, time.time()),
        )
        db.execute("UPDATE groups SET owner = ? WHERE number = ?", (owner.token, number))

    def _members(self, db: sqlite3.Connection, number: int) -> list[tuple[str, Cell | None]]:
        found = db.execute(
            "SELECT key, measure, config FROM members LEFT JOIN cells USING (key) WHERE number = ? ORDER BY place",
            (number,),
        )
        return [(key, cell_of(key, measure, config, self.path)) for key, measure, config in found]

    def _group(self, db: sqlite3.Connection, number: int, cells: Sequence[Cell | None]) -> Group | None:
        """As it was planned; None where it is not what its name says."""
        name, settings, step, checkpoint, attempts = db.execute(
            "SELECT id, settings, step, checkpoint, attempts FROM groups WHERE number = ?", (number,)
        ).fetchone()
        known, settings = [cell for cell in cells if cell is not None], decoded(settings, self.path)
        sound = len(known) == len(cells) and isinstance(settings, dict) and Group.of(known, settings).id == name
        sound &= isinstance(step, int) and isinstance(attempts, int)
        sound &= checkpoint is None or re.fullmatch(CHECKPOINT, str(checkpoint)) is not None
        return Group(name, tuple(known), settings, step, checkpoint, attempts) if sound else None

    def _rows(self, found: Iterable[Found]) -> list[Row]:
        """Those of cells that are what their keys say."""
        refuse = lambda key: self._refuse([key], self._changed("row"))
        return [row for _, row in rows_of(found, self.path, refuse)]

    def _take_in(self, db: sqlite3.Connection, written: int) -> None:
        """What the rows come to; where that is damaged, the rows are kept all the same."""
        db.execute("SAVEPOINT digest")
        try:
            take_in(db, db, TAKEN_IN + written, self.path)
        except StoreError as error:
            db.execute("ROLLBACK TO digest")
            logger.warning("what the rows of '%s' come to could not be kept (%s)", self.path, error)
        db.execute("RELEASE digest")

    def _changed(self, what: str) -> str:
        return f"its {what} in '{self.path}' was changed by another program: choose another folder, or put a copy back"

    def _refuse(self, keys: Sequence[str], reason: str) -> None:
        if any(key not in self.refused for key in keys):
            logger.warning("%d cells (%s …) are left alone: %s", len(keys), keys[0][:12], reason)
        self.refused |= dict.fromkeys(keys, reason)

    def _discard(self, *names: str | None, older_than: float | None = None) -> None:
        """A file that cannot be deleted costs room and nothing else: `clean` tries again."""
        for file in (self.checkpoints / name for name in names if name is not None and OURS.fullmatch(name)):
            try:
                if older_than is None or time.time() - file.stat().st_mtime > older_than:
                    file.unlink(missing_ok=True)
            except FileNotFoundError:
                pass
            except OSError as error:
                logger.warning("the checkpoint '%s' cannot be deleted (%s)", file, error.strerror)


def _leave(database: Database, owner: Owner, wait: float) -> None:
    owner.leave()
    try:
        if not database.read_only:
            database.wait_at_most(wait)
            with database.writing() as db:
                db.execute("DELETE FROM owners WHERE token = ?", (owner.token,))
    except StoreError as error:
        logger.warning("claims could not be released (%s): they are free when this process ends", error)
    with contextlib.suppress(StoreError):
        database.close()


def _owners(db: sqlite3.Connection) -> list[tuple[Owner, float]]:
    """Everyone who owns, with the seconds since each was last heard of."""
    now = time.time()
    found = db.execute("SELECT token, host, place, pid, start, seen FROM owners").fetchall()
    return [(Owner(*who), now - seen) for *who, seen in found]


def _insert(db: sqlite3.Connection, group: Group) -> None:
    number = db.execute(
        "INSERT INTO groups (id, settings) VALUES (?, ?)", (group.id, _encoded(group.settings))
    ).lastrowid
    keys = [cell.key for cell in group.cells]
    db.executemany(
        "INSERT INTO cells VALUES (?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET measure = excluded.measure, config = excluded.config",
        [(key, cell.measure, _encoded(cell.config)) for key, cell in zip(keys, group.cells, strict=True)],
    )
    db.executemany("INSERT INTO members VALUES (?, ?, ?)", [(number, place, key) for place, key in enumerate(keys)])


def _is_file_of(folder: Path, name: str) -> bool:
    return Path(name).name == name and (folder / name).is_file()


def _encoded(value: Any) -> str:
    return json.dumps(finite(value), allow_nan=False)  # ASCII: also text that is not valid Unicode survives


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
