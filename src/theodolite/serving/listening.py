"""uvicorn with our limits: a connection that says nothing is closed, and not too many are open at once.

uvicorn's own limit would count connections that nobody waits at, and refuse everything while a crowd keeps some open.
Here these are closed to make room; how many requests are answered at once is the guard's business.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_SILENT = 15.0  # seconds in which a request must have been sent
_CONNECTIONS = 512
_SPARE = 200  # files and sockets that are not connections


def _most() -> int:
    """Connections that the system lets us have open."""
    try:
        import resource
    except ImportError:  # Windows
        return 2 * _CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 10**6 if soft == resource.RLIM_INFINITY else max(soft - _SPARE, soft // 2)


class _Impatient(H11Protocol):
    """Closes a connection whose first request does not come, or comes too slowly; and, where there are many, one that
    has its answer. Who still waits for one is left alone, up to what the system lets us have open."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._limit = self.loop.call_later(_SILENT, self._too_slow)
        if len(self.connections) > _CONNECTIONS:
            found = next((one for one in self.connections if isinstance(one, _Impatient) and one._idle()), None)
            if found is not None or len(self.connections) > _most():
                (found or self).transport.close()

    def _idle(self) -> bool:
        answered = self.cycle is not None and self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]
        return answered and not self.transport.is_closing()

    def _too_slow(self) -> None:
        if self.cycle is None and not self.transport.is_closing():  # pyright: ignore[reportUnnecessaryComparison]
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limit.cancel()
        super().connection_lost(exc)


def listen(app: Any) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_Impatient,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=32 * 1024,
        )
    )
