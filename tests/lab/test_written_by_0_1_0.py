"""A store and certificates that version 0.1.0 wrote: finished rows, an open group with its checkpoint, two ranks."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from theodolite.bench.learn import learn
from theodolite.bench.runs import runs
from theodolite.instruments.rank.certificate import verify
from theodolite.lab.campaign import Listener

from .small_runs import MLP, open_groups

RUN = {**MLP, "lr": 1e-6, "steps": 60}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(Path(__file__).with_name("written_by_0.1.0.zip")) as written:
        written.extractall(tmp_path)
    return tmp_path


def test_rows_are_read_and_those_of_built_in_nets_reused(folder):
    table = runs(folder / "runs").table
    assert [(row["net"], row["version"], row["commit"]) for row in table] == [
        *[("mlp", "0.1.0", None)] * 2,
        *[("net.py:Net", "0.1.0", None)] * 2,
    ]
    found = learn(**RUN, out=folder / "runs")
    assert (found.reused, found.asked) == (2, 2)
    assert [row["accuracy"] for row in table[:2]] == [row["accuracy"] for row in found.rows]


def test_rows_of_a_users_net_stay_and_are_not_reused(folder):
    """Its key was of the file alone."""
    found = learn(**{**RUN, "net": f"{folder / 'net.py'}:Net", "shape": {}}, out=folder / "runs")
    assert (found.reused, len(found.rows)) == (0, 2)
    assert [row["version"] for row in runs(folder / "runs", net="net.py:Net").table][:2] == ["0.1.0"] * 2
    assert len(runs(folder / "runs", net="net.py:Net").rows) == 4


def test_an_open_group_goes_on_from_its_checkpoint(folder):
    [(step, checkpoint, _)] = open_groups(folder / "runs")
    reached = []
    listener = Listener(update=lambda group, news: reached.append(news.step))
    found = learn(**{**RUN, "seed": 2}, out=folder / "runs", listener=listener)
    assert (len(found.rows), found.failures) == (2, ())
    assert min(reached) >= step == 56
    assert not (folder / "runs" / "checkpoints" / checkpoint).exists()


def test_certificates_are_verified(folder):
    assert verify(json.loads((folder / "attention.json").read_text())).lower_bound == 3
    gate = json.loads((folder / "gate.json").read_text())
    assert verify(gate, net=f"{folder / 'poly.py'}:Gate").lower_bound == gate["header"]["rank"] == 6
