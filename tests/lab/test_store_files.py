"""Files, folders and disks that cannot be used: refused in one sentence, and left as they were."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from theodolite.errors import BadInput, DiskFull, StoreError
from theodolite.lab.cell import Row
from theodolite.lab.group import Group
from theodolite.lab.store import database, store
from theodolite.lab.store.database import Database
from theodolite.lab.store.schema import APPLICATION, MIGRATIONS
from theodolite.lab.store.store import Store

from .small_plans import by, cells_of, keys_of, leave_a_checkpoint, one_finished, row


@pytest.fixture
def opened(tmp_path) -> Iterator[Store]:
    with Store(tmp_path / "runs") as one:
        yield one


def refused(folder: Path, words: str, **how: object) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    with pytest.raises(StoreError, match=words) as caught:
        Store(folder, timeout=0.2, **how)
    assert isinstance(caught.value, BadInput)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    for junk in (random.Random(0).randbytes(9000), b"SQLite format 3\0" + bytes(300), b"x"):
        (tmp_path / "store.db").write_bytes(junk)
        refused(tmp_path, "not a store|another program|damaged")


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    for statement in ("CREATE TABLE rows (a)", "PRAGMA user_version = 1", "PRAGMA application_id = 5"):
        (tmp_path / "store.db").unlink(missing_ok=True)
        foreign = sqlite3.connect(tmp_path / "store.db")
        foreign.execute(statement)
        foreign.commit()
        foreign.close()
        refused(tmp_path, "another program")


def test_a_newer_store_is_refused_and_left_alone(tmp_path):
    one_finished(tmp_path)
    newer = sqlite3.connect(tmp_path / "store.db")
    newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    refused(tmp_path, "update theodolite")


def test_a_store_cut_short_anywhere_is_refused_or_whole(tmp_path):
    one_finished(tmp_path)
    whole = (tmp_path / "store.db").read_bytes()
    for size in (1, 17, 18, 100, *range(512, len(whole), 2048)):
        (tmp_path / "store.db").write_bytes(whole[:size])
        refused(tmp_path, "damaged|not a store")
    (tmp_path / "store.db").write_bytes(whole)
    with Store(tmp_path) as back:
        assert len(back.rows()) == 1


def test_overwritten_pages_never_escape_as_a_foreign_exception(tmp_path):
    cell = one_finished(tmp_path)
    whole = (tmp_path / "store.db").read_bytes()
    rng, sentences = random.Random(1), set()
    for _ in range(60):
        damaged = bytearray(whole)
        at = rng.randrange(100, len(whole) - 200)
        damaged[at : at + 200] = rng.randbytes(200)
        (tmp_path / "store.db").write_bytes(damaged)
        for companion in tmp_path.glob("store.db-*"):
            companion.unlink()
        try:
            with Store(tmp_path) as opened:
                opened.rows()
                opened.plan(cells_of(3), by(2))
                if group := opened.claim(keys_of(cells_of(3))):
                    opened.record(group, [row(one) for one in group.cells], done=True)
                opened.finished([cell.key])
        except StoreError as error:
            sentences.add(str(error))
    assert any("damaged" in sentence for sentence in sentences)


def test_damage_that_is_met_later_is_told_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "CHECKED", 0)
    cells = cells_of(400)
    with Store(tmp_path) as made:
        made.plan(cells, by(400))
        made.record(made.claim(keys_of(cells)), [row(cell) for cell in cells], done=True)
    whole = bytearray((tmp_path / "store.db").read_bytes())
    whole[20 * 4096 :] = random.Random(2).randbytes(len(whole) - 20 * 4096)
    (tmp_path / "store.db").write_bytes(whole)
    with Store(tmp_path) as opened, pytest.raises(StoreError, match="is damaged"):
        opened.rows()


def test_an_empty_file_becomes_a_store(tmp_path):
    (tmp_path / "store.db").touch()
    with Store(tmp_path) as opened:
        assert opened.rows() == []


class Growing:
    """A file into which another process writes after the first thing that is asked of it."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.content, self.file, self.writer = content, path.open("rb"), os.open(path, os.O_WRONLY)

    def __enter__(self) -> Growing:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        os.close(self.writer)

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*given: object) -> object:
            found = getattr(self.file, name)(*given)
            os.pwrite(self.writer, self.content, 0)
            return found

        return call


