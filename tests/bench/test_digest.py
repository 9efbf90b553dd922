"""What a store says of its members without reading their rows is what the rows say, at every moment of its life."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.bench.columns import FLAT, flat
from theodolite.bench.compare import compare
from theodolite.bench.runs import runs
from theodolite.bench.summary import summarise
from theodolite.errors import BadInput, StoreError
from theodolite.lab.cell import Cell, Row
from theodolite.lab.store import store, trained
from theodolite.lab.store.schema import DIGEST
from theodolite.lab.store.store import Store
from theodolite.lab.store.trained import Trained, bring_up_to_date

from .brute_force import paired, summaries
from .members import member, stored

SCORES = st.none() | st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.1])


@st.composite
def members(draw: st.DrawFn) -> list[Row]:
    found: dict[str, Row] = {}
    for _ in range(draw(st.integers(1, 14))):
        accuracy = draw(SCORES)
        solved_at = draw(st.none() | st.integers(1, 50)) if accuracy is not None else None
        row = member(
            draw(st.sampled_from(["lstm", "gru"])),
            draw(st.sampled_from(["copy", "dyck"])),
            seed=draw(st.integers(-2, 4)),
            lr=draw(st.sampled_from([1e-3, 3e-4])),
            accuracy=accuracy,
            unseen=draw(SCORES),
            solved_at=solved_at,
            shape=draw(st.sampled_from([{"width": 8}, {"width": 16}])),
        )
        told = {"converged": draw(SCORES), "mean_steps": draw(SCORES), "chance": draw(st.floats(0, 1))}
        facts = {"seconds": draw(st.floats(0, 1e6)), "device": draw(st.sampled_from(["cpu", "cuda", ""]))}
        found[row.cell.key] = replace(row, result={**row.result, **told}, facts={**row.facts, **facts})
    return list(found.values())


def same(found: Any, expected: Any, loose: bool = False) -> bool:
    """Equal, and deviations with the intervals that follow from them up to rounding."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            same(found[name], value, name in ("deviation", "interval")) for name, value in expected.items()
        )
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(same(*pair, loose) for pair in zip(found, expected, strict=True))
    return found == (pytest.approx(expected, rel=1e-9, abs=1e-12) if loose and expected is not None else expected)


@given(members(), st.data())
@settings(max_examples=30, deadline=None)
def test_the_summary_is_that_of_the_rows(rows, data):
    cut = data.draw(st.integers(0, len(rows)))
    filters = data.draw(
        st.sampled_from(
            [
                {},
                {"net": "lstm"},
                {"status": "solved,diverged"},
                {"where": {"lr": 1e-3}},
                {"where": {"width": 8, "lr": 3e-4}, "status": "unsolved"},
                {"where": {"seed": 1}},
                {"where": {"accuracy": None}},
            ]
        )
    )
    fits = lambda row: (
        (filters.get("net") in (None, row.cell.config["net"]))
        and row["status"] in filters.get("status", row["status"]).split(",")
        and all(
            {**row.cell.config, **row.cell.config["shape"], **row.result}[name] == value
            for name, value in filters.get("where", {}).items()
        )
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part in (rows[:cut], rows[cut:]):
            if part:
                stored(folder, part)
        if "lstm" not in {row.cell.config["net"] for row in rows} and "net" in filters:
            with pytest.raises(BadInput, match="no net of these runs is called 'lstm'"):
                runs(folder, **filters)
            return
        found = runs(folder, **filters)
        expected = [row for row in rows if fits(row)]
        assert same(found.summary, summaries(expected))
        assert found.summary == summarise(expected)  # to the last bit, whatever the way
        assert (found.members, list(found.rows)) == (len(expected), expected)


@given(members(), st.sampled_from(["accuracy", "unseen", "steps"]))
@settings(max_examples=20, deadline=None)
def test_the_comparison_is_that_of_the_rows(rows, metric):
    rows = [row for row in rows if row.cell.config["shape"] == {"width": 8}]
    expected = paired(rows, "lstm", "gru", {"steps": "solved_at"}.get(metric, metric))
    with tempfile.TemporaryDirectory() as place:
        if not rows:
            return
        try:
            found = compare("lstm", "gru", stored(Path(place), rows), metric=metric)
        except BadInput:
            assert not expected
            return
    for one in found.tasks:
        wins = one.losses if metric == "steps" else one.wins
        difference = one.difference if one.difference is None else pytest.approx(one.difference, rel=1e-12, abs=1e-15)
        assert (one.pairs, one.compared, difference, wins) == expected.pop(one.task)
    assert not expected


ROWS = [
    member(net, task, seed=seed, accuracy=seed / 40, lr=lr)
    for net in ("lstm", "gru")
    for task in ("copy", "dyck")
    for seed in range(5)
    for lr in (1e-3, 3e-4)
]


def older(folder: Path) -> Path:
    """As a version without a digest left it."""
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as db:
        for table in ("conditions", "tallies", "scores", "digested"):
            db.execute(f"DROP TABLE {table}")
        db.execute(f"PRAGMA user_version = {DIGEST - 1}")
    return folder


def asked(folder: Path, question: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "store.db")) as db:
        return db.execute(question).fetchall()


