"""Where groups are run: in this process, or in a pool of worker processes on this machine.

Both take groups and hand back messages. A worker that dies takes only its own group with it.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from theodolite.errors import StoreError, TheodoliteError
from theodolite.lab.engines.starting import deaf_to_interrupts, deaf_to_terminals
from theodolite.lab.group import Group
from theodolite.lab.work import Context, Update, work

_PATIENCE = 15.0  # seconds a worker gets to save its state when asked to stop


@dataclass(frozen=True)
class Failed:
    """A group that raised. `expected`: a sentence for the user; otherwise a fault of the net's or of ours.

    `disk`: nothing is wrong with the group, but its state could not be written.
    """

    group: str
    sentence: str
    traceback: str
    expected: bool
    disk: bool = False


@dataclass(frozen=True)
class Died:
    """A worker that ended without a word; `reason` where more than its exit code is known."""

    group: str
    code: int | None
    reason: str = ""


@dataclass(frozen=True)
class Paused:
    """A worker that had to go and saved the group's state before: the group goes on elsewhere."""

    group: str


Message = Update | Failed | Died | Paused


class Engine(Protocol):
    """Runs groups. `free` says how many more it takes now; `poll` waits for news of those it has."""

    workers: int

    @property
    def free(self) -> int: ...

    def submit(self, group: Group, context: Context) -> None: ...

    def poll(self, timeout: float, /) -> list[Message]: ...

    def drop(self, group: str) -> None: ...

    def stop(self) -> list[Message]: ...


class Here:
    """One group at a time in this process: no start-up, any object as a net, no protection from a crash."""

    workers = 1

    def __init__(self) -> None:
        self._running: tuple[str, Iterator[Update]] | None = None
        self._stopping = False

    @property
    def free(self) -> int:
        return 0 if self._running else 1

    def submit(self, group: Group, context: Context) -> None:
        self._running = (group.id, work(group, context, lambda: self._stopping))

    def poll(self, _timeout: float, /) -> list[Message]:
        if self._running is None:
            return []
        name, updates = self._running
        try:
            update = next(updates, None)
        except Exception as error:
            self._running = None
            return [failed(name, error)]
        if update is None or update.done:
            self._running = None
        return [] if update is None else [update]

    def drop(self, group: str) -> None:
        if self._running and self._running[0] == group:
            self._running = None

    def stop(self) -> list[Message]:
        """Let what runs save its state."""
        self._stopping = True
        messages: list[Message] = []
        while self._running is not None:
            messages += self.poll(0)
        return messages


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    group: str | None = None


class Pool:
    """`workers` processes (spawned) with `threads` torch threads each."""

    def __init__(self, workers: int, threads: int) -> None:
        self.workers = workers
        self.threads = threads
        self._spawn = multiprocessing.get_context("spawn")
        self._pool: list[_Worker] = []

    @property
    def free(self) -> int:
        return self.workers - sum(1 for w in self._pool if w.group is not None)

    def submit(self, group: Group, context: Context) -> None:
        idle = next((w for w in self._pool if w.group is None), None) or self._start()
        idle.group = group.id
        with suppress(BrokenPipeError, ConnectionResetError):  # it died idle: `poll` finds out, the group is retried
            idle.pipe.send((group, context))

    def poll(self, timeout: float) -> list[Message]:
        busy = {w.pipe: w for w in self._pool if w.group is not None}
        messages: list[Message] = []
        for pipe in wait(list(busy), timeout) if busy else ():
            messages += self._read(busy[pipe])  # pyright: ignore[reportArgumentType]
        return messages

    def drop(self, group: str) -> None:
        """End the worker of a group that is not ours any more."""
        for worker in [w for w in self._pool if w.group == group]:
            self._end(worker)

    def stop(self) -> list[Message]:
        """Ask every worker to save its state and end; who does not in time is killed."""
        messages: list[Message] = []
        for worker in self._pool:
            with suppress(OSError):
                worker.pipe.send(None)
        limit = time.monotonic() + _PATIENCE
        while any(w.group is not None for w in self._pool) and time.monotonic() < limit:
            messages += self.poll(0.2)
        for worker in list(self._pool):
            self._end(worker)
        return messages

    def _read(self, worker: _Worker) -> list[Message]:
        """Everything that waits in a worker's pipe."""
        messages: list[Message] = []
        try:
            while worker.group is not None and (not messages or worker.pipe.poll(0)):
                message = worker.pipe.recv()
                if message is None:
                    worker.group = None
                    break
                messages.append(message)
                if isinstance(message, Failed) or message.done:
                    worker.group = None
        except (EOFError, OSError):
            group = worker.group
            worker.process.join(1.0)
            code = worker.process.exitcode
            self._end(worker)
            if group is not None:
                messages.append(Died(group, code))
        return messages

    def _start(self) -> _Worker:
        with deaf_to_interrupts():
            ours, theirs = self._spawn.Pipe()
            process = self._spawn.Process(target=_serve, args=(theirs, self.threads), daemon=True)
            process.start()
            theirs.close()
            self._pool.append(_Worker(process, ours))
        return self._pool[-1]

    def _end(self, worker: _Worker) -> None:
        worker.pipe.close()
        if worker.group is None:
            worker.process.join(2.0)  # its own way out: one that is terminated leaves semaphores and a warning of them
        worker.process.terminate()
        worker.process.join(2.0)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        self._pool.remove(worker)


def _serve(pipe: Connection, threads: int) -> None:
    """A worker's life: groups in, messages out, until the pipe closes or the parent is gone."""
    deaf_to_terminals()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    torch.set_num_threads(threads)
    stopping = False

    def asked() -> bool:
        """None on the pipe asks to stop; nothing else comes while a group runs."""
        nonlocal stopping
        if not stopping and pipe.poll(0):
            stopping = pipe.recv() is None
        return stopping

    try:
        while not stopping and (job := pipe.recv()) is not None:
            group, context = job
            done = False
            try:
                for update in work(group, context, asked):
                    pipe.send(update)
                    done = update.done
            except Exception as error:
                pipe.send(failed(group.id, error))
            else:
                if not done:
                    pipe.send(None)  # stopped between two blocks
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _end_with_parent() -> None:
    """A command killed outright leaves no workers behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def failed(group: str, error: Exception) -> Failed:
    """What a worker says of a group that raised."""
    expected = isinstance(error, TheodoliteError)
    lines = str(error).strip().splitlines()
    sentence = str(error) if expected else f"{type(error).__name__}: {lines[0] if lines else ''}"
    trace = "".join(traceback.format_exception(error))
    return Failed(group, sentence, trace, expected, isinstance(error, StoreError))
