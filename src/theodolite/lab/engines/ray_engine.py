"""A fleet on Ray, behind a pipe.

Ray lives in a process of its own: it takes over logging, signals and the environment, prints, waits for an address that
does not answer, and ends its process when the cluster's head is lost. None of that reaches the command.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from contextlib import suppress
from typing import Any

from theodolite.errors import BadInput
from theodolite.lab.engines.parcel import News, Parcel
from theodolite.lab.engines.pool import Died
from theodolite.lab.engines.ray_site import answers, serve_ray
from theodolite.lab.engines.starting import deaf_to_interrupts

logger = logging.getLogger(__name__)

_IMPORT = 120.0  # seconds for a new process to be there at all
_CONNECT = 20.0  # seconds to reach a cluster that listens
_START = 90.0  # seconds to start one here
_LEAVE = 30.0  # seconds for workers to save their state and for Ray to go


class RayFleet:
    """`workers` actors of `threads` CPUs each, and of one GPU on CUDA; as many as fit unless a number is given."""

    def __init__(self, address: str | None, workers: int | None, threads: int, device: str) -> None:
        if address is not None and address != "auto":
            _check(address)
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process: Any = spawn.Process(
            target=serve_ray, args=(theirs, address, workers, threads, device), daemon=True
        )
        with deaf_to_interrupts():
            self._process.start()
        theirs.close()
        try:
            limits = (_IMPORT, _START if address is None else _CONNECT)
            _, self.workers = (self._answer() if self._pipe.poll(limit) else self._silent(address) for limit in limits)
        except BaseException:
            self._end()
            raise

    def submit(self, parcel: Parcel) -> None:
        self._tell(parcel)

    def poll(self, timeout: float) -> list[News | Died]:
        return self._answer() if self._pipe.poll(timeout) else []

    def drop(self, group: str) -> None:
        self._tell(group)

    def stop(self) -> list[News | Died]:
        news: list[News | Died] = []
        limit = time.monotonic() + _LEAVE
        with suppress(OSError, BadInput):  # until it closes its end
            self._pipe.send(None)
            while (left := limit - time.monotonic()) > 0 and self._pipe.poll(left):
                news += self._answer()
        self._end()
        return news

    def _tell(self, order: Parcel | str) -> None:
        try:
            self._pipe.send(order)
        except OSError:
            self._answer()

    def _answer(self) -> Any:
        try:
            found = self._pipe.recv()
        except (EOFError, OSError):
            raise BadInput("the connection to Ray was lost: start the command again, it goes on where it was") from None
        if isinstance(found, str):
            raise BadInput(found)
        if isinstance(found, tuple):
            logger.log(*found)
            return []
        return found

    def _silent(self, address: str | None) -> int:
        where = "Ray did not start on this machine" if address is None else f"Ray at '{address}' did not answer in time"
        raise BadInput(f"{where}: look at it with 'ray status', or use --engine local")

    def _end(self) -> None:
        self._pipe.close()
        self._process.join(3.0)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(3.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _check(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if "//" in address or not (host and colon and port.isdecimal()):
        raise BadInput(f"--address '{address}' is not host:port: give the head's, such as 10.0.0.1:6379, or auto")
    if not answers(address):
        raise BadInput(f"nobody answers at --address '{address}': start Ray there, or check host and port")
