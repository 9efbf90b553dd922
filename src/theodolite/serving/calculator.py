"""Where answers are computed: a few at a time, a few waiting, and what was asked a moment ago is not computed again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from theodolite.errors import BadInput


class Busy(BadInput):
    """All places are taken; the same request may be answered in a moment."""


class Calculator:
    """One worker unless told otherwise: torch's forward derivatives, of which there is one level in a process, must not
    be taken by two threads at once."""

    def __init__(self, workers: int = 1, waiting: int = 8, kept: int = 64) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="theodolite-page")
        self._most, self._taken = workers + waiting, 0
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._running: dict[Hashable, asyncio.Future[Any]] = {}
        self._size = kept

    async def ask(self, function: Callable[[], Any], key: Hashable | None = None) -> Any:
        """What the function gives, in another thread. Under a `key` it is remembered, and who asks the same meanwhile
        waits for the same answer."""
        if key is not None and key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        work = self._running.get(key)
        if work is None:
            if self._taken >= self._most:
                raise Busy(f"{self._taken} answers are being computed already: ask again in a moment")
            work = asyncio.get_running_loop().run_in_executor(self._pool, function)
            self._taken += 1
            if key is not None:
                self._running[key] = work
            # Also when whoever asked has gone: the thread goes on until its end.
            work.add_done_callback(lambda done: self._done(done, key))
        return await asyncio.shield(work)

    def _done(self, work: asyncio.Future[Any], key: Hashable | None) -> None:
        self._taken -= 1
        self._running.pop(key, None)
        failed = work.cancelled() or work.exception() is not None  # looked at, so that nobody is told of it later
        if key is not None and not failed:
            self._kept[key] = work.result()
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
