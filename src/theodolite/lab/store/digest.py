"""What the rows of trained members come to, kept beside them: a store of a million is listed without reading them.

`conditions` has what members share (all but seed and rates), `tallies` what they come to by rates and status, exactly,
and `scores` what a comparison of single members needs. `digested` says up to which row: rows are taken in by the order
of their numbers, in the transaction that writes them or in a later one, and so once each. All of it can be made again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theodolite.errors import StoreError
from theodolite.lab.cell import Row
from theodolite.lab.condition import TRAINING, condition
from theodolite.lab.store.database import damaged
from theodolite.lab.store.entries import ROWS, Found, rows_of
from theodolite.lab.store.schema import DIGEST, MIGRATIONS
from theodolite.lab.tally import STATUSES, Member, Tally, plain

# Of a member, as numpy reads them: NaN where there is none.
SCORE = [
    ("number", "<i8"),
    ("seed", "<i8"),
    ("lr", "<f8"),
    ("weight_decay", "<f8"),
    ("accuracy", "<f8"),
    ("unseen", "<f8"),
    ("solved_at", "<f8"),
    ("status", "<i8"),  # its place in STATUSES
]
_PACKED = struct.Struct("<qqdddddq")
_NAN = float("nan")


def tables_aside() -> sqlite3.Connection:
    """The tables in memory, for a store that cannot be written."""
    aside = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for statement in MIGRATIONS[DIGEST - 1]:
        aside.execute(statement)
    return aside


def behind(rows: sqlite3.Connection, digest: sqlite3.Connection) -> int:
    """How many numbers of rows are not taken in yet; all of them where the last that was is another now."""
    (newest,) = rows.execute("SELECT coalesce(max(number), 0) FROM rows").fetchone()
    return newest - (upto(digest)[0] if _continues(rows, digest) else 0)


def take_in(rows: sqlite3.Connection, digest: sqlite3.Connection, most: int, path: Path) -> int:
    """The next rows, at most so many, inside a transaction on `digest`; the number up to which it goes now."""
    if not _continues(rows, digest):
        for table in ("conditions", "tallies", "scores"):
            digest.execute(f"DELETE FROM {table}")
        digest.execute("UPDATE digested SET number = 0, key = NULL, left_out = 0")
    begin, _ = upto(digest)
    found = rows.execute(
        f"SELECT * FROM ({ROWS} WHERE number > ? ORDER BY number LIMIT ?) WHERE measure = ? OR measure IS NULL",
        (begin, most, TRAINING),
    ).fetchall()
    last = rows.execute(
        "SELECT number, key FROM (SELECT number, key FROM rows WHERE number > ? ORDER BY number LIMIT ?) "
        "ORDER BY number DESC LIMIT 1",
        (begin, most),
    ).fetchone()
    if last is None:
        return begin
    adding = _Adding(digest, path)
    for one in found:
        adding.add(one)
    adding.write()
    digest.execute("UPDATE digested SET number = ?, key = ?, left_out = left_out + ?", (*last, adding.left_out))
    return last[0]


class _Adding:
    """Rows on their way into the tables; what they come to is written once for all of them."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db, self._path, self.left_out = db, path, 0
        self._conditions: dict[str, tuple[int, int, int]] = {}  # by name: number, members, seeds
        self._tallies: dict[tuple[int, float, float, str], Tally] = {}

    def add(self, found: Found) -> None:
        """One that is not what its key says, or not as `learn` writes one, is left out and counted."""
        try:
            [(number, row)] = rows_of([found], self._path, lambda key: None)
            if row.error is not None:
                return
            member = Member.of(row)
        except (ValueError, StoreError):
            self.left_out += 1
            return
        name = condition_name(row.cell.config)
        own, members, seeds = self._condition(name, number, row)
        seen = self._db.execute("SELECT 1 FROM scores WHERE condition = ? AND seed = ? LIMIT 1", (own, member.seed))
        self._conditions[name] = (own, members + 1, seeds + (seen.fetchone() is None))
        self._db.execute("INSERT INTO scores VALUES (?, ?, ?, ?)", (own, member.seed, number, _packed(number, member)))
        key = (own, member.lr, member.weight_decay, member.status)
        if key not in self._tallies:
            self._tallies[key] = self._tally(key) or Tally(number, member.told)
        self._tallies[key].add(number, member)

    def write(self) -> None:
        self._db.executemany(
            "INSERT INTO tallies VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (condition, lr, weight_decay, status) DO UPDATE SET tally = excluded.tally",
            [(*key, tally.encoded()) for key, tally in self._tallies.items()],
        )
        self._db.executemany(
            "UPDATE conditions SET members = ?, seeds = ? WHERE number = ?",
            [(members, seeds, own) for own, members, seeds in self._conditions.values()],
        )

    def _condition(self, name: str, number: int, row: Row) -> tuple[int, int, int]:
        if name not in self._conditions:
            known = "SELECT number, members, seeds FROM conditions WHERE name = ?"
            found = self._db.execute(known, (name,)).fetchone()
            if found is None:
                values = (name, json.dumps(plain(row.cell.config)), number)
                self._db.execute(
                    "INSERT INTO conditions (name, config, first, members, seeds) VALUES (?, ?, ?, 0, 0)", values
                )
                found = self._db.execute(known, (name,)).fetchone()
            self._conditions[name] = found
        return self._conditions[name]

    def _tally(self, key: tuple[int, float, float, str]) -> Tally | None:
        found = self._db.execute(
            "SELECT tally FROM tallies WHERE condition = ? AND lr = ? AND weight_decay = ? AND status = ?", key
        ).fetchone()
        return None if found is None else tally_of(found[0], self._path)


def condition_name(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(condition(config).encode()).hexdigest()[:16]


def tally_of(text: str, path: Path) -> Tally:
    try:
        return Tally.decoded(text)
    except ValueError as error:
        raise StoreError(damaged(path)) from error


def _packed(number: int, member: Member) -> bytes:
    values = (member.lr, member.weight_decay, member.accuracy, member.unseen, member.solved_at)
    numbers = (_NAN if value is None else value for value in values)
    return _PACKED.pack(number, member.seed, *numbers, STATUSES.index(member.status))


def told(score: bytes, path: Path) -> dict[str, Any]:
    """The seed, rates and status that a score holds."""
    try:
        _, seed, lr, decay, *_, status = _PACKED.unpack(score)
        return {"seed": seed, "lr": lr, "weight_decay": decay, "status": STATUSES[status]}
    except (struct.error, TypeError, IndexError) as error:
        raise StoreError(damaged(path)) from error


def upto(digest: sqlite3.Connection) -> tuple[int, str | None]:
    """The last row that was taken in, by number and key."""
    found = digest.execute("SELECT number, key FROM digested").fetchone()
    return (0, None) if found is None or type(found[0]) is not int else found


def _continues(rows: sqlite3.Connection, digest: sqlite3.Connection) -> bool:
    """Whether the last row that was taken in is still there: a file that was put back to an earlier state lacks it."""
    number, key = upto(digest)
    return number == 0 or rows.execute("SELECT key FROM rows WHERE number = ?", (number,)).fetchone() == (key,)
