"""Calls that know nothing of each other, side by side in processes; what they return does not depend on how many.

Little of what many short operations are made of goes side by side in the threads of one interpreter. A worker is a
Python of its own with one thread. It is started by a command line, since `multiprocessing` would run a user's script
again in it; it takes calls as pickles from a pipe that only this process writes to, and it ends when this process does
or after a minute without work. This process makes calls too while it waits; what a worker fails to return, it makes
itself, so that an error is raised where it belongs.
"""

from __future__ import annotations

import atexit
import importlib
import json
import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Generic, Literal, NoReturn, TypeVar

from theodolite.loading import loading

Value = TypeVar("Value")
MOST = 3  # workers: a round has few fits
IDLE = 60.0  # seconds without a call after which a worker ends
READY = b"ready"
LOADED = ("theodolite.structure.refine", "theodolite.structure.stacking")  # by a worker, before it takes calls
_SERVE = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import serve; serve()"
_LENGTH = 8  # bytes, before every message, that say how long it is
log = logging.getLogger(__name__)


@dataclass(eq=False)
class Promise(Generic[Value]):
    """What a call will return. Its arguments must not change meanwhile."""

    call: Callable[[], Value]
    state: Literal["waiting", "begun", "done"] = "waiting"
    value: Any = None
    here: bool = False  # no worker can make it

    def begin(self) -> None:
        """Once: a worker makes the call as soon as one is free."""
        _crew.add([self])

    def begin_behind(self) -> None:
        """Once: a worker makes the call when it has nothing else to do, also one that is not there yet."""
        _crew.behind(self)

    def result(self) -> Value:
        """Waits for it, and makes calls meanwhile that nobody has begun, this one first."""
        _crew.finish(self)
        return self.value


def begin(call: Callable[[], Value]) -> Promise[Value]:
    """A worker makes the call as soon as one is free; where there are none, it is made when its result is asked for."""
    promise = Promise(call)
    promise.begin()
    return promise


def by_workers(calls: Iterable[Callable[[], Value]]) -> Iterator[Value]:
    """What each returns, in their order, as soon as it is there; before what was begun and nobody waits for yet.

    Examples:
        >>> from functools import partial
        >>> list(by_workers([partial(divmod, 7, 2), partial(pow, 2, 5)]))
        [(3, 1), 32]
    """
    begun = [Promise(call) for call in calls]
    _crew.add(begun, first=True)
    try:
        for promise in begun:
            yield promise.result()
    finally:
        forget(begun)


def forget(begun: Iterable[Promise[Any]]) -> None:
    """Nobody will ask for these: what is not begun is not made."""
    _crew.drop(begun)


def ready(threads: int | None = None) -> None:
    """Starts workers, unless they are there, so that with this process so many threads are at work: with one, nobody
    else makes calls. None: as many as torch would take by itself. Workers take seconds to load what they need, and
    until then all calls are made here."""
    _crew.man(min(_usual() if threads is None else threads, 1 + MOST) - 1)


def _usual() -> int:
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() else os.cpu_count() or 1


class _Crew:
    def __init__(self) -> None:
        self.change = threading.Condition()
        self.waiting: deque[Promise[Any]] = deque()
        self.spare: deque[Promise[Any]] = deque()  # for workers that nothing waits for
        self.workers: list[_Worker] = []
        self.wanted = 0
        self.owner = os.getpid()

    def man(self, count: int) -> None:
        if self.owner != os.getpid():  # the copy that a fork made: the pipes are another process's
            self.__init__()
        self.workers = [worker for worker in self.workers if worker.alive]
        self.wanted = count
        if not sys.executable or getattr(sys, "frozen", False):  # no Python that could be started
            return
        try:
            self.workers += [_Worker(self) for _ in range(count - len(self.workers))]
        except OSError as error:
            log.info("all is made in one process, since no other can be started: %s", error)

    def add(self, promises: list[Promise[Any]], *, first: bool = False) -> None:
        if self.wanted and self.owner == os.getpid() and any(worker.alive for worker in self.workers):
            with self.change:
                self.waiting = deque([*promises, *self.waiting] if first else [*self.waiting, *promises])
                self.change.notify_all()

    def behind(self, promise: Promise[Any]) -> None:
        with self.change:
            self.spare.append(promise)
            self.change.notify_all()

    def drop(self, promises: Iterable[Promise[Any]]) -> None:
        with self.change:
            for promise in promises:
                self._remove(promise)

    def _remove(self, promise: Promise[Any]) -> None:
        for those in (self.waiting, self.spare):
            if promise in those:
                those.remove(promise)

    def take(self) -> Promise[Any]:
        """For a worker: waits until there is one."""
        with self.change:
            while True:
                for promise in (*self.waiting, *self.spare):
                    if not promise.here:
                        self._remove(promise)
                        promise.state = "begun"
                        return promise
                self.change.wait()

    def give_back(self, promise: Promise[Any], *, here: bool) -> None:
        with self.change:
            promise.state, promise.here = "waiting", here
            self.waiting.appendleft(promise)
            self.change.notify_all()

    def done(self, promise: Promise[Any], value: Any) -> None:
        with self.change:
            promise.value, promise.state = value, "done"
            self.change.notify_all()

    def finish(self, promise: Promise[Any]) -> None:
        while (mine := self._next(promise)) is not None:
            self._make(mine)

    def _next(self, wanted: Promise[Any]) -> Promise[Any] | None:
        """What to make here now: what is wanted if nobody has begun it, else what waits; None once it is done."""
        with self.change:
            while wanted.state == "begun" and not self.waiting:
                self.change.wait()
            if wanted.state == "done":
                return None
            mine = wanted if wanted.state == "waiting" else self.waiting[0]
            self._remove(mine)
            mine.state = "begun"
            return mine

    def _make(self, promise: Promise[Any]) -> None:
        """Here, and on one thread while workers have the others."""
        from theodolite.structure.fit.side_by_side import alone

        try:
            with alone(lambda: bool(self.waiting) or any(worker.busy for worker in self.workers)):
                value = promise.call()
        except BaseException:
            promise.state = "waiting"  # who asks again hears the same
            raise
        self.done(promise, value)


