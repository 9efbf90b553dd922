"""`learn` as a process of its own that can be disturbed, and everything it started found."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from .small_runs import asked

BASE = ["--task-arg", "bits=5", "--task-arg", "parity.relevant=2", "--width", 8, "--batch", 16, "--rows", 2]
BASE += ["--chunk", 2, "--every", 20]
TASKS = {"task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}}
HANGS = 300.0  # seconds after which something hangs, however busy the machine


def command(out: Path, *more: object, steps: int = 200, lr: str = "2e-2,1e-6", seeds: int = 2) -> list[str]:
    """The same run as `MLP` on two tasks."""
    given = ["--net", "mlp", "--task", "parity,majority", "--seeds", seeds, "--lr", lr, "--steps", steps, *BASE]
    script = "from theodolite.cli.main import run; run()"
    return [sys.executable, "-c", script, "learn", *map(str, given), "--out", str(out), *map(str, more)]


class Running:
    """A command in a session of its own, so that everything it started can be found."""

    def __init__(self, arguments: list[str], cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in a shell's background
            cwd=cwd,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate()
        return self.process.returncode, out, err

    def family(self) -> list[int]:
        """Living processes of the session, the command itself left out."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (OSError, NotADirectoryError):
                continue
            if fields[3] == str(self.process.pid) and fields[0] not in "ZX" and entry.name != str(self.process.pid):
                found.append(int(entry.name))
        return found

    def all_gone(self) -> bool:
        """Waits for it: a process that outlives its command is alive after minutes, too."""
        limit = time.monotonic() + HANGS
        while self.family() and time.monotonic() < limit:
            time.sleep(0.05)
        return not self.family()


def until_a_row(out: Path, running: Running) -> None:
    """Wait until the first member is finished."""
    limit = time.monotonic() + HANGS
    while time.monotonic() < limit and running.process.poll() is None:
        try:
            if asked(out, "SELECT count(*) FROM rows")[0][0]:
                return
        except sqlite3.OperationalError:
            pass  # it is not made yet
        time.sleep(0.02)
    raise AssertionError("the run ended, or took too long, before it was to be disturbed")
