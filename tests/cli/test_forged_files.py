"""What is read is data, never code: forged files for every command that reads one, and stores that are none of ours."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.bad_files import FORGED, RAN, READERS, make_files

from theodolite.errors import StoreError
from theodolite.lab.store.store import Store

TRAINS = (
    "survey",
    "survey-out",
    "learn-out",
    "reproduce",
    "plot",
    "csv",
)  # read as the others do


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("forged")
    make_files(place)
    (place / "table.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i * 2}\n" for i in range(60)))
    return place


@pytest.mark.parametrize("reader", [name for name in READERS if name not in TRAINS])
def test_nothing_of_a_forged_file_is_run_and_it_is_refused_in_a_sentence(theodolite, folder, monkeypatch, reader):
    monkeypatch.chdir(folder)
    for name in (*sorted(FORGED), "deep-store", "deep.json", "garbage.onnx", "long.safetensors", "pipe.json"):
        outcome = theodolite(*(word.replace("FILE", name) for word in READERS[reader]))
        assert not (folder / RAN).exists(), f"{name} was run"
        assert outcome.code in (0, 1, 2), name
        assert "internal error" not in outcome.err
        assert "Traceback" not in outcome.err
        refusals = sum(line.startswith("error:") for line in outcome.err.splitlines())
        assert refusals == (outcome.code > 0), name


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON groups BEGIN DELETE FROM rows; END",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE rows ADD COLUMN more",
        "DROP TABLE trials",
    ],
)
def test_a_store_whose_tables_are_not_as_we_make_them_is_refused(tmp_path, statement):
    with Store(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        db.execute(statement)
        db.commit()
    for how in ({}, {"read_only": True}):
        with pytest.raises(StoreError, match="were changed by another program"):
            Store(tmp_path, **how)


def test_a_table_of_somebody_else_beside_ours_is_none_of_our_business(tmp_path):
    with Store(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        db.execute("CREATE TABLE notes (text)")
        db.execute("ANALYZE")
        db.commit()
    with Store(tmp_path) as opened:
        assert opened.rows() == []