def test_a_store_that_another_command_is_making_is_looked_at_without_fault(tmp_path, monkeypatch):
    one_finished(tmp_path / "made")
    (tmp_path / "store.db").touch()
    growing = Growing(tmp_path / "store.db", (tmp_path / "made" / "store.db").read_bytes())
    monkeypatch.setattr(Path, "open", lambda *_: growing)
    opened = Database(tmp_path / "store.db")
    with opened.reading() as db:
        assert db.execute("SELECT count(*) FROM rows").fetchone() == (1,)
    opened.close()


def test_a_log_that_another_command_takes_away_is_none(tmp_path, monkeypatch):
    one_finished(tmp_path)
    (tmp_path / "store.db-journal").write_bytes(b"x")
    there = Path.exists

    def seen_and_gone(path: Path) -> bool:
        found = there(path)
        if path.name.endswith("-journal"):
            path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "exists", seen_and_gone)
    with Store(tmp_path) as opened:
        assert len(opened.rows()) == 1


def test_a_store_that_must_exist_is_not_made(tmp_path):
    with pytest.raises(StoreError, match="no store in"):
        Store(tmp_path / "none", must_exist=True)
    assert list(tmp_path.iterdir()) == []


def test_folders_that_cannot_be_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "odd" / "store.db").mkdir(parents=True)
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300), tmp_path / "odd"):
        with pytest.raises(StoreError, match="choose another"):
            Store(folder)


def test_odd_names_of_folders_are_fine(tmp_path):
    for name in ("with space", "a?mode=ro#b%20", "ünï", "'quoted\""):
        one_finished(tmp_path / name)
        assert (tmp_path / name / "store.db").is_file()


def test_a_closed_store_says_so(tmp_path):
    opened = Store(tmp_path)
    opened.close()
    opened.close()
    for use in (opened.rows, opened.beat, opened.clean, opened.failures):
        with pytest.raises(StoreError, match="is closed"):
            use()


# Versions


def test_an_older_store_is_brought_up_to_date_step_by_step(tmp_path):
    path = tmp_path / "store.db"
    steps = (
        *MIGRATIONS,
        ("CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('two')"),
        ("UPDATE notes SET text = text || ' three'",),
    )
    cell = one_finished(tmp_path)
    for _ in range(2):  # the second time there is nothing to do
        updated = Database(path, migrations=steps)
        with updated.reading() as db:
            assert db.execute("SELECT text FROM notes").fetchall() == [("two three",)]
            assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 2,)
            assert db.execute("SELECT key FROM rows").fetchall() == [(cell.key,)]
        updated.close()
    refused(tmp_path, "update theodolite")


def test_a_migration_that_fails_leaves_the_old_version_whole(tmp_path):
    one_finished(tmp_path)
    with pytest.raises(StoreError, match="no such table"):
        Database(tmp_path / "store.db", migrations=(*MIGRATIONS, ("DROP TABLE rows", "INSERT INTO nowhere VALUES (1)")))
    with Store(tmp_path) as opened:
        assert len(opened.rows()) == 1


def test_a_new_store_carries_our_name_and_version_and_logs_ahead(tmp_path):
    with Store(tmp_path):
        seen = sqlite3.connect(tmp_path / "store.db")
        pragmas = [
            seen.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version", "journal_mode")
        ]
        seen.close()
    assert pragmas == [APPLICATION, len(MIGRATIONS), "wal"]


# Locked, full, read-only


