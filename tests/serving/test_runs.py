"""Runs and surveys below the folder: listed, filtered, compared as the commands do, and seen while they grow."""

from __future__ import annotations

import shutil
from itertools import count

import pytest

from tests.bench.members import member, stored
from theodolite.bench.compare import compare
from theodolite.errors import StoreError
from theodolite.serving.calculator import Busy
from theodolite.serving.folder import Folder
from theodolite.serving.serve import serve
from theodolite.serving.stores import Stores

from .conftest import Client


def test_folders_are_listed_with_what_they_hold(client):
    found = {place["path"]: place for place in client.send("/api/places").json["places"]}
    assert found["runs"]["store"]
    assert not found["runs"]["report"]
    assert found["survey"]["report"]


def test_an_empty_folder_says_what_to_do(tmp_path):
    with serve(tmp_path, port=0, wait=False) as page:
        found = Client(page).send("/api/places").json
    assert found["places"] == []
    assert "theodolite survey --out" in found["says"][0]


def test_too_many_folders_are_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr("theodolite.serving.folder._MOST", 3)
    for name in "abcdef":
        (tmp_path / name).mkdir()
    assert Folder(tmp_path).places() == ([], True)


@pytest.mark.parametrize("looks_damaged", [False, True])
def test_a_store_that_a_command_begins_to_write_while_it_is_read_is_read_again(tmp_path, looks_damaged):
    """No command has it open, so it is read without a lock: what is read meanwhile may be of two moments."""
    stored(tmp_path / "runs", [member(seed=0)])
    stores, seen = Stores(Folder(tmp_path)), []

    def answer(trained):
        seen.append(sum(one.members for one in trained.conditions))
        if len(seen) < 3:
            stored(tmp_path / "runs", [member(seed=len(seen))])
            if looks_damaged:
                raise StoreError("the store is damaged")
        return seen[-1]

    assert stores.read("runs", answer) == 3
    assert seen == [1, 2, 3]


def test_a_store_that_is_written_all_the_time_is_said_to_be_and_a_damaged_one_too(tmp_path):
    stored(tmp_path / "runs", [member(seed=0)])
    stores, seeds = Stores(Folder(tmp_path)), count(1)
    with pytest.raises(Busy, match="ask again"):
        stores.read("runs", lambda _: stored(tmp_path / "runs", [member(seed=next(seeds))]))

    def damaged(_):
        raise StoreError("the store is damaged")

    with pytest.raises(StoreError, match="damaged"):
        stores.read("runs", damaged)


def test_a_line_for_each_network_and_task_or_for_each_member(client):
    groups = client.send("/api/runs", place="runs").json
    assert (groups["members"], groups["total"]) == (10, 3)
    assert [row[0] for row in groups["tables"][0]["rows"]] == ["lstm", "rnn", "lstm"]
    assert groups["tables"][0]["rows"][0][4] == "4 of 4"
    members = client.send("/api/runs", place="runs", lines="members").json
    assert len(members["tables"][0]["rows"]) == 10
    assert client.send("/api/runs", place="runs", lines="members", page=1).json["tables"][0]["rows"] == []


@pytest.mark.parametrize(
    ("filters", "members"),
    [
        ({"net": "rnn"}, 4),
        ({"task": "dyck"}, 2),
        ({"status": "solved"}, 4),
        ({"where": "seed=1"}, 3),
        ({"where": "seed=1, net=lstm", "task": "parity-check"}, 1),
    ],
)
def test_filters_are_those_of_the_command(client, filters, members):
    assert client.send("/api/runs", place="runs", **filters).json["members"] == members


@pytest.mark.parametrize(
    "filters",
    [
        {"net": "gru"},
        {"status": "done"},
        {"where": "seed"},
        {"where": "sed=1"},
        {"where": "seed=1,seed=2"},
        {"page": "-1"},
    ],
)
def test_a_filter_that_fits_nothing_is_a_sentence(client, filters):
    sent = client.send("/api/runs", place="runs", **filters)
    assert sent.status == 400
    assert sent.json["error"]


def test_two_lines_are_compared_as_the_command_does(client, folder):
    lstm, rnn, dyck = client.send("/api/runs", place="runs").json["ids"]
    found = client.send("/api/compare", place="runs", first=rnn, second=lstm).json
    truth = compare("rnn", "lstm", folder / "runs", task="parity-check").to_json()
    assert found["data"]["tasks"][0]["difference"] == truth["tasks"][0]["difference"] == pytest.approx(0.285)
    assert found["tables"][0]["rows"][0][-1] == "B higher"
    assert "different tasks" in client.send("/api/compare", place="runs", first=rnn, second=dyck).json["error"]
    assert client.send("/api/compare", place="runs", first=rnn, second="none").status == 400


def test_two_widths_of_one_network_are_told_apart(tmp_path):
    rows = [member(seed=s, shape={"width": w}, accuracy=0.5 + w / 100 + s / 1000) for s in range(3) for w in (8, 16)]
    stored(tmp_path, rows)
    with serve(tmp_path, port=0, wait=False) as page:
        client = Client(page)
        ids = client.send("/api/runs", place=".").json["ids"]
        found = client.send("/api/compare", place=".", first=ids[0], second=ids[1]).json
    assert found["data"]["first"] == "lstm,shape.width=8"
    assert found["data"]["tasks"][0]["difference"] == pytest.approx(0.08)


def test_what_is_finished_meanwhile_appears_and_what_is_known_is_not_sent_again(tmp_path):
    stored(tmp_path / "going on", [member(seed=0)])
    with serve(tmp_path, port=0, wait=False) as page:
        client = Client(page)
        first = client.send("/api/runs", place="going on")
        again = client.send("/api/runs", place="going on", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        stored(tmp_path / "going on", [member(seed=1), member(seed=2)])
        after = client.send("/api/runs", place="going on", headers={"If-None-Match": first.headers["etag"]})
        assert (first.json["members"], after.json["members"]) == (1, 3)
        shutil.rmtree(tmp_path / "going on")
        gone = client.send("/api/runs", place="going on")
        assert (gone.status, "removed" in gone.json["error"]) == (404, True)


def test_a_store_that_is_none_is_a_sentence(tmp_path):
    (tmp_path / "forged").mkdir()
    (tmp_path / "forged" / "store.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with serve(tmp_path, port=0, wait=False) as page:
        sent = Client(page).send("/api/runs", place="forged")
    assert sent.status == 400
    assert "store" in sent.json["error"]


def test_reports_are_served_as_they_are(client):
    assert b"the report of survey" in client.send("/report", place="survey").body
    assert client.send("/report", place="runs").status == 404
