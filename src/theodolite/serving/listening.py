"""uvicorn with our limits: a connection that says nothing is closed, and not too many are open at once."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_SILENT = 15.0  # seconds in which a request must have been sent
_CONNECTIONS = 512


class _Impatient(H11Protocol):
    """Closes a connection whose first request does not come, or comes too slowly."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._limit = self.loop.call_later(_SILENT, self._too_slow)

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
            limit_concurrency=_CONNECTIONS,
            h11_max_incomplete_event_size=32 * 1024,
        )
    )