def test_a_store_locked_by_another_program_is_told_and_reading_goes_on(tmp_path):
    cell = one_finished(tmp_path)
    with Store(tmp_path, timeout=0.1) as opened:
        opened.plan(cells_of(2), by(1))
        blocker = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")
        assert cell.key in opened.finished([cell.key])
        for write in (opened.beat, opened.clean, lambda: opened.claim([]), lambda: opened.plan([], by(1))):
            with pytest.raises(StoreError, match=r"was locked by another program for 0\.1 s"):
                write()
        with Store(tmp_path, must_exist=True, timeout=0.1) as reader:
            assert len(reader.rows()) == 1
        blocker.execute("ROLLBACK")
        blocker.close()
        assert opened.claim(keys_of(cells_of(2)))


def test_a_short_lock_is_waited_for(tmp_path):
    with Store(tmp_path, timeout=300) as opened:
        blocker = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN EXCLUSIVE")
        released = threading.Event()

        def release() -> None:
            released.set()
            blocker.execute("ROLLBACK")

        timer = threading.Timer(0.3, release)
        timer.start()
        opened.beat()
        assert released.is_set()
        timer.join()
        blocker.close()


def fill(opened: Store, group: Group, sizes: int) -> int:
    """Record large rows until the disk is full; how many were kept."""
    for number, cell in enumerate(group.cells):
        try:
            opened.record(group, [Row(cell, {"text": "x" * sizes})], step=number + 1)
        except DiskFull:
            return number
    return pytest.fail("the disk never was full")


def test_a_full_database_keeps_the_state_before(opened):
    cells = cells_of(50)
    opened.plan(cells, by(50))
    group = opened.claim(keys_of(cells))
    connection = opened._database._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 40}")
    kept = fill(opened, group, 20_000)
    assert kept > 0
    assert [one.cell for one in opened.rows()] == cells[:kept]
    connection.execute("PRAGMA max_page_count = 1000000")
    opened.release(group)
    assert opened.claim(keys_of(cells)) == replace(group, step=kept)
    opened.record(group, [row(cell) for cell in cells[kept:]], done=True)
    assert len(opened.rows()) == 50


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", place], check=True)


def test_a_full_disk_keeps_finished_cells_and_the_same_command_goes_on(small_disk):
    cells = cells_of(200)
    with Store(small_disk / "runs") as opened:
        opened.plan(cells, by(200))
        group = opened.claim(keys_of(cells))
        kept = fill(opened, group, 9_000)
        assert kept > 10
        assert len(opened.rows()) == kept
        assert fill(opened, Group(group.id, group.cells[kept:]), 900_000) == 0
    with Store(small_disk / "runs") as again:
        assert [one.cell for one in again.rows()] == cells[:kept]
    remount(small_disk, "size=8m")
    with Store(small_disk / "runs") as again:
        assert again.claim(keys_of(cells)) == replace(group, step=kept)
        again.record(group, [row(cell) for cell in cells[kept:]], done=True)
        assert len(again.rows()) == 200


def test_no_room_to_begin_with_is_told(small_disk):
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            pass
    with pytest.raises(DiskFull, match="finished cells are kept"):
        Store(small_disk / "runs")
    (small_disk / "ballast").unlink()
    one_finished(small_disk / "runs")


def test_a_read_only_store_is_read_and_not_written(small_disk):
    one_finished(small_disk / "runs")
    with Store(small_disk / "runs") as left:  # its log holds what is not in the file yet, as after a crash
        left.keep_trial("a", {"chunk": 3})
        shutil.copytree(small_disk / "runs", small_disk / "crashed")
    (small_disk / "empty").mkdir()
    remount(small_disk, "ro")
    for folder in ("runs", "crashed", "empty", "new"):
        with pytest.raises(StoreError, match=r"cannot be (written|used)"):
            Store(small_disk / folder)
    for folder in ("runs", "crashed"):
        with Store(small_disk / folder, must_exist=True) as opened:
            assert len(opened.rows()) == 1
            assert opened.trial("a") == {"chunk": 3}
            assert opened.waiting_for([]) == []
            for write in (opened.beat, opened.clean, lambda: opened.claim([]), lambda: opened.keep_trial("a", {})):
                with pytest.raises(StoreError, match="is read-only"):
                    write()


