"""What a store promises: a cell is finished once, a group has one living owner, nothing is lost or half written."""

# pyright: reportCallIssue=false

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from theodolite.errors import ClaimLost, StoreError, TheodoliteError
from theodolite.lab.cell import Cell, Row
from theodolite.lab.group import Group
from theodolite.lab.store import owner
from theodolite.lab.store.store import Store

from .small_plans import by, cells_of, crash, keys_of, leave_a_checkpoint, row


@pytest.fixture
def opened(tmp_path) -> Iterator[Store]:
    with Store(tmp_path / "runs") as one:
        yield one


# Planning, claiming, recording


def test_cells_are_run_in_groups_and_rows_come_back_in_the_order_of_finishing(opened):
    cells = cells_of(5)
    opened.plan(cells, by(2, device="cpu"))
    seen = []
    while group := opened.claim(keys_of(cells)):
        seen.append(group)
        opened.record(group, [row(cell) for cell in reversed(group.cells)], done=True)
    assert [group.cells for group in seen] == [tuple(cells[:2]), tuple(cells[2:4]), tuple(cells[4:])]
    assert [group.settings for group in seen] == [{"device": "cpu"}] * 3
    assert [one.cell for one in opened.rows()] == [cells[i] for i in (1, 0, 3, 2, 4)]
    assert opened.finished([*keys_of(cells[:3]), "nonsense"]) == {cell.key: row(cell) for cell in cells[:3]}
    assert opened.rows("learn") == opened.rows()
    assert opened.rows("other") == []


def test_a_group_is_named_by_its_cells_their_order_and_its_settings():
    cells = cells_of(3)
    same = [Cell(cell.measure, dict(reversed(cell.config.items()))) for cell in cells]
    assert Group.of(cells, {"a": 1, "b": 2}).id == Group.of(same, {"b": 2, "a": 1}).id
    others = [Group.of(cells), Group.of(cells[::-1]), Group.of(cells[:2]), Group.of(cells, {"a": 1})]
    assert len({group.id for group in others}) == 4


def test_only_what_is_neither_finished_nor_in_an_open_group_is_planned(opened):
    cells = cells_of(6)
    opened.plan(cells[:2], by(2))
    group = opened.claim(keys_of(cells))
    opened.record(group, [row(cells[0])])
    opened.plan(cells[2:4], by(1))
    handed: list[Cell] = []

    def make(free: list[Cell]) -> list[Group]:
        handed.extend(free)
        return by(9)(free)

    opened.plan([*cells, cells[5]], make)
    assert handed == cells[4:]
    opened.plan(cells, lambda free: pytest.fail("there is nothing left to plan"))


def test_a_plan_that_forgets_or_repeats_a_cell_changes_nothing(opened):
    cells = cells_of(3)
    for wrong in (by(2)(cells)[:1], by(2)(cells) + by(2)(cells[:1]), by(1)(cells_of(4))):
        with pytest.raises(ValueError, match="every cell"):
            opened.plan(cells, lambda free, wrong=wrong: wrong)
    assert opened.claim(keys_of(cells)) is None


def test_a_smaller_command_dissolves_what_nobody_began_and_finishes_what_was_begun(opened):
    cells = cells_of(12)
    opened.plan(cells, by(4))
    begun = opened.claim(keys_of(cells[:4]))
    name = leave_a_checkpoint(opened, begun, 5)
    opened.record(begun, step=5, checkpoint=name)
    opened.release(begun)
    held = opened.claim(keys_of(cells[4:8]))
    wanted = [cells[0], cells[4], cells[8]]
    opened.plan(wanted, by(4))
    with Store(opened.folder) as other:
        groups = [other.claim(keys_of(wanted)), other.claim(keys_of(wanted))]
        assert groups[0] == replace(begun, step=5, checkpoint=name)
        assert groups[1].cells == (cells[8],)  # and its three neighbours are not run
        assert other.claim(keys_of(wanted)) is None
        opened.record(held, [row(cells[4])])  # what is running stays as it is
        other.plan(cells, by(4))
        assert other.claim(keys_of(cells)).cells == tuple(cells[9:])


