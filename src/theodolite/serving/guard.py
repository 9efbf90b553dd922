"""What every request passes before it is answered: whose it is, from where, how long and how large it may be.

A page of another site must learn nothing here and change nothing: the token is asked of every request, the name in the
Host header must be one this server is bound to (a foreign name that was pointed at this machine is not), and what sends
something must come from our own page.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import socket
from collections.abc import Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import PurePosixPath
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from theodolite.errors import TheodoliteError
from theodolite.serving.calculator import Busy
from theodolite.serving.folder import NotThere

logger = logging.getLogger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
# A report has its script and style in itself. It runs in an origin of its own and can reach nothing.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
LARGEST = 20 * 2**20  # bytes of a table
_LONGEST_ADDRESS = 8192
_AT_ONCE = 256  # requests
# What a browser asks for by itself, and would not ask for again; none of it is computed.
NEVER_BUSY = ("/", "/page.css", "/page.js", "/report")
_SECONDS = 60.0
_METHODS = ("GET", "HEAD", "POST", "DELETE")
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Refused(TheodoliteError):
    """With the status that says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class TooLarge(Refused):
    def __init__(self) -> None:
        super().__init__(413, f"this is larger than {LARGEST >> 20} MB: give fewer rows, or use 'theodolite discover'")


class Guard:
    """`host` is what the server is bound to; the cookie has the port in its name, since cookies do not tell ports
    apart."""

    def __init__(self, app: ASGIApp, token: str, host: str, port: int, seconds: float = _SECONDS) -> None:
        self._app, self._token, self._host, self._port, self._seconds = app, token, host, port, seconds
        self.cookie = f"theodolite-{port}"
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        self._running += 1
        try:
            async with asyncio.timeout(self._seconds):
                self._check(scope)
                scope["app"] = self  # so that a router raises what it would answer by itself
                await self._app(scope, _limited(receive, Headers(scope=scope)), answer)
        except Exception as error:
            if started:  # too late for a sentence: the connection ends in the middle
                logger.warning("%s broke off: %s", scope["path"][:200], error)
                raise
            status, sentence = explained(error)
            if status == 500:
                logger.exception("a fault at %s", scope["path"][:200])
            # A crowd that is refused does not keep its connections, so that there is room for who asks again.
            again = {"retry-after": "1", "connection": "close"} if isinstance(error, Busy) else None
            await JSONResponse({"error": sentence}, status, again)(scope, receive, answer)
        finally:
            self._running -= 1

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if self._running > _AT_ONCE and scope["path"] not in NEVER_BUSY:
            raise Busy(f"{self._running} requests are open already: ask again in a moment")
        if scope["method"] not in _METHODS:
            raise Refused(405, f"{scope['method'][:20]} is not answered here: use GET")
        if len(scope["query_string"]) > _LONGEST_ADDRESS or len(scope["path"]) > _LONGEST_ADDRESS:
            raise Refused(414, "the address is too long: leave something out")
        if ".." in PurePosixPath(scope["path"]).parts:
            logger.warning("refused: the path %r would leave the folder", scope["path"][:200])
            raise Refused(404, "a path may not lead out of the folder: open the page that 'theodolite serve' printed")
        names = headers.getlist("host")
        if len(names) != 1 or not bound_to(names[0], self._host, self._port):
            logger.warning("refused: a request for the host %r", names[:1])
            raise Refused(421, "this server has another name: open the address that 'theodolite serve' printed")
        asked = _queried(scope)
        if not self._known(headers, asked):
            raise Refused(403, "the token is missing or wrong: open the address that 'theodolite serve' printed")
        if not _ours(scope, headers, names[0], with_token=asked is not None):
            logger.warning("refused: a request from %r", headers.get("origin", headers.get("sec-fetch-site")))
            raise Refused(403, "this request comes from another site: open the page itself")

    def _known(self, headers: Headers, asked: str | None) -> bool:
        given = [asked] if asked is not None else [_cookie(text, self.cookie) for text in headers.getlist("cookie")]
        return any(hmac.compare_digest(one.encode(), self._token.encode()) for one in given if one)


def explained(error: Exception) -> tuple[int, str]:
    """The status and the sentence. The page asks again after 503, and after nothing else; a fault of ours is said to be
    one, and its traceback is in the log."""
    if isinstance(error, Refused):
        return error.status, str(error)
    if isinstance(error, HTTPException):
        return error.status_code, f"this is not answered ({error.detail.lower()}): open the page itself"
    if isinstance(error, Busy):
        return 503, str(error)
    if isinstance(error, NotThere):
        return 404, str(error)
    if isinstance(error, TheodoliteError):
        return 400, str(error)
    if isinstance(error, TimeoutError):
        return 504, "this took too long: ask for less, or try again in a moment"
    if isinstance(error, MemoryError):
        return 507, "this takes more memory than there is: ask for less"
    return 500, "a fault of theodolite's: its log says where (run 'theodolite serve -v')"


def bound_to(name: str, host: str, port: int) -> bool:
    """Whether a Host header names this server. Where it is bound to every address, every number is its name: who
    points a name of his own at this machine has a name, and no number."""
    own, _, number = name.rpartition(":")
    if not own or number != str(port):
        return port == 80 and bound_to(f"{name}:80", host, port) if not number.isdigit() else False
    own = own.lower()
    loopback = host in ("localhost", "::1") or _is_loopback(host)
    if loopback and own in ("localhost", "127.0.0.1", "[::1]"):
        return True
    if own.strip("[]") == host.lower():
        return True
    return host in ("0.0.0.0", "::", "") and (_is_address(own.strip("[]")) or own in ("localhost", _machine()))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_loopback(text: str) -> bool:
    return _is_address(text) and ipaddress.ip_address(text).is_loopback


def is_loopback(host: str) -> bool:
    return host == "localhost" or _is_loopback(host)


def _machine() -> str:
    return socket.gethostname().lower()


def _ours(scope: Scope, headers: Mapping[str, str], host: str, *, with_token: bool) -> bool:
    """Browsers say where a request comes from. One who follows a link to the page may come from anywhere."""
    came = headers.get("sec-fetch-site")
    if scope["method"] in ("GET", "HEAD"):
        opened = scope["path"] == "/" and with_token and headers.get("sec-fetch-mode", "navigate") == "navigate"
        return came in (None, "same-origin", "none") or opened
    origin = headers.get("origin")
    if origin is None:
        return came in (None, "same-origin")
    return origin.lower() == f"http://{host.lower()}"


def _queried(scope: Scope) -> str | None:
    try:
        found = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=100).get("token")
    except ValueError:
        raise Refused(400, "the address has too many parts: leave something out") from None
    return None if found is None else found[0]


def _cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _limited(receive: Receive, headers: Headers) -> Receive:
    """Ends a request that sends more than is taken, whatever it said of its length."""
    said = headers.get("content-length", "0")
    if not said.isdigit() or len(said) > 12 or int(said) > LARGEST:
        raise TooLarge
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST:
            raise TooLarge
        return message

    return limited


def names_of(host: str) -> Sequence[str]:
    """What a browser can call it, the first to be printed."""
    shown = _machine() if host in ("0.0.0.0", "::", "") else host
    return [f"[{shown}]" if ":" in shown else shown]
