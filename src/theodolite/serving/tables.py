"""Tables that were dropped on the page: in a temporary folder until they are taken away, each looked at by a process of
its own that can be ended."""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput
from theodolite.serving.calculator import Busy
from theodolite.serving.folder import NotThere
from theodolite.serving.requests import Whole, Words
from theodolite.structure.data.files import of_file

logger = logging.getLogger(__name__)

NAME = Words("name", "file name", "table.csv")
ASKED = (Words("target", "target", longest=1000), Whole("seconds", "seconds", 30, 5, 600))
_KEPT = 4  # tables; the oldest gives way
_RUNNING = 1  # processes
_GRACE = 120.0  # seconds beyond those allowed, after which a process is ended
_ENDINGS = (".csv", ".tsv")


@dataclass
class _Table:
    name: str
    folder: Path
    columns: list[str]
    rows: int
    state: str = "waiting"
    progress: tuple[float, str] = (0.0, "")
    found: dict[str, Any] | None = None
    error: str | None = None
    process: subprocess.Popen[str] | None = None
    started: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def file(self) -> Path:
        return self.folder / f"table{Path(self.name).suffix.lower()}"

    def to_json(self) -> dict[str, Any]:
        with self.lock:
            return {
                "name": self.name,
                "columns": self.columns,
                "rows": self.rows,
                "state": self.state,
                "progress": list(self.progress),
                "seconds": round(time.monotonic() - self.started, 1) if self.state == "running" else None,
                "found": self.found,
                "error": self.error,
            }


class Tables:
    def __init__(self) -> None:
        self._tables: OrderedDict[str, _Table] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, name: str, content: bytes) -> dict[str, Any]:
        """Keep a table and read its columns; one that is none is refused and not kept."""
        if Path(name).suffix.lower() not in _ENDINGS:
            raise BadInput(f"'{name}' is no table that can be dropped here: give a file in .csv or .tsv")
        table = _Table(Path(name).name, Path(tempfile.mkdtemp(prefix="theodolite-table-")), [], 0)
        try:
            table.file.write_bytes(content)
            columns, _ = of_file(table.file, header=True)
            table.columns, table.rows = [column.name for column in columns], len(columns[0].numbers)
        except BadInput as error:
            shutil.rmtree(table.folder, ignore_errors=True)
            raise BadInput(_spoken(table, str(error))) from error
        except BaseException:
            shutil.rmtree(table.folder, ignore_errors=True)
            raise
        ident = secrets.token_urlsafe(12)
        with self._lock:
            self._tables[ident] = table
            idle = [key for key, one in self._tables.items() if one.state != "running"]
            for key in idle[: max(0, len(self._tables) - _KEPT)]:
                self._drop(self._tables.pop(key))
        return {"id": ident, **table.to_json()}

    def begin(self, ident: str, target: str, seconds: int) -> dict[str, Any]:
        table = self._of(ident)
        if target not in table.columns:
            raise BadInput(f"'{table.name}' has no column '{target[:80]}': choose one of its columns")
        with self._lock:
            if sum(one.state == "running" for one in self._tables.values()) >= _RUNNING:
                raise Busy("another table is being looked at: wait for it, or cancel it")
            command = [sys.executable, "-m", "theodolite.serving.discovering", str(table.file), target, str(seconds)]
            with table.lock:
                table.state, table.progress, table.found, table.error = "running", (0.0, "starting"), None, None
                table.started = time.monotonic()
                table.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
        threading.Thread(target=_follow, args=(table, table.process, seconds + _GRACE), daemon=True).start()
        return table.to_json()

    def state(self, ident: str) -> dict[str, Any]:
        return self._of(ident).to_json()

    def remove(self, ident: str) -> dict[str, Any]:
        """Ends what is being done with it, and forgets it."""
        table = self._of(ident)
        with self._lock:
            self._tables.pop(ident, None)
        self._drop(table)
        return table.to_json()

    def close(self) -> None:
        with self._lock:
            tables, self._tables = list(self._tables.values()), OrderedDict()
        for table in tables:
            self._drop(table)

    def _of(self, ident: str) -> _Table:
        with self._lock:
            if ident not in self._tables:
                raise NotThere("this table is not kept any more: drop it again")
            return self._tables[ident]

    def _drop(self, table: _Table) -> None:
        with table.lock:
            process = table.process
            table.state = "cancelled" if table.state == "running" else table.state
        if process is not None and process.poll() is None:
            process.kill()
            process.wait(10)
        shutil.rmtree(table.folder, ignore_errors=True)


def _follow(table: _Table, process: subprocess.Popen[str], seconds: float) -> None:
    """Hears a process to its end; one that takes far longer than it was allowed is ended."""
    late = threading.Timer(seconds, process.kill)
    late.daemon = True
    late.start()
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            said = json.loads(line)
            with table.lock:
                if "progress" in said:
                    table.progress = (said["progress"][0], said["progress"][1])
                elif table.state == "running":
                    table.found, table.error = said.get("found"), said.get("error") and _spoken(table, said["error"])
                    table.state = "finished" if table.found else "failed"
    process.wait()
    late.cancel()
    with table.lock:
        if table.state == "running":
            logger.warning("the process that looked at a table ended with %s", process.returncode)
            table.state, table.error = "failed", "looking at this table broke off: try fewer rows, or more seconds"


def _spoken(table: _Table, sentence: str) -> str:
    """Where a sentence names the file, by the name it was dropped with."""
    return sentence.replace(str(table.file), table.name)