def test_a_claim_goes_to_one_store_only_and_closing_gives_it_back(opened):
    cells = cells_of(2)
    opened.plan(cells, by(2))
    group = opened.claim(keys_of(cells))
    with Store(opened.folder) as other:
        assert other.claim(keys_of(cells)) is None
        assert other.waiting_for(keys_of(cells)) == [
            f"pid {os.getpid()} on {opened._owner.host}, last seen 0 s ago",
        ]
        assert other.waiting_for(keys_of(cells_of(1, start=9))) == []
        assert opened.waiting_for(keys_of(cells)) == []
        opened.close()
        assert other.waiting_for(keys_of(cells)) == []
        assert other.claim(keys_of(cells)) == group


def test_a_store_that_is_dropped_unclosed_holds_nothing(tmp_path):
    cells = cells_of(1)
    dropped = Store(tmp_path)
    dropped.plan(cells, by(1))
    assert dropped.claim(keys_of(cells))
    del dropped
    gc.collect()
    with Store(tmp_path) as other:
        assert other.claim(keys_of(cells))


def test_a_group_whose_wanted_cells_are_finished_is_not_claimed(opened):
    cells = cells_of(2)
    opened.plan(cells, by(2))
    group = opened.claim(keys_of(cells))
    opened.record(group, [row(cells[0])], step=3)
    opened.release(group)
    assert opened.claim([cells[0].key]) is None
    assert opened.claim([cells[1].key]) == replace(group, step=3)


def test_a_finished_cell_keeps_its_first_row(opened):
    cells = cells_of(2)
    opened.plan(cells, by(2))
    group = opened.claim(keys_of(cells))
    opened.record(group, [row(cells[0], "first")])
    opened.record(group, [row(cells[0], "second"), row(cells[1], "other")], done=True)
    assert [one["value"] for one in opened.rows()] == ["first", "other"]


def test_rows_of_another_group_are_refused(opened):
    cells = cells_of(2)
    opened.plan(cells, by(1))
    group = opened.claim(keys_of(cells))
    with pytest.raises(ValueError, match="is not of group"):
        opened.record(group, [row(cells[0]), row(cells[1])])
    assert opened.rows() == []


def test_whoever_lost_a_group_cannot_write_to_it(opened):
    cells = cells_of(1)
    opened.plan(cells, by(1))
    group = opened.claim(keys_of(cells))
    opened.release(group)
    with Store(opened.folder) as other:
        assert other.claim(keys_of(cells))
        opened.release(group)
        for attempt in (
            lambda: opened.record(group, [row(cells[0])]),
            lambda: opened.fail(group, "a", "b", retry=False),
        ):
            with pytest.raises(ClaimLost, match=group.id):
                attempt()
        assert other.rows() == other.failures() == []
        other.record(group, [row(cells[0])], done=True)
        with pytest.raises(ClaimLost):
            other.record(group, [row(cells[0])])


def test_a_new_checkpoint_replaces_the_old_file_and_the_last_one_goes_with_the_group(opened):
    cells = cells_of(1)
    opened.plan(cells, by(1))
    group = opened.claim(keys_of(cells))
    first, second, third = (leave_a_checkpoint(opened, group, step) for step in (1, 2, 3))
    opened.record(group, step=1, checkpoint=first)
    opened.record(group, step=2, checkpoint=second)
    assert sorted(file.name for file in opened.checkpoints.iterdir()) == sorted([second, third])
    opened.record(group, step=7)
    opened.release(group)
    assert opened.claim(keys_of(cells)) == replace(group, step=7, checkpoint=second)
    opened.record(group, [row(cells[0])], step=3, checkpoint=third, done=True)
    assert list(opened.checkpoints.iterdir()) == []


