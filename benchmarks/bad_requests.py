"""Requests that nobody means, for every address of the page: `python benchmarks/bad_input.py --cases 0 --files 0`.

A server reads a prepared folder beside which lies a file that must never be read. Half of the requests come from a
corpus (values for every parameter of every address, paths that leave the folder, methods, hosts, origins, tokens,
lengths, bodies that are too large or no table), half from hypothesis (texts, bytes, whole requests). A request ends
well if it is answered, refused with one sentence, or its connection closed; a status of 500, a word of the secret, a
path that leaves and is not logged, or a server that answers no more is a fault. At the end come the places and ports
that cannot be served, and two servers on one folder.
"""

from __future__ import annotations

import http.client
import json
import logging
import random
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from theodolite.errors import BadInput
from theodolite.serving.folder import Folder
from theodolite.serving.guard import LARGEST
from theodolite.serving.parts.every import every
from theodolite.serving.requests import Control
from theodolite.serving.runs import COMPARED, CONTROLS, PLACE
from theodolite.serving.serve import Served, serve
from theodolite.serving.stores import Stores
from theodolite.serving.tables import ASKED, NAME

SECRET = b"nothing of this may be read"
LEAVING = ["..", "../outside", "survey/../../outside", "/etc", "linked", "file-linked", "runs/../../outside"]
STRANGE = [*LEAVING, "%2e%2e/outside", "....//outside", "~", "\0", "a" * 900, "//etc", "\\..\\outside", "survey/."]
VALUES = ["", " ", "nan", "inf", "-1", "0", "1e400", "9" * 5000, "１２", "٣", "0x10", "1_0", "☃", "[" * 5000, "null"]
VALUES += ["\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "%", "'\";--", "<script>", "a\nb", "\x1b[31m"]
METHODS = ["PUT", "PATCH", "OPTIONS", "TRACE", "FOO", "HEAD", "DELETE", "POST", "CONNECT"]
HEADERS = [
    *({"Host": host} for host in ("evil.example", "", "127.0.0.1:1", "localhost.evil.example", "a" * 9000)),
    *({"Origin": origin} for origin in ("http://evil.example", "null", "")),
    *({"Cookie": cookie} for cookie in ("", "theodolite-1=x", "a=" + "b" * 9000, "\xff", "=;=;")),
    *({"Content-Length": length} for length in ("-1", "1e9", "9" * 30, str(LARGEST + 1))),
    *({"Transfer-Encoding": coding} for coding in ("gzip", "chunked, chunked")),
    {"Sec-Fetch-Site": "cross-site"},
    {"Expect": "100-continue"},
    {"Range": "bytes=0-1"},
    {"If-None-Match": "*"},
    {"X-Forwarded-Host": "evil.example"},
]
BODIES = {
    "empty.csv": b"",
    "picture.csv": b"\x89PNG\r\n\x1a\n\xff\xfe",
    "ragged.csv": b"a,b\n1\n1,2,3\n",
    "no-rows.csv": b"a,b\n",
    "no-names.csv": b"1,2\n3,4\n",
    "quoted.csv": b'a,b\n"' + b"x" * 300_000 + b'",1\n',
    "open-quote.csv": b'a,b\n"1,2\n3,4\n',
    "nul.csv": b"a,b\n\x00,1\n",
    "twice.csv": b"a,a\n1,2\n3,4\n",
    "wide.csv": b",".join(b"c%d" % i for i in range(20_000)) + b"\n" + b",".join([b"1"] * 20_000) + b"\n",
    "nan.csv": b"a,b\nnan,inf\n-inf,nan\n",
    "digits.csv": b"a,b\n" + b"9" * 5000 + b",1\n" + b"1e999,2\n",
    "other-digits.csv": "a,b\n１２,٣\n".encode(),
    "utf-16.csv": "a,b\n1,2\n".encode("utf-16"),
    "formula.csv": b"a,b\n=cmd|' /C calc'!A0,1\n",
    "page.csv": b"<!doctype html><script>alert(1)</script>",
    "table.csv.gz": b"a,b\n1,2\n",
    "../../etc/passwd": b"a,b\n1,2\n",
    "a\0.csv": b"a,b\n1,2\n",
    "store.db": b"SQLite format 3\0",
    "large.csv": b"a,b\n" + b"1,2\n" * (LARGEST // 4 + 1),
}


@dataclass(frozen=True)
class Request:
    route: str
    path: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    leaves: bool = False
    raw: bytes | None = None  # sent as it is

    def __str__(self) -> str:
        shown = f"{self.method} {self.path[:160]} {str(self.headers)[:80] if self.headers else ''}"
        return repr(self.raw[:160]) if self.raw is not None else shown


def routes() -> dict[str, tuple[str, tuple[Control, ...]]]:
    """By address: the method, and what may be asked."""
    with tempfile.TemporaryDirectory() as folder:
        place = Folder(folder)
        parts = every(place, Stores(place))
    found: dict[str, tuple[str, tuple[Control, ...]]] = {
        "/": ("GET", ()),
        "/page.css": ("GET", ()),
        "/page.js": ("GET", ()),
        "/report": ("GET", (PLACE,)),
        "/api/places": ("GET", ()),
        "/api/runs": ("GET", tuple(CONTROLS)),
        "/api/compare": ("GET", tuple(COMPARED)),
        "/api/tables": ("POST", (NAME,)),
        "/api/tables/TABLE": ("GET", ()),
        "/api/tables/TABLE/discover": ("POST", tuple(ASKED)),
    }
    for part in parts:
        for answer in part.answers:
            found[f"/api/part/{part.id}" + (f"/{answer}" if answer else "")] = ("GET", tuple(part.controls))
    return found


def corpus(known: dict[str, tuple[str, tuple[Control, ...]]], generator: random.Random) -> list[Request]:
    """In a drawn order, every address among the first."""
    found = []
    for route, (method, controls) in known.items():
        for control in controls:
            for value in [*VALUES, *STRANGE]:
                asked = {**({"place": "runs"} if any(c.name == "place" for c in controls) else {}), control.name: value}
                leaves = control.name == "place" and value in LEAVING
                body = b"a,b\n1,2\n" if route == "/api/tables" else None
                found.append(Request(route, f"{route}?{urlencode(asked)}", method, body=body, leaves=leaves))
        found += [Request(route, route, other) for other in METHODS]
        found += [Request(route, route, method, headers) for headers in HEADERS]
        found += [Request(route, f"{route}?{query}", method) for query in ("x=1", "token=wrong", "a=&a=", "&" * 500)]
        found += [Request(route, route + quote(path), method) for path in ("/..", "/../../etc/passwd", "/x", "//")]
    generator.shuffle(found)
    bodies = [
        Request("/api/tables", f"/api/tables?{urlencode({'name': name})}", "POST", body=body)
        for name, body in BODIES.items()
    ]
    first = [next(one for one in found if one.route == route) for route in known]
    named = [*first, *bodies, *(one for one in found if one.leaves)]
    return list({id(one): one for one in [*named, *found]}.values())


def drawn(known: dict[str, tuple[str, tuple[Control, ...]]], count: int, number: int) -> list[Request]:
    """By hypothesis: texts for parameters, names that nobody knows, and bytes in the place of a request."""
    names = sorted({control.name for _, controls in known.values() for control in controls})
    texts = st.text(max_size=40) | st.integers().map(str) | st.floats().map(str)
    asked = st.dictionaries(st.sampled_from(names) | st.text(max_size=8), texts, max_size=5)
    requests = st.builds(
        lambda route, query: Request(route, f"{route}?{_encoded(query)}", known[route][0]),
        st.sampled_from(sorted(known)),
        asked,
    ) | st.builds(
        lambda route, body: Request(route, "/api/tables?name=a.csv", "POST", body=body),
        st.just("/api/tables"),
        st.binary(max_size=400),
    )
    noise = st.builds(lambda raw: Request("no request", "", raw=raw + b"\r\n\r\n"), st.binary(max_size=300))
    found: list[Request] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(requests | noise)
    def collect(request: Request) -> None:
        found.append(request)

    collect()
    return found[:count]


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def requested(count: int, number: int, say: Callable[[str], None]) -> dict[str, Counter[str]]:
    """Sends `count` requests; how each address ended."""
    ended: dict[str, Counter[str]] = {}
    heard = Heard()
    logging.getLogger("theodolite").addHandler(heard)
    known = routes()
    with tempfile.TemporaryDirectory() as folder:
        out = prepare(Path(folder))
        with serve(out, port=0, wait=False) as page:
            table = json.loads(_sent(page, Request("", "/api/tables?name=a.csv", "POST", body=_table()))[1])["id"]
            half = corpus(known, random.Random(number))[: count - count // 2]
            for request in [*half, *drawn(known, count // 2, number)]:
                heard.lines.clear()
                word = verdict(page, request, table, heard)
                ended.setdefault(request.route, Counter())[word.partition(":")[0]] += 1
                if word.startswith("fault"):
                    say(f"{request}\n    {word}")
        ended["places and ports"] = Counter(_places(out, say))
    logging.getLogger("theodolite").removeHandler(heard)
    return ended


def prepare(folder: Path) -> Path:
    """A store, a report, links that leave; and beside them what must not be read."""
    from theodolite import learn

    out, outside = folder / "out", folder / "outside"
    learn("mlp", "parity", steps=2, seeds=2, shape={"width": 4}, out=out / "runs")
    (out / "survey").mkdir()
    (out / "survey" / "report.html").write_text("<!doctype html><title>a report</title>")
    outside.mkdir()
    for name in ("report.html", "store.db"):
        (outside / name).write_bytes(SECRET)
    (out / "linked").symlink_to(outside)
    (out / "file-linked").mkdir()
    for name in ("report.html", "store.db"):
        (out / "file-linked" / name).symlink_to(outside / name)
    return out


def verdict(page: Served, request: Request, table: str, heard: Heard) -> str:
    try:
        status, body = _raw(page, request.raw) if request.raw is not None else _sent(page, request, table)
    except (OSError, http.client.HTTPException, ValueError):  # also a request that no client can write
        status, body = 0, b""
    try:
        alive, _ = _sent(page, Request("", "/page.css"))
    except OSError:
        return "fault: the server answers no more"
    if alive != 200:
        return f"fault: the style sheet is answered with {alive}"
    if SECRET in body:
        return "fault: it read what lies outside"
    if status >= 500 and status not in (503, 504, 507):
        return f"fault: status {status}, {body[:200]!r}, {heard.lines[-1:]}"
    if request.leaves and not any("leaves the folder" in line for line in heard.lines):
        return f"fault: status {status}, a path that leaves and is not logged"
    if request.leaves and status != 404:
        return f"fault: status {status} for a path that leaves"
    if status == 0:
        return "closed"
    if status < 400:
        return "answered"
    if request.method != "HEAD" and request.raw is None and status not in (400, 431) and not _sentence(body):
        return f"fault: status {status} without a sentence, {body[:200]!r}"
    return "busy" if status > 500 else "refused"


def _places(out: Path, say: Callable[[str], None]) -> Iterator[str]:
    """What cannot be served is a sentence; two servers on one folder answer alike and do not know each other."""
    with serve(out, port=0, wait=False) as page, serve(out, port=0, wait=False) as other:
        answers = [_sent(one, Request("", "/api/runs?place=runs")) for one in (page, other)]
        token = other.address.partition("token=")[2]
        foreign = _sent(page, Request("", f"/api/places?token={token}"), with_token=False)[0]
        same = answers[0][0] == 200 and answers[0] == answers[1] and foreign == 403
        yield "answered" if same else "fault"
        if not same:
            say(f"two servers on one folder: {answers}, {foreign}")
        empty = out / "empty"
        empty.mkdir()
        with serve(empty, port=0, wait=False) as alone:
            status, body = _sent(alone, Request("", "/api/places"))
            told = status == 200 and b"There is no survey" in body
            yield "answered" if told else "fault"
            if not told:
                say(f"a folder without a survey: {status} {body[:200]!r}")
        cases: list[dict[str, Any]] = [
            {"out": out, "port": page.port},
            *({"out": out, "port": port} for port in (-1, 70_000, 1.5, True)),
            *(
                {"out": out, "port": 0, "host": host}
                for host in ("no.such.host.invalid", "203.0.113.9", "☃", "a" * 300)
            ),
            *({"out": place, "port": 0} for place in (out / "none", __file__, "\0", "a" * 5000)),
        ]
        for case in cases:
            try:
                serve(**case, wait=False).stop()
                word = "fault"
            except BadInput as error:
                word = "refused" if len(str(error).splitlines()) == 1 else "fault"
            except Exception as error:
                word = "fault"
                say(f"serve {case}\n    {type(error).__name__}: {error}")
            yield word


def _sent(page: Served, request: Request, table: str = "", *, with_token: bool = True) -> tuple[int, bytes]:
    token = page.address.partition("token=")[2]
    headers = {"Cookie": f"theodolite-{page.port}={token}"} if with_token else {}
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=90)
    try:
        path = request.path.replace("TABLE", table)
        connection.request(request.method, path, request.body, headers | request.headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _raw(page: Served, noise: bytes) -> tuple[int, bytes]:
    with socket.create_connection(("127.0.0.1", page.port), timeout=20) as connection:
        connection.sendall(noise)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        text = connection.recv(4000)
    words = text.split(b" ", 2)
    return (int(words[1]), text) if len(words) > 1 and words[1].isdigit() else (0, text)


def _sentence(body: bytes) -> bool:
    try:
        said = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(said, str) and len(said.splitlines()) == 1 and "Traceback" not in said


def _table() -> bytes:
    return b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i, i % 7, i * (i % 7)) for i in range(80))


def _encoded(query: dict[str, str]) -> str:
    return urlencode({name.encode("utf-8", "replace"): text.encode("utf-8", "replace") for name, text in query.items()})