def files_below(folder: Path) -> dict[str, tuple[int, int]]:
    return {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.rglob("*")}


def test_a_store_opened_to_read_changes_nothing_in_its_folder(tmp_path):
    one_finished(tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs" / "checkpoints")
    before = files_below(tmp_path)
    with Store(tmp_path / "runs", read_only=True) as opened:
        assert len(opened.rows()) == 1
        for write in (opened.beat, opened.clean, lambda: opened.claim([]), lambda: opened.keep_trial("a", {})):
            with pytest.raises(StoreError, match="is read-only"):
                write()
    assert files_below(tmp_path) == before
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_a_store_opened_to_read_sees_what_is_being_written(tmp_path):
    with Store(tmp_path) as writing:
        writing.keep_trial("a", {"chunk": 3})
        with Store(tmp_path, read_only=True) as opened:
            assert opened.trial("a") == {"chunk": 3}
            writing.keep_trial("a", {"chunk": 4})
            assert opened.trial("a") == {"chunk": 4}
        shutil.copytree(tmp_path, tmp_path / "crashed")  # with a log, and nobody who writes
    with Store(tmp_path / "crashed", read_only=True) as opened:
        assert opened.trial("a") == {"chunk": 4}


def test_a_folder_the_system_calls_read_only_is_treated_so(tmp_path, monkeypatch):
    one_finished(tmp_path)
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path)
    with Store(tmp_path, must_exist=True) as opened:
        assert len(opened.rows()) == 1
        with pytest.raises(StoreError, match="read-only"):
            opened.plan(cells_of(3), by(1))


def test_a_checkpoint_that_cannot_be_deleted_does_not_undo_a_record(opened, monkeypatch, caplog):
    cells = cells_of(1)
    opened.plan(cells, by(1))
    group = opened.claim(keys_of(cells))
    opened.record(group, checkpoint=leave_a_checkpoint(opened, group, 1))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    opened.record(group, [row(cells[0])], done=True)
    assert len(opened.rows()) == 1
    assert "cannot be deleted" in caplog.text


def test_every_public_method_answers_in_our_own_words(tmp_path):
    """The table is taken away underneath: whatever SQLite says then, the user reads a sentence of ours."""
    opened = Store(tmp_path)
    cells = cells_of(1)
    group = Group.of(cells)
    calls = {
        "finished": lambda: opened.finished(["a"]),
        "rows": opened.rows,
        "rows_since": lambda: opened.rows_since(0),
        "plan": lambda: opened.plan(cells, by(1)),
        "claim": lambda: opened.claim(["a"]),
        "record": lambda: opened.record(group),
        "release": lambda: opened.release(group),
        "fail": lambda: opened.fail(group, "", "", retry=True),
        "failures": opened.failures,
        "waiting_for": lambda: opened.waiting_for(["a"]),
        "beat": opened.beat,
        "trial": lambda: opened.trial("a"),
        "keep_trial": lambda: opened.keep_trial("a", {}),
        "clean": opened.clean,
    }
    public = {name for name, value in vars(store.Store).items() if callable(value) and not name.startswith("_")}
    assert public == {*calls, "close"}
    vandal = sqlite3.connect(tmp_path / "store.db")
    for table in ("rows", "members", "groups", "owners", "failures", "trials"):
        vandal.execute(f"DROP TABLE {table}")
    vandal.commit()
    vandal.close()
    for call in calls.values():
        with pytest.raises(StoreError, match="no such table"):
            call()
    opened.close()