def test_a_checkpoint_that_is_not_there_is_not_referred_to(opened):
    cells = cells_of(1)
    opened.plan(cells, by(1))
    group = opened.claim(keys_of(cells))
    for name in (group.checkpoint_name(1), "../store.db"):
        with pytest.raises(StoreError, match="no checkpoint"):
            opened.record(group, [row(cells[0])], step=1, checkpoint=name)
    assert opened.rows() == []


def test_a_failure_is_kept_and_its_cells_may_be_planned_again(opened):
    cells = cells_of(3)
    opened.plan(cells, by(3))
    group = opened.claim(keys_of(cells))
    name = leave_a_checkpoint(opened, group, 1)
    opened.record(group, [row(cells[0])], step=1, checkpoint=name)
    opened.fail(group, "the worker died", "Traceback \udcff", retry=True)
    opened.release(group)
    assert opened.claim(keys_of(cells)) == replace(group, step=1, checkpoint=name, attempts=1)
    opened.fail(group, "the net returned NaN", "Traceback", key=cells[2].key, retry=False)
    first, second = opened.failures()
    assert first["cells"] == [cell.key[:12] for cell in cells[1:]]
    assert (first["sentence"], first["retried"], first["pid"]) == ("the worker died", True, os.getpid())
    assert (second["cells"], second["retried"], second["group"]) == ([cells[2].key[:12]], False, group.id)
    assert opened.claim(keys_of(cells)) is None
    assert list(opened.checkpoints.iterdir()) == []
    opened.plan(cells, by(3))
    assert opened.claim(keys_of(cells)).cells == tuple(cells[1:])


def test_a_group_that_failed_whole_can_be_planned_under_the_same_name(opened):
    cells = cells_of(2)
    opened.plan(cells, by(2))
    group = opened.claim(keys_of(cells))
    opened.fail(group, "a", "b", retry=False)
    opened.plan(cells, by(2))
    assert opened.claim(keys_of(cells)) == group


def test_trials_are_kept_and_replaced(opened):
    assert opened.trial("lstm small") is None
    opened.keep_trial("lstm small", {"chunk": 8})
    opened.keep_trial("lstm small", {"chunk": 16, "rate": 0.1})
    with Store(opened.folder) as other:
        assert other.trial("lstm small") == {"chunk": 16, "rate": 0.1}


def test_cleaning_takes_old_leftovers_of_groups_that_do_not_run_and_nothing_else(opened):
    cells = cells_of(2)
    opened.plan(cells, by(1))
    group, running = opened.claim(keys_of(cells)), opened.claim(keys_of(cells))
    kept = leave_a_checkpoint(opened, group, 1, age=1000)
    opened.record(group, step=1, checkpoint=kept)
    opened.release(group)
    young = leave_a_checkpoint(opened, group, 2, age=10)
    written = leave_a_checkpoint(opened, running, 2, age=1000)
    leave_a_checkpoint(opened, group, 2, age=1000)
    leave_a_checkpoint(opened, Group.of(cells_of(9)), 2, age=1000)
    for name in (f".{kept}.ab_c12", "notes.txt", "weights.safetensors", "0-1-2.safetensors"):
        (opened.checkpoints / name).write_text("")
        os.utime(opened.checkpoints / name, (0, 0))
    opened.clean()
    left = {file.name for file in opened.checkpoints.iterdir()}
    assert left == {kept, young, written, "notes.txt", "weights.safetensors", "0-1-2.safetensors"}


# What is kept is what was given

exactly = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
plain = st.dictionaries(st.text(), exactly, max_size=4)


@given(config=plain, result=plain, facts=plain, error=st.none() | st.text())
@settings(max_examples=40)
def test_rows_survive_exactly(tmp_path_factory, config, result, facts, error):
    folder = tmp_path_factory.mktemp("exact")
    given_row = Row(Cell("m", config), result, error, {"finished": "now", **facts})
    with Store(folder) as writing:
        writing.plan([given_row.cell], by(1, **{"ü": config}))
        group = writing.claim([given_row.cell.key])
        assert group == Group.of([given_row.cell], {"ü": config})
        writing.record(group, [given_row], done=True)
    with Store(folder, must_exist=True) as reading:
        (kept,) = reading.rows()
        assert kept == given_row
        assert kept.cell.key == given_row.cell.key
        assert json.dumps([kept.cell.config, kept.result, kept.facts]) == json.dumps(
            [config, result, {"finished": "now", **facts}]
        )  # also -0.0 and the order of names
    shutil.rmtree(folder)


