"""A Slurm job's life: groups from one mailbox, news into another, until it is told to stop or its time is up."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from theodolite.lab.engines.fleet import Left
from theodolite.lab.engines.mailbox import Mailbox
from theodolite.lab.engines.parcel import Hello, run_parcel

ALIVE, STOP, INBOX, OUTBOX = "alive", "stop", "groups", "news"
_ORPHAN = 120.0  # seconds without a sign of the command that started this
_NAP = 0.2


def serve(folder: Path, threads: int) -> None:
    """`folder` is this job's; the one above it is the command's, which rewrites a file there as long as it lives."""
    import torch

    torch.set_num_threads(threads)
    reasons = _Reasons(folder)
    groups, news = Mailbox(folder / INBOX), Mailbox(folder / OUTBOX)
    news.put(Hello.here())
    while not reasons.to_leave():
        for parcel in groups.take():
            for one in run_parcel(parcel, reasons.to_leave):
                news.put(one)
        time.sleep(_NAP)
    news.put(Left())


class _Reasons:
    """To leave: told to, Slurm's signal that the time is nearly up or the job preempted, or a dead command."""

    SIGNALS = (signal.SIGUSR2, signal.SIGTERM)  # in the place of submitit's, which would start everything again

    def __init__(self, folder: Path) -> None:
        self._stop, self._alive = folder / STOP, folder.parent / ALIVE
        self._signalled = False
        self._sign, self._seen = "", time.monotonic()
        for number in self.SIGNALS:
            signal.signal(number, self._hear)

    def to_leave(self) -> bool:
        return self._signalled or self._stop.exists() or self._orphaned()

    def _hear(self, _number: int, _frame: object) -> None:
        self._signalled = True

    def _orphaned(self) -> bool:
        try:
            sign = self._alive.read_text()
        except OSError:
            sign = ""
        now = time.monotonic()
        if sign and sign != self._sign:  # compared by content: the clocks of two machines may differ
            self._sign, self._seen = sign, now
        return now - self._seen > _ORPHAN
