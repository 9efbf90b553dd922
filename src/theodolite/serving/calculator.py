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
        self._size = kept

    async def ask(self, function: Callable[[], Any], key: Hashable | None = None) -> Any:
        """What the function gives, in another thread; under a `key` it is remembered."""
        if key is not None and key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if self._taken >= self._most:
            raise Busy(f"{self._taken} answers are being computed already: ask again in a moment")
        self._taken += 1
        try:
            work = asyncio.get_running_loop().run_in_executor(self._pool, function)
            work.add_done_callback(self._done)  # also when whoever asked has gone: the thread goes on until its end
        except BaseException:
            self._taken -= 1
            raise
        found = await asyncio.shield(work)
        if key is not None:
            self._kept[key] = found
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return found

    def _done(self, work: asyncio.Future[Any]) -> None:
        self._taken -= 1
        if not work.cancelled():
            work.exception()  # looked at, so that nobody is told of it where nobody waits any more

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