def test_infinities_become_none_and_numbers_keep_every_bit(opened):
    cell = cells_of(1)[0]
    values = [0.1 + 0.2, 5e-324, -0.0, 1.7976931348623157e308, 2**80]
    opened.plan([cell], by(1))
    opened.record(opened.claim([cell.key]), [row(cell, [*values, math.inf, math.nan])], done=True)
    kept = opened.rows()[0]["value"]
    assert [struct.pack("d", value) for value in kept[:4]] == [struct.pack("d", value) for value in values[:4]]
    assert kept[4:] == [2**80, None, None]


def test_rows_that_differ_only_in_how_they_were_obtained_are_equal():
    cell = cells_of(1)[0]
    assert Row(cell, {"a": 1}, facts={"seconds": 1}) == Row(cell, {"a": 1}, facts={"seconds": 2})
    assert Row(cell, {"a": 1}) != Row(cell, {"a": 2})


def test_what_cannot_be_written_as_json_leaves_the_group_as_it_was(opened):
    cells = cells_of(2)
    opened.plan(cells, by(2))
    group = opened.claim(keys_of(cells))
    with pytest.raises(TypeError):
        opened.record(group, [row(cells[0]), row(cells[1], object())], done=True)
    assert opened.rows() == []
    opened.record(group, [row(cells[0])])


# Owners


def test_a_process_is_known_by_its_start_and_not_by_its_number_alone():
    with subprocess.Popen(["sleep", "60"]) as child:
        here = owner.Owner.here()
        start = owner._state_and_start(child.pid)[1]
        sleeping = replace(here, token="x", pid=child.pid, start=start)
        try:
            assert start is not None
            assert not sleeping.dead(1e9)
            assert replace(sleeping, start="1").dead(0)
        finally:
            child.kill()
        while owner._state_and_start(child.pid)[0] != "Z":
            time.sleep(0.001)
        assert sleeping.dead(0)  # killed, and its parent has not looked yet
        child.wait()
        assert sleeping.dead(0)
        assert not here.dead(1e9)
        here.leave()
        assert here.dead(0)


def test_a_process_of_another_machine_is_dead_after_a_minute_of_silence(opened, monkeypatch):
    cells = cells_of(1)
    opened.plan(cells, by(1))
    far = Store(opened.folder)
    far._owner = replace(far._owner, host="far", place="far away", pid=1)
    group = far.claim(keys_of(cells))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)

    def silent_for(seconds: float) -> None:
        with opened._database.writing() as db:
            db.execute("UPDATE owners SET seen = ? WHERE host = 'far'", (now - seconds,))

    silent_for(50)
    assert opened.claim(keys_of(cells)) is None
    assert opened.waiting_for(keys_of(cells)) == ["pid 1 on far, last seen 50 s ago"]
    silent_for(70)
    far.beat()
    assert opened.claim(keys_of(cells)) is None
    silent_for(70)
    assert opened.claim(keys_of(cells)) == group
    with pytest.raises(ClaimLost):
        far.record(group, [row(cells[0])])
    far.close()


def test_heartbeats_may_come_from_a_thread(opened):
    cells = cells_of(40)
    opened.plan(cells, by(1))
    stop, failed = threading.Event(), []

    def beating() -> None:
        try:
            while not stop.is_set():
                opened.beat()
        except TheodoliteError as error:
            failed.append(error)

    thread = threading.Thread(target=beating)
    thread.start()
    while group := opened.claim(keys_of(cells)):
        opened.record(group, [row(group.cells[0])], done=True)
    stop.set()
    thread.join()
    assert failed == []
    assert len(opened.rows()) == 40