class _Worker:
    """A process, and the thread here that hands it calls one by one."""

    def __init__(self, crew: _Crew) -> None:
        self.crew, self.busy = crew, False
        apart: Any = {"start_new_session": True} if os.name == "posix" else {"creationflags": 0x200}  # deaf to Ctrl-C
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, json.dumps([path or str(Path.cwd()) for path in sys.path])],
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL},
            env={**os.environ, **one},
            **apart,
        )
        atexit.register(self._end)
        threading.Thread(target=self._hand_on, daemon=True).start()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def _hand_on(self) -> None:
        calls, answers = self.process.stdin, self.process.stdout
        assert calls is not None
        assert answers is not None
        promise = None
        try:
            greeted = _read(answers) == READY
            while greeted:
                promise = self.crew.take()
                self.busy = True
                if (message := _pickled(promise.call)) is None:
                    self.crew.give_back(promise, here=True)
                else:
                    _write(calls, message)
                    made, value = pickle.loads(_read(answers) or b"")
                    if made:
                        self.crew.done(promise, value)
                    else:
                        self.crew.give_back(promise, here=True)
                self.busy, promise = False, None
        except Exception as error:  # it has ended, or what it returned cannot be read
            log.debug("a worker is given up: %r", error)
        self._end()
        self.busy = False
        if promise is not None:
            self.crew.give_back(promise, here=False)

    def _end(self) -> None:
        atexit.unregister(self._end)
        self.process.kill()
        self.process.wait()


def serve() -> NoReturn:
    """In a worker. What it calls may print: its answers have a pipe of their own."""
    calls, answers = (os.fdopen(os.dup(number), mode) for number, mode in ((0, "rb"), (1, "wb")))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(calls, received), daemon=True).start()
    with loading():
        for name in LOADED:
            importlib.import_module(name)
        from theodolite.structure.fit.side_by_side import one_thread

    with suppress(queue.Empty), one_thread():
        _write(answers, READY)
        while True:
            _write(answers, _answer(received.get(timeout=IDLE)))
    os._exit(0)


def _receive(calls: BinaryIO, received: queue.SimpleQueue[bytes]) -> None:
    """Ends the worker where nobody is left who could hear its answer, whatever it is at."""
    with suppress(OSError):
        while (message := _read(calls)) is not None:
            received.put(message)
    os._exit(0)


def _answer(message: bytes) -> bytes:
    try:
        return pickle.dumps((True, pickle.loads(message)()), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:  # whoever asked makes it and hears why
        return pickle.dumps((False, None))


def _pickled(call: Callable[[], Any]) -> bytes | None:
    try:
        return pickle.dumps(call, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:  # pickle raises what it likes
        return None


def _write(pipe: BinaryIO | IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_LENGTH, "big") + message)
    pipe.flush()


def _read(pipe: BinaryIO | IO[bytes]) -> bytes | None:
    """None at the end."""
    length = pipe.read(_LENGTH)
    return pipe.read(int.from_bytes(length, "big")) if len(length) == _LENGTH else None


_crew = _Crew()
