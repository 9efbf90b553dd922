"""One folder to serve, and one server on it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.bench.members import member, stored
from theodolite.serving.serve import Served, serve

SECRET = "nothing of this may be read"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Sends what it is told, as a browser or as nobody's browser would."""

    def __init__(self, page: Served) -> None:
        self.page, (_, _, self.token) = page, page.address.partition("token=")
        self.host = f"127.0.0.1:{page.port}"

    def send(
        self,
        path: str,
        *,
        method: str = "GET",
        token: str | None = "",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        **query: Any,
    ) -> Answer:
        """`token`: the right one unless another is given, None for none."""
        cookie = {} if token is None else {"Cookie": f"theodolite-{self.page.port}={token or self.token}"}
        connection = http.client.HTTPConnection("127.0.0.1", self.page.port, timeout=30)
        try:
            address = f"{path}?{urlencode(query)}" if query else path
            connection.request(method, address, body, cookie | (headers or {}))
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def part(self, name: str, **values: Any) -> Any:
        answer = self.send(f"/api/part/{name}", **values)
        assert answer.status == 200, answer.body
        return answer.json


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, a survey with a report, a link that leaves, and beside it what must not be read."""
    place = tmp_path_factory.mktemp("served")
    rows = [member("lstm", seed=s, accuracy=0.9 + s / 100, solved_at=400) for s in range(4)]
    rows += [member("rnn", seed=s, accuracy=0.6 + s / 50) for s in range(4)]
    rows += [member("lstm", "dyck", seed=s, task_args={"depth": 3}) for s in range(2)]
    out = place / "out"
    stored(out / "runs", rows)
    for name in ("survey", "older"):
        (out / name).mkdir()
        (out / name / "report.html").write_text(f"<!doctype html><title>{name}</title><p>the report of {name}</p>")
    outside = place / "outside"
    outside.mkdir()
    (outside / "report.html").write_text(SECRET)
    (outside / "store.db").write_text(SECRET)
    (out / "linked").symlink_to(outside)
    (out / "file-linked").mkdir()
    (out / "file-linked" / "report.html").symlink_to(outside / "report.html")
    return out


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Served]:
    with serve(folder, port=0, wait=False) as served:
        yield served


@pytest.fixture(scope="module")
def client(page: Served) -> Client:
    return Client(page)
