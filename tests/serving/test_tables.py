"""A table that is dropped: its columns, its graph, and what is no table."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from theodolite.serving.discovering import main
from theodolite.serving.serve import serve

from .conftest import Client


def made(rows: int = 60) -> bytes:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (rows, 3))
    y = x[:, 0] * x[:, 1] + x[:, 2]
    lines = [",".join(f"{value:.5f}" for value in (*row, out)) for row, out in zip(x, y, strict=True)]
    return "\n".join(["a,b,c,y", *lines]).encode()


def kept() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("theodolite-table-*"))


def dropped(client: Client, content: bytes, name: str = "small.csv"):
    return client.send("/api/tables", method="POST", body=content, name=name)


def test_a_table_is_read_and_forgotten(client):
    before = kept()
    table = dropped(client, made()).json
    assert (table["columns"], table["rows"], table["state"]) == (["a", "b", "c", "y"], 60, "waiting")
    assert len(kept() - before) == 1
    assert client.send(f"/api/tables/{table['id']}").json["name"] == "small.csv"
    assert client.send(f"/api/tables/{table['id']}", method="DELETE").status == 200
    assert kept() == before
    assert client.send(f"/api/tables/{table['id']}").status == 404


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\xff\xfe", "UTF-8"),
        ("a.csv", b"a,b\n1\n", "line 2 of 'a.csv'"),
        ("a.csv", b"a,b\n", "no rows"),
        ("a.csv", b"1,2\n3,4\n", "no names"),
        ("a.csv", b'a,b\n"' + b"x" * 200_000 + b'",1\n', "breaks off"),
        ("a.png", b"a,b\n1,2\n", "no table"),
        ("../../etc/passwd", b"a,b\n1,2\n", "no table"),
        ("a.csv.gz", b"a,b\n1,2\n", "no table"),
    ],
)
def test_what_is_no_table_is_a_sentence_and_leaves_nothing(client, name, content, words):
    before = kept()
    sent = dropped(client, content, name)
    assert sent.status == 400
    assert words in sent.json["error"]
    assert "theodolite-table" not in sent.json["error"]
    assert kept() == before


def test_only_a_few_tables_are_kept(tmp_path):
    before = kept()
    with serve(tmp_path, port=0, wait=False) as page:
        client = Client(page)
        idents = [dropped(client, made(20)).json["id"] for _ in range(6)]
        assert [client.send(f"/api/tables/{ident}").status for ident in idents] == [404] * 2 + [200] * 4
        assert client.send(f"/api/tables/{idents[-1]}/discover", method="POST", target="z").status == 400
        sent = client.send(f"/api/tables/{idents[-1]}/discover", method="POST", target="y", seconds="0")
        assert "5 to 600" in sent.json["error"]
    assert kept() == before


def ended(client: Client, ident: str):
    deadline = time.monotonic() + 120
    while (state := client.send(f"/api/tables/{ident}").json)["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return state


def test_one_table_at_a_time_is_looked_at_in_a_process_that_can_be_ended(tmp_path, monkeypatch):
    with serve(tmp_path, port=0, wait=False) as page:
        client = Client(page)
        first, second = (dropped(client, made(200)).json["id"] for _ in range(2))
        begun = client.send(f"/api/tables/{first}/discover", method="POST", target="y", seconds=300)
        assert begun.json["state"] == "running"
        sent = client.send(f"/api/tables/{second}/discover", method="POST", target="y")
        assert (sent.status, "another table" in sent.json["error"]) == (503, True)
        assert client.send(f"/api/tables/{first}", method="DELETE").json["state"] == "cancelled"
        monkeypatch.setattr("sys.executable", shutil.which("false"))
        client.send(f"/api/tables/{second}/discover", method="POST", target="y", seconds=5)
        state = ended(client, second)
        assert (state["state"], "broke off" in state["error"]) == ("failed", True)


def test_the_process_says_in_a_sentence_what_it_cannot_do(tmp_path, capsys):
    """Too few rows are refused; what has a graph is found in the browser's test."""
    table = tmp_path / "few.csv"
    table.write_bytes(made(40))
    main(str(table), "y", "5")
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "40 rows are too few" in said["error"]
