"""One SQLite file, opened with care: ours or refused, whole transactions, one sentence for all that can go wrong."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from theodolite.errors import DiskFull, StoreError
from theodolite.lab.store.schema import APPLICATION, MIGRATIONS, READABLE

DISK_FULL = "the disk is full: finished cells are kept; free some space and run the same command"
_LONGEST = 2**28  # bytes of a text or blob
CHECKED = 16 * 2**20  # bytes: a file up to this size is checked page by page when it is opened (some milliseconds)

Migrations = tuple[tuple[str, ...], ...]


class Database:
    """Reading and writing in whole transactions; may be called from several threads."""

    def __init__(
        self,
        path: Path,
        *,
        must_exist: bool = False,
        read_only: bool = False,
        timeout: float = 30.0,
        migrations: Migrations = MIGRATIONS,
    ) -> None:
        self.path, self.timeout, self.read_only = path, timeout, read_only
        self._migrations, self._process = migrations, os.getpid()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        with self._sentences():
            self._find(must_exist or read_only)
            self._connection = self._open_to_read() if self.read_only else self._open_to_write()
            self._file = _identity(self.path)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Everything read inside is of one moment."""
        with self._lock, self._sentences():
            connection = self._opened()
            with _transaction(connection, "BEGIN"):
                yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All of it is written, or nothing; no other command writes meanwhile."""
        with self._lock, self._sentences():
            connection = self._opened()
            if self.read_only:
                raise StoreError(f"the store '{self.path}' is read-only: copy it to a folder that can be written")
            if _identity(self.path) != self._file:
                raise StoreError(f"the store '{self.path}' was removed while it was in use: run the same command again")
            with _transaction(connection, "BEGIN IMMEDIATE"):
                yield connection

    def wait_at_most(self, seconds: float) -> None:
        with self._lock, self._sentences():
            self._opened().execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def close(self) -> None:
        with self._lock, self._sentences():
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _find(self, must_exist: bool) -> None:
        folder = self.path.parent
        try:
            if must_exist and not self.path.is_file():
                raise StoreError(f"there is no store in '{folder}': give the folder an earlier command wrote to")
            if not self.read_only:
                folder.mkdir(parents=True, exist_ok=True)
            there = self.path.exists()
            if there and not self.path.is_file():
                raise StoreError(f"'{self.path}' is not a file: choose another folder")
            if there:
                self._look_at_header()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise DiskFull(DISK_FULL) from error
            raise StoreError(f"the folder '{folder}' cannot be used ({error.strerror}): choose another") from error
        places = [folder, self.path] if there else [folder]
        self.writable = all(os.access(place, os.W_OK) for place in places)
        self.read_only = self.read_only or not self.writable
        if not self.writable and not must_exist:
            raise StoreError(f"the folder '{folder}' cannot be written: choose another")

    def _look_at_header(self) -> None:
        """SQLite takes a file shorter than a page for an empty one and would write over it, whatever it holds; one that
        ends inside a page is read as if zeros followed. With a log beside it, both can be mended."""
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # first, for another command may be writing its first page right now
            header = file.read(18)
        if header and not header.startswith(b"SQLite format 3\0"):
            raise StoreError(f"'{self.path}' is not a store: choose another folder")
        page = int.from_bytes(header[16:18], "big") if len(header) == 18 else 0
        page = 2**16 if page == 1 else page  # the field has two bytes
        if size and self._complete() and (page < 512 or size % page):
            raise StoreError(damaged(self.path))

    def _complete(self) -> bool:
        """Whether the file alone is the whole store: nothing waits beside it to be written into it."""
        return not any(_size(self.path.with_name(self.path.name + suffix)) for suffix in ("-wal", "-journal"))

    def _open_to_write(self) -> sqlite3.Connection:
        connection = self._connect("mode=rwc")
        try:
            if self._version(connection) < len(self._migrations):
                with _transaction(connection, "BEGIN IMMEDIATE"):
                    self._migrate(connection)
            self.version = len(self._migrations)
            self._check(connection)
            self._keep_a_log(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            # FULL: a finished cell outlives a power cut, too. One fsync a transaction, and those are rare.
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        # A file in WAL mode needs its companions, which cannot be made here, or should not be; if nothing waits in the
        # log, the file alone is complete and `immutable` reads it as it is. Where others may write, one that has it
        # open has a log, empty or not.
        log = self.path.with_name(self.path.name + "-wal")
        still = self._complete() and not (self.writable and log.exists())
        connection = self._connect("mode=ro&immutable=1" if still else "mode=ro")
        try:
            self.version = self._version(connection)
            if self.version < READABLE:
                raise StoreError(f"the store '{self.path}' is empty and read-only: choose another folder")
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        """What a file from elsewhere defines, views or triggers, calls no function that has effects."""
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?{mode}",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        if hasattr(connection, "setlimit"):  # from Python 3.11 on
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        return connection

    def _version(self, connection: sqlite3.Connection) -> int:
        """0: new and empty. Read in one transaction, for another command may be making the tables right now."""
        with _transaction(connection, "BEGIN"):
            return self._version_seen(connection)

    def _version_seen(self, connection: sqlite3.Connection) -> int:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION:
            if application or version or tables:
                raise StoreError(f"'{self.path}' is a database of another program: choose another folder")
            return 0
        if version > len(self._migrations):
            raise StoreError(
                f"the store '{self.path}' was written by a newer version: update theodolite, or choose another folder"
            )
        return version

    def _migrate(self, connection: sqlite3.Connection) -> None:
        for statements in self._migrations[self._version_seen(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(self._migrations)}")

    def _check(self, connection: sqlite3.Connection) -> None:
        """The tables are ours, as we make them, and nothing runs when they are used; a small file's pages are sound."""
        made = _schema(connection)
        if any(kind in ("view", "trigger") for kind, _ in made.values()) or not self._ours().items() <= made.items():
            raise StoreError(f"the tables of '{self.path}' were changed by another program: choose another folder")
        if self.path.stat().st_size <= CHECKED:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise StoreError(damaged(self.path))

    def _ours(self) -> dict[str, tuple[str, str]]:
        """What the migrations up to the file's version make of an empty one."""
        with contextlib.closing(sqlite3.connect(":memory:")) as empty:
            for statement in (statement for statements in self._migrations[: self.version] for statement in statements):
                empty.execute(statement)
            return _schema(empty)

    def _keep_a_log(self, connection: sqlite3.Connection) -> None:
        """Write-ahead logging: readers never wait. SQLite does not wait for its turn to switch it on, so we do."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        if mode != "wal":
            raise StoreError(f"the folder '{self.path.parent}' cannot hold a store: choose one on a local disk")

    def _opened(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise StoreError(f"the store '{self.path}' was opened by another process: open it again in this one")
        if self._connection is None:
            raise StoreError(f"the store '{self.path}' is closed: open it again")
        return self._connection

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        """No exception of sqlite3 leaves this file."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._sentence(error) from error

    def _sentence(self, error: sqlite3.Error) -> StoreError:
        code = _code(error)
        if code == sqlite3.SQLITE_FULL or (code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and self._no_room()):
            return DiskFull(DISK_FULL)
        if code == sqlite3.SQLITE_NOTADB:
            return StoreError(f"'{self.path}' is not a store: choose another folder")
        if code == sqlite3.SQLITE_CORRUPT:
            return StoreError(damaged(self.path))
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(
                f"the store '{self.path}' was locked by another program for {self.timeout:g} s: end that program, then "
                f"run the same command"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return StoreError(f"the store '{self.path}' cannot be written ({error}): choose another folder")
        return StoreError(f"the store '{self.path}' cannot be used ({error}): check its disk, or choose another folder")

    def _no_room(self) -> bool:
        try:
            return shutil.disk_usage(self.path.parent).free < 2**16
        except OSError:
            return False


def _schema(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """By name what a file defines: its kind and its words; what SQLite keeps for itself is left out."""
    found = connection.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: (kind, words) for name, kind, words in found if not str(name).startswith("sqlite_")}


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is; what is written to one that was removed is lost."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(path: Path) -> int:
    """0 where there is none, or none any more."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def damaged(path: Path) -> str:
    return f"the store '{path}' is damaged: move it away or put a copy in its place, then run the same command"


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    try:
        connection.execute(begin)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # after some errors SQLite has rolled back by itself
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def _code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)  # the low byte is the kind, the rest says more exactly where
    return None if code is None else code & 0xFF
