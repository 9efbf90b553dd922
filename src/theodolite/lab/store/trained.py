"""The trained members of a store at one moment: their conditions, what they come to, and single rows on demand."""

from __future__ import annotations

import logging
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from theodolite.errors import StoreError
from theodolite.lab.cell import Row
from theodolite.lab.store.database import Database, damaged
from theodolite.lab.store.digest import behind, condition_name, tables_aside, take_in, tally_of, told, upto
from theodolite.lab.store.entries import AMONG, ROWS, decoded, listed, rows_of
from theodolite.lab.store.schema import DIGEST
from theodolite.lab.tally import STATUSES, Tallies, Tally, described

logger = logging.getLogger(__name__)

AT_ONCE = 2000  # rows of a transaction that brings a digest up to date: others who write wait no longer than that

Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Condition:
    """What members share that differ in seed and rates only. `first` is the row of the first of them."""

    number: int
    name: str
    config: Mapping[str, Any]
    first: int
    members: int
    seeds: int


class Trained:
    """Open while it is used: all that is read is of one moment, whatever is written meanwhile.

    What rows come to is read from the store's digest. A store that lacks it, or whose digest is behind, is brought up
    to date first, in parts that others may interrupt; where the folder cannot be written, or with `read_only`, that is
    done in memory, and `aside` keeps it for the next time. `tell` is told how far that is: rows, of so many.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        read_only: bool = False,
        tell: Tell | None = None,
        aside: sqlite3.Connection | None = None,
    ) -> None:
        self.path, self.aside = Path(folder) / "store.db", aside
        self._stack = ExitStack()
        tell = tell or _logged(self.path)
        try:
            self._rows = self._begun()
            if self.aside is not None and self._version >= DIGEST and not behind(self._rows, self._rows):
                self.aside = None  # somebody brought the store itself up to date
            if self._behind():
                if not (read_only or self._read_only):
                    self._stack.close()
                    bring_up_to_date(folder, tell)
                    self._rows = self._begun()
                if self._behind():
                    self._take_in_aside(tell)
            self._digest = self.aside or self._rows
            self.upto, _ = upto(self._digest)
            self.conditions = self._conditions()
            (left_out,) = self._digest.execute("SELECT left_out FROM digested").fetchone()
            if left_out:
                logger.warning("%s rows of '%s' are left out: they are not as 'learn' writes them", left_out, self.path)
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise

    def __enter__(self) -> Trained:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)

    def tallies(self, conditions: Sequence[Condition] | None = None) -> Mapping[int, Tallies]:
        """By the condition's number, and by rates and status; of all conditions unless some are given."""
        found = self._digest.execute(
            "SELECT condition, lr, weight_decay, status, tally FROM tallies" + _of(conditions), _given(conditions)
        )
        result: dict[int, dict[tuple[float, float, str], Tally]] = {}
        for own, lr, decay, status, text in found:
            if type(lr) is not float or type(decay) is not float or status not in STATUSES:
                raise self.damaged()
            result.setdefault(own, {})[lr, decay, status] = tally_of(text, self.path)
        return result

    def scores(self, conditions: Sequence[Condition]) -> dict[int, bytes]:
        """By the condition's number: one `SCORE` after the other, by seed."""
        found = self._digest.execute(
            # The blobs follow one another byte by byte; the cast keeps them from being read as a text.
            f"SELECT condition, CAST(group_concat(score, '') AS BLOB) FROM scores{_of(conditions)} GROUP BY condition",
            _given(conditions),
        )
        return dict(found.fetchall())

    def numbers(self, conditions: Sequence[Condition], begin: int, most: int) -> list[int]:
        """Of a page of rows in the order of finishing."""
        found = self._digest.execute(
            "SELECT number FROM scores INDEXED BY scores_by_number WHERE +condition IN "
            f"{AMONG} ORDER BY number LIMIT ? OFFSET ?",
            (*_given(conditions), most, begin),
        )
        return [number for (number,) in found]

    def of_seed(self, conditions: Sequence[Condition], seed: int) -> list[int]:
        """Numbers of the rows with this seed."""
        if not -(2**63) <= seed < 2**63:
            return []
        among, asked = f"SELECT number FROM scores{_of(conditions)} AND seed = ?", (*_given(conditions), seed)
        return [number for (number,) in self._digest.execute(among, asked)]

    def of_key(self, conditions: Sequence[Condition], beginning: str) -> list[int]:
        """Numbers of the rows whose keys begin so."""
        keys = (beginning, beginning + "g")  # which no key has
        found = self._rows.execute("SELECT number FROM rows WHERE key >= ? AND key < ?", keys).fetchall()
        asked = (*_given(conditions), listed(number for (number,) in found))
        among = f"SELECT number FROM scores{_of(conditions)} AND number IN {AMONG}"
        return [number for (number,) in self._digest.execute(among, asked)]

    def member(self, number: int) -> dict[str, Any]:
        """The seed, rates, status and short key of one row."""
        found = self._digest.execute("SELECT score FROM scores WHERE number = ?", (number,)).fetchone()
        key = self._rows.execute("SELECT key FROM rows WHERE number = ?", (number,)).fetchone()
        if found is None or key is None:
            raise self.damaged()
        return {**told(found[0], self.path), "key": key[0][:12]}

    def rows(
        self, conditions: Sequence[Condition] | None = None, numbers: Iterable[int] | None = None
    ) -> list[tuple[int, Row]]:
        """Whole rows with their numbers, in the order of finishing: of these conditions, or of these numbers."""
        if numbers is None:
            digested = self._digest.execute(f"SELECT number FROM scores{_of(conditions)}", _given(conditions))
            numbers = sorted(number for (number,) in digested)
        else:
            numbers = sorted(numbers)
        found = self._rows.execute(f"{ROWS} WHERE number IN {AMONG} ORDER BY number", (listed(numbers),))
        return rows_of(found, self.path, self._refuse)

    def damaged(self) -> StoreError:
        return StoreError(damaged(self.path))

    def _begun(self) -> sqlite3.Connection:
        database = Database(self.path, read_only=True)
        self._stack.callback(database.close)
        self._version, self._read_only = database.version, not database.writable
        return self._stack.enter_context(database.reading())

    def _behind(self) -> int:
        if self.aside is not None:
            return behind(self._rows, self.aside)
        return behind(self._rows, self._rows) if self._version >= DIGEST else 1

    def _take_in_aside(self, tell: Tell) -> None:
        self.aside = self.aside or tables_aside()
        (newest,) = self._rows.execute("SELECT coalesce(max(number), 0) FROM rows").fetchone()
        self.aside.execute("BEGIN")
        try:
            while (reached := take_in(self._rows, self.aside, AT_ONCE, self.path)) < newest:
                tell(reached, newest)
            self.aside.execute("COMMIT")
        except BaseException:
            self.aside.execute("ROLLBACK")
            raise

    def _conditions(self) -> list[Condition]:
        columns = "number, name, config, first, members, seeds"
        found = self._digest.execute(f"SELECT {columns} FROM conditions ORDER BY first")
        made = [Condition(own, name, decoded(config, self.path), *counts) for own, name, config, *counts in found]
        for one in made:
            counts = (one.first, one.members, one.seeds)
            if not isinstance(one.config, dict) or condition_name(one.config) != one.name:
                raise self.damaged()
            if not all(type(count) is int for count in counts) or not described(one.config):
                raise self.damaged()
        return made

    def _refuse(self, key: str) -> None:
        logger.warning("the row of cell %s in '%s' was changed by another program: it is left out", key[:12], self.path)


def bring_up_to_date(folder: str | Path, tell: Tell) -> None:
    """Take into a store's digest what is not there yet, in several transactions; two who do it share the work."""
    database = Database(Path(folder) / "store.db", must_exist=True)
    try:
        while not database.read_only:
            with database.writing() as db:
                reached = take_in(db, db, AT_ONCE, database.path)
                (newest,) = db.execute("SELECT coalesce(max(number), 0) FROM rows").fetchone()
            if reached >= newest:
                return
            tell(reached, newest)
    finally:
        database.close()


def _of(conditions: Sequence[Condition] | None) -> str:
    return "" if conditions is None else f" WHERE condition IN {AMONG}"


def _given(conditions: Sequence[Condition] | None) -> tuple[str, ...]:
    return () if conditions is None else (listed(one.number for one in conditions),)


def _logged(path: Path) -> Tell:
    return lambda done, total: logger.info("'%s' is brought up to date: %d of %d rows", path, done, total)
