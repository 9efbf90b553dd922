"""The addresses of the page, and what answers at each."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from theodolite.report.page.template import environment, verbatim
from theodolite.serving.calculator import Busy, Calculator
from theodolite.serving.folder import REPORT, Folder
from theodolite.serving.guard import REPORT_POLICY, Guard, Refused
from theodolite.serving.parts.every import every
from theodolite.serving.parts.part import Part
from theodolite.serving.requests import Control, read
from theodolite.serving.runs import COMPARED, CONTROLS, PLACE, compared, listed
from theodolite.serving.stores import Stores
from theodolite.serving.tables import ASKED, NAME, Tables
from theodolite.serving.warm import warm
from theodolite.version import __version__

_EMPTY = (
    "There is no survey and no store below this folder yet: run for example 'theodolite survey --out {folder}/survey' "
    "or 'theodolite learn --net lstm --task parity-check --out {folder}/runs', and it appears here."
)
_PAINTED = 1.0  # seconds


class Page:
    """What the addresses share."""

    def __init__(self, folder: Folder, token: str, cookie: str) -> None:
        self.folder, self._token, self._cookie = folder, token, cookie
        self.calculator, self.reader = Calculator(), Calculator(workers=2, waiting=200)
        self.stores, self.tables = Stores(folder), Tables()
        self._warm: asyncio.Task[None] | None = None
        parts = every(folder, self.stores)
        self._parts = {part.id: part for part in parts}
        templates = environment("theodolite.serving")
        self._index = templates.get_template("serve.html.j2").render(
            parts=parts, folder=str(folder.root), version=__version__
        )
        self._style = str(verbatim(templates, "colours.css", "serve.css"))
        self._script = files("theodolite.serving").joinpath("templates/serve.js").read_text("utf-8")

    def routes(self) -> list[Route]:
        return [
            Route("/", self.index),
            Route("/page.css", self.style),
            Route("/page.js", self.script),
            Route("/report", self.report),
            Route("/api/places", self.places),
            Route("/api/runs", self.runs),
            Route("/api/compare", self.compare),
            Route("/api/tables", self.upload, methods=["POST"]),
            Route("/api/tables/{table}", self.table, methods=["GET", "DELETE"]),
            Route("/api/tables/{table}/discover", self.discover, methods=["POST"]),
            Route("/api/part/{part}", self.part),
            Route("/api/part/{part}/{answer}", self.part),
        ]

    async def index(self, _: Request) -> Response:
        """The cookie takes the token's place, so that addresses inside the page need none."""
        if not self._warm:
            self._warm = asyncio.create_task(self._warmed())
        response = HTMLResponse(self._index)
        response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        return response

    async def _warmed(self) -> None:
        """Once the page is painted, what it will ask for is made ready."""
        await asyncio.sleep(_PAINTED)
        with suppress(Busy):
            await self.calculator.ask(warm)

    async def style(self, _: Request) -> Response:
        return Response(self._style, media_type="text/css")

    async def script(self, _: Request) -> Response:
        return Response(self._script, media_type="text/javascript")

    async def report(self, request: Request) -> Response:
        asked = _asked(request, (PLACE,))
        file = self.folder.file(asked["place"], REPORT)
        content = await asyncio.to_thread(file.read_bytes)
        return HTMLResponse(content, headers={"content-security-policy": REPORT_POLICY})

    async def places(self, request: Request) -> Response:
        _asked(request, ())
        found, more = await self.reader.ask(self.folder.places)
        shown: dict[str, Any] = {"places": [asdict(place) for place in found], "more": more, "says": []}
        if not found:
            shown["says"] = [_EMPTY.format(folder=self.folder.root)]
        if more:
            shown["says"].append("The folder holds more than is looked at: serve a folder inside it.")
        return _unless_known(request, shown)

    async def runs(self, request: Request) -> Response:
        asked = _asked(request, CONTROLS)
        stamp = self.stores.stamp(asked["place"])
        tag = _tag([stamp, sorted(asked.items())])
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        answer = partial(self.stores.read, asked.pop("place"), partial(listed, asked=asked))
        found = await self.reader.ask(answer, ("runs", tag))
        return JSONResponse(found, headers={"etag": tag})

    async def compare(self, request: Request) -> Response:
        asked = _asked(request, COMPARED)
        key = ("compare", self.stores.stamp(asked["place"]), *sorted(asked.items()))
        place = asked.pop("place")
        compute = lambda: self.stores.read(place, partial(compared, **asked)).to_json()
        return JSONResponse(await self.reader.ask(compute, key))

    async def part(self, request: Request) -> Response:
        part, answer = self._found(request)
        values = part.asked(answer, _asked(request, part.controls))
        compute = lambda: part.answers[answer](**values).to_json()
        key = None if part.changes else (part.id, answer, *sorted(values.items()))
        return JSONResponse(await self.calculator.ask(compute, key))

    async def upload(self, request: Request) -> Response:
        name = _asked(request, (NAME,))["name"]
        content = await request.body()
        return JSONResponse(await self.reader.ask(partial(self.tables.add, name, content)), 201)

    async def table(self, request: Request) -> Response:
        _asked(request, ())
        do = self.tables.remove if request.method == "DELETE" else self.tables.state
        return JSONResponse(await self.reader.ask(partial(do, request.path_params["table"])))

    async def discover(self, request: Request) -> Response:
        asked = _asked(request, ASKED)
        return JSONResponse(await self.reader.ask(partial(self.tables.begin, request.path_params["table"], **asked)))

    def close(self) -> None:
        self.calculator.close()
        self.reader.close()
        self.tables.close()

    def _found(self, request: Request) -> tuple[Part, str]:
        part, answer = self._parts.get(request.path_params["part"]), request.path_params.get("answer", "")
        if part is None or answer not in part.answers:
            raise Refused(404, f"there is no part '{request.path_params['part'][:80]}' of the page")
        return part, answer


def application(page: Page, **guarding: Any) -> Guard:
    """A router alone: what is raised comes to the guard, which has a sentence for it."""
    return Guard(Router(page.routes(), redirect_slashes=False, default=_nothing), **guarding)


async def _nothing(scope: Scope, _: Receive, __: Send) -> None:
    raise Refused(404, f"there is nothing at '{scope['path'][:200]}': open the page itself")


def _asked(request: Request, controls: Sequence[Control]) -> dict[str, Any]:
    return read(controls, [(name, text) for name, text in request.query_params.multi_items() if name != "token"])


def _tag(what: Any) -> str:
    return f'"{hashlib.sha256(json.dumps(what, default=str).encode()).hexdigest()[:24]}"'


def _unless_known(request: Request, content: Any) -> Response:
    """Nothing but its mark where the page has it already."""
    tag = _tag(content)
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return JSONResponse(content, headers={"etag": tag})
