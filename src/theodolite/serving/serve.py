"""`serve`: the page on this machine, until it is stopped."""

from __future__ import annotations

import errno
import logging
import secrets
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from theodolite.errors import BadInput
from theodolite.notebook import Shown

logger = logging.getLogger(__name__)

PORT = 8765
_WAIT = 20.0  # seconds for a server to begin, or to end what it answers


class Served(Shown):
    """A page that is being served; `address` has the token, and whoever has it may read what is below `out`."""

    def __init__(self, out: Path, address: str, server: Any, thread: threading.Thread, close: Any) -> None:
        self.out, self.address = out, address
        self._server, self._thread, self._close = server, thread, close

    @property
    def port(self) -> int:
        return int(self.address.rpartition("/?")[0].rpartition(":")[2])

    def __enter__(self) -> Served:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def wait(self) -> None:
        """Until it is stopped, by `stop` or by Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def stop(self) -> None:
        """End it: requests that are being answered have a moment, computations none."""
        self._server.should_exit = True
        self._thread.join(_WAIT)
        self._close()


def serve(out: str | Path = ".", *, port: int = PORT, host: str = "127.0.0.1", wait: bool = True) -> Served:
    """A page to play on: surveys and runs below a folder while they go on, the advisor, ranks, fixed points, graphs.

    It is read-only. Only this machine can reach it unless another `host` is given, and only with the token that is part
    of its address.

    Parameters:
        out: folder below which surveys and stores are shown; nothing outside it can be read
        port: 0 takes a free one
        host: the address that it listens on; 0.0.0.0 for all of this machine's, which lets others in
        wait: until it is stopped; False gives back the page that is being served at once, with its `address`

    Examples:
        >>> with serve(port=0, wait=False) as page:
        ...     page.address.startswith("http://127.0.0.1:")
        True
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise BadInput("the page needs starlette and uvicorn: pip install 'theodolite[page]'") from None
    from theodolite.serving.app import Page, application
    from theodolite.serving.folder import Folder
    from theodolite.serving.guard import is_loopback, names_of
    from theodolite.serving.listening import listen

    folder = Folder(out)
    bound = _bound(host, port)
    number = bound.getsockname()[1]
    token = secrets.token_urlsafe(24)
    if not is_loopback(host):
        logger.warning("the page listens on %s: whoever reaches it and has its address reads what is below --out", host)
    try:
        page = Page(folder, token, f"theodolite-{number}")
        server = listen(application(page, token=token, host=host, port=number))
    except BaseException:
        bound.close()
        raise
    thread = threading.Thread(target=server.run, args=([bound],), name="theodolite-serve", daemon=True)
    thread.start()
    deadline = time.monotonic() + _WAIT
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    served = Served(folder.root, f"http://{names_of(host)[0]}:{number}/?token={token}", server, thread, page.close)
    if not server.started:
        served.stop()
        raise BadInput(f"the page could not be served on {host}:{number}: choose another --port")
    if wait:
        with served:
            logger.info("served at %s", served.address)
            served.wait()
    return served


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens, or a sentence."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 1 << 16:
        raise BadInput(f"there is no port {port!r}: give a number from 1 to 65535, or 0 for a free one")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)  # without the protocol asyncio lets every answer wait 40 ms
    except (OSError, UnicodeError) as error:
        raise BadInput(f"there is no address '{host}' here: give --host a name or number of this machine") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise BadInput(
                f"port {port} is taken by another program: choose another --port, or 0 for a free one"
            ) from error
        raise BadInput(
            f"'{host}:{port}' cannot be listened on ({error.strerror}): choose another --host or --port"
        ) from error
    return bound