# Interleavings of two commands, with crashes, against a model of a few lines


class Commands(RuleBasedStateMachine):
    """Two commands on one store; any of them may crash at any time and come back."""

    CELLS = cells_of(8)

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.stores = [Store(self.folder), Store(self.folder)]
        self.held: list[dict[str, Group]] = [{}, {}]
        self.rows: dict[str, str] = {}
        self.files: dict[str, str | None] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            for one in self.stores:
                one.close()
            shutil.rmtree(self.folder)

    @rule(who=st.integers(0, 1), which=st.sets(st.integers(0, 7), min_size=1), size=st.integers(1, 4))
    def plan(self, who: int, which: set[int], size: int) -> None:
        wanted = [self.CELLS[i] for i in sorted(which)]
        self.stores[who].plan(wanted, by(size, chunk=size))
        for cell in wanted:  # whatever is wanted is finished or can be waited for
            assert cell.key in self.rows or cell.key in self.open_keys()

    @rule(who=st.integers(0, 1), which=st.sets(st.integers(0, 7), min_size=1))
    def claim(self, who: int, which: set[int]) -> None:
        wanted = {self.CELLS[i].key for i in which} - self.rows.keys()
        group = self.stores[who].claim(wanted)
        free = self.open_keys() - {key for held in self.held for one in held.values() for key in keys_of(one.cells)}
        assert (group is None) == (not wanted & free)
        if group:
            assert all(group.id not in held for held in self.held), "two living owners of one group"
            assert group.checkpoint == self.files.get(group.id)
            self.held[who][group.id] = group

    @rule(who=st.integers(0, 1), data=st.data(), done=st.booleans(), saved=st.booleans())
    def record(self, who: int, data: st.DataObject, done: bool, saved: bool) -> None:
        if not self.held[who]:
            return
        group = self.held[who][data.draw(st.sampled_from(sorted(self.held[who])))]
        cells = group.cells if done else data.draw(st.lists(st.sampled_from(group.cells), unique_by=lambda c: c.key))
        value = data.draw(st.text("ab", max_size=3))
        name = leave_a_checkpoint(self.stores[who], group, 1) if saved else None
        self.stores[who].record(group, [row(cell, value) for cell in cells], checkpoint=name, done=done)
        for cell in cells:
            self.rows.setdefault(cell.key, value)
        if saved:
            self.files[group.id] = name
        if done:
            del self.held[who][group.id]
            self.files.pop(group.id, None)

    @rule(who=st.integers(0, 1), data=st.data(), how=st.sampled_from(["release", "retry", "give up"]))
    def stop(self, who: int, data: st.DataObject, how: str) -> None:
        if not self.held[who]:
            return
        group = self.held[who][data.draw(st.sampled_from(sorted(self.held[who])))]
        if how == "release":
            self.stores[who].release(group)
        else:
            self.stores[who].fail(group, "it failed", "", retry=how == "retry")
        if how != "retry":
            del self.held[who][group.id]
        if how == "give up":
            self.files.pop(group.id, None)

    @rule(who=st.integers(0, 1), hard=st.booleans())
    def restart(self, who: int, hard: bool) -> None:
        crash(self.stores[who]) if hard else self.stores[who].close()
        self.held[who] = {}
        self.stores[who] = Store(self.folder)
        self.stores[who].clean()

    @invariant()
    def nothing_is_lost_and_nothing_is_finished_twice(self) -> None:
        if hasattr(self, "folder"):
            for one in self.stores:
                assert {found.cell.key: found["value"] for found in one.rows()} == self.rows
            assert {file.name for file in (self.folder / "checkpoints").iterdir()} == {
                name for name in self.files.values() if name
            }

    def open_keys(self) -> set[str]:
        with self.stores[0]._database.reading() as db:
            return {key for (key,) in db.execute("SELECT key FROM members")}


def test_two_commands_in_any_order_lose_nothing_and_share_no_group():
    run_state_machine_as_test(Commands, settings=settings(max_examples=60, stateful_step_count=30))
