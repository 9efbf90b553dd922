"""Starting a worker process: whatever happens to its command meanwhile, it says nothing and nothing is left behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker, spawn

_ENDING = ("SIGINT", "SIGHUP", "SIGTERM")
# What a spawned process says where its parent was killed before it had told it what to do.
_ORPHAN = "Ran out of input"
_QUIET = (
    f"import sys; sys.excepthook = lambda kind, error, trace: "
    f"str(error) == {_ORPHAN!r} or sys.__excepthook__(kind, error, trace); "
)
# The first a spawned process does, before it imports anything large: Linux is asked to kill it (PR_SET_PDEATHSIG) when
# the thread that started it is gone. A thread of its own, which watches elsewhere, waits for as long as an import does.
_BOUND = "import ctypes, os; ctypes.CDLL(None).prctl(1, 9, 0, 0, 0); os.getppid() == {parent} or os._exit(1); "


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """A process started in here never hears Ctrl-C, not even while it imports: its parent tells it what to do.

    What asks the parent itself to end meanwhile is heard at the end: a process that was half started would complain.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # started by the first process otherwise, and then it lifts our mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _heard_later(), _quiet_orphans():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def deaf_to_terminals() -> None:
    """For a worker: its parent hears Ctrl-C and a closed terminal, and tells it what to do."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


@contextmanager
def _heard_later() -> Iterator[None]:
    """A mask is not enough: another thread takes the signal, and Python raises it in the main one all the same."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    with ExitStack() as stack:  # every handler comes back, also if one is called at once
        stack.callback(lambda: [signal.raise_signal(number) for number in heard])
        for number in (getattr(signal, name) for name in _ENDING):
            handler = signal.getsignal(number)
            if callable(handler):
                stack.callback(signal.signal, number, handler)
                signal.signal(number, lambda which, _: heard.append(which))
        yield


@contextmanager
def _quiet_orphans() -> Iterator[None]:
    """A process started in here whose parent is gone before it reads what to do ends without a traceback, and at once
    on Linux: the thread that starts a worker also ends it, and so outlives it unless it is killed."""
    usual = spawn.get_command_line
    first = _QUIET + (_BOUND.format(parent=os.getpid()) if sys.platform == "linux" else "")

    def quiet(**given: object) -> list[str]:
        words = usual(**given)
        return [first + word if before == "-c" else word for before, word in zip(["", *words], words, strict=False)]

    spawn.get_command_line = quiet
    try:
        yield
    finally:
        spawn.get_command_line = usual