def test_the_names_of_columns_are_those_of_a_line():
    assert tuple(flat(ROWS[0])) == FLAT


def test_an_older_store_is_brought_up_to_date_once_with_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "AT_ONCE", 7)
    expected = runs(stored(tmp_path, ROWS)).summary
    told: list[tuple[int, int]] = []
    for _ in range(2):
        assert runs(older(tmp_path) if not told else tmp_path, tell=lambda *far: told.append(far)).summary == expected
    assert told == [(7, 40), (14, 40), (21, 40), (28, 40), (35, 40)]
    assert asked(tmp_path, "PRAGMA user_version") == [(DIGEST,)]


def test_one_that_was_stopped_halfway_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "AT_ONCE", 7)
    expected = runs(stored(tmp_path, ROWS)).summary
    older(tmp_path)

    def stop(done: int, total: int) -> None:
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs(tmp_path, tell=stop)
    assert asked(tmp_path, "SELECT number FROM digested") == [(21,)]
    assert runs(tmp_path).summary == expected


def test_two_processes_bring_it_up_to_date_together(tmp_path):
    expected = runs(stored(tmp_path, ROWS)).summary
    older(tmp_path)
    code = (
        "import sys\nfrom theodolite.lab.store import trained\ntrained.AT_ONCE = 1\n"
        f"trained.bring_up_to_date({str(tmp_path)!r}, lambda *_: None)\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    assert asked(tmp_path, "SELECT count(*), count(DISTINCT number) FROM scores") == [(40, 40)]
    assert runs(tmp_path).summary == expected


def test_an_older_store_that_cannot_be_written_is_read_in_memory(tmp_path, monkeypatch):
    expected = runs(stored(tmp_path, ROWS)).summary
    older(tmp_path)
    before = (tmp_path / "store.db").read_bytes()
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    assert runs(tmp_path).summary == expected
    assert compare("lstm", "gru", tmp_path).tasks[0].pairs == 10
    assert (tmp_path / "store.db").read_bytes() == before


def test_what_is_held_in_memory_is_added_to_and_dropped_when_the_store_has_its_own(tmp_path):
    stored(tmp_path, ROWS[:20])
    older(tmp_path)
    with Trained(tmp_path, read_only=True) as first:
        assert first.aside is not None
        assert sum(one.members for one in first.conditions) == 20
    with Trained(tmp_path, read_only=True, aside=first.aside) as again:
        assert again.aside is first.aside
    stored(tmp_path, ROWS[20:])
    with Trained(tmp_path, read_only=True, aside=first.aside) as last:
        assert last.aside is None
        assert sum(one.members for one in last.conditions) == 40


def test_a_record_takes_in_what_another_version_wrote(tmp_path, monkeypatch):
    """A few rows at a time, so that no record takes long; `runs` takes in the rest."""
    monkeypatch.setattr(store, "TAKEN_IN", 4)
    stored(tmp_path, ROWS[:20])
    older(tmp_path)
    stored(tmp_path, ROWS[20:22])
    assert asked(tmp_path, "SELECT number FROM digested") == [(6,)]
    assert same(runs(tmp_path).summary, summaries(ROWS[:22]))


def test_a_store_put_back_to_an_earlier_state_is_digested_anew(tmp_path):
    stored(tmp_path / "now", ROWS)
    with closing(sqlite3.connect(tmp_path / "now" / "store.db")) as db:
        db.execute("DELETE FROM rows WHERE number > 30")
        db.commit()
    assert same(runs(tmp_path / "now").summary, summaries(ROWS[:30]))


def test_rows_that_are_not_as_learn_writes_them_are_left_out_and_counted(tmp_path, caplog):
    odd = [
        replace(ROWS[0], cell=Cell("training", {**ROWS[0].cell.config, "seed": 2**70})),
        replace(ROWS[0], cell=Cell("training", {**ROWS[0].cell.config, "seed": "nine"})),
        replace(ROWS[0], cell=Cell("training", {"net": "lstm"})),
        replace(ROWS[1], cell=Cell("training", {**ROWS[1].cell.config, "seed": 77}), result={"status": "done"}),
        Row(Cell("training", {**ROWS[1].cell.config, "seed": 78}), {}, "could not be trained"),
    ]
    stored(tmp_path, [*ROWS[:3], *odd, *ROWS[3:6]])
    assert same(runs(tmp_path).summary, summaries(ROWS[:6]))
    assert list(runs(tmp_path).rows) == ROWS[:6]
    assert "4 rows of" in caplog.text


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE tallies SET tally = '[]'",
        "UPDATE tallies SET tally = replace(tally, '[[', '[{')",
        "UPDATE tallies SET tally = x'ff00'",
        "UPDATE tallies SET status = 'won'",
        "UPDATE tallies SET lr = 'fast' WHERE rowid = 1",
        "UPDATE conditions SET config = '{}'",
        "UPDATE conditions SET config = '[1'",
        "UPDATE conditions SET name = 'other'",
        "UPDATE conditions SET members = 'many'",
    ],
)
def test_a_forged_digest_is_a_sentence(tmp_path, forgery):
    stored(tmp_path, ROWS[:4])
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        db.execute(forgery)
        db.commit()
    with pytest.raises(StoreError, match="is damaged"):
        runs(tmp_path)


@pytest.mark.parametrize("forgery", ["x'00'", "'text'", "zeroblob(64)", "score || x'ff'", "x'ff' || substr(score, 2)"])
def test_forged_scores_are_a_sentence(tmp_path, forgery):
    stored(tmp_path, ROWS)
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        db.execute(f"UPDATE scores SET score = CAST({forgery} AS BLOB)")
        db.commit()
    with pytest.raises(BadInput, match=r"is damaged|share|have no pair|two members"):
        compare("lstm", "gru", tmp_path)


def test_a_damaged_digest_does_not_keep_a_row_from_being_kept(tmp_path, caplog):
    stored(tmp_path, ROWS[:4])
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        db.execute("UPDATE tallies SET tally = '[]'")
        db.commit()
    stored(tmp_path, ROWS[4:8])
    assert "could not be kept" in caplog.text
    with Store(tmp_path) as opened:
        assert opened.rows() == ROWS[:8]


def test_members_are_found_page_by_page_by_seed_and_by_key(tmp_path):
    stored(tmp_path, ROWS)
    with Trained(tmp_path) as opened:
        every = opened.conditions
        assert [row for _, row in opened.rows(numbers=opened.numbers(every, 10, 5))] == ROWS[10:15]
        gru = [one for one in every if one.config["net"] == "gru"]
        assert [row for _, row in opened.rows(numbers=opened.numbers(gru, 2, 3))] == ROWS[22:25]
        assert len(opened.of_seed(every, 3)) == 8
        assert opened.of_seed(every, 2**80) == []
        assert opened.of_key(every, ROWS[7].cell.key[:10]) == [8]
        assert opened.of_key(gru, ROWS[7].cell.key[:10]) == []


def test_all_is_read_of_one_moment(tmp_path):
    stored(tmp_path, ROWS[:10])
    with Trained(tmp_path) as opened:
        stored(tmp_path, ROWS[10:])
        found = opened.tallies()
        assert sum(one.members for tallies in found.values() for one in tallies.values()) == 10
    before = runs(tmp_path, net="lstm")
    shutil.copytree(tmp_path, tmp_path / "copy")
    stored(tmp_path, [member("lstm", "copy", seed=99)])
    assert (before.members, len(before.rows)) == (20, 20)


def test_bringing_up_to_date_what_is_so_changes_nothing(tmp_path):
    stored(tmp_path, ROWS[:4])
    before = asked(tmp_path, "SELECT * FROM tallies"), asked(tmp_path, "SELECT * FROM scores")
    bring_up_to_date(tmp_path, lambda *_: pytest.fail("there is nothing to do"))
    assert (asked(tmp_path, "SELECT * FROM tallies"), asked(tmp_path, "SELECT * FROM scores")) == before
