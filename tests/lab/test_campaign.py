"""A campaign that is disturbed in every way ends with the rows of one that is left alone."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import torch

from theodolite.bench.learn import learn
from theodolite.errors import BadInput, DiskFull, StoreError
from theodolite.lab import campaign, checkpoint
from theodolite.lab.campaign import Listener
from theodolite.lab.cell import Row
from theodolite.lab.engines.pool import Here
from theodolite.lab.store import store
from theodolite.lab.store.store import Store

from .small_runs import MLP, RNN, asked, checkpoints, keyed, net_file, open_groups, rows_of

# Real processes that train; forked from one that has imported everything, so that each costs its training alone.
NURSERY = """
import json, os, random, signal, sqlite3, sys, time
from pathlib import Path
import torch
from theodolite.lab.store import owner, store
from theodolite.lab.campaign import Listener
from theodolite.bench.learn import learn

torch.set_num_threads(1)
store.LEFTOVER = -1.0
folder, run = Path(sys.argv[1]), json.loads(sys.argv[2])
folder.mkdir(exist_ok=True)

def start(log=None, halts=lambda news: False, **changed):  # at an update that `halts`, it waits to be killed
    child = os.fork()
    if child:
        return child
    say = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    def update(group, news):
        for row in news.rows:
            os.write(say, f"{os.getpid()} {row.cell.key}\\n".encode())
        if halts(news):
            signal.pause()
    def watch(done, total, label):
        if label.startswith("waiting for"):
            os.write(say, f"{os.getpid()} waits\\n".encode())
    try:
        found = learn(**{**run, **changed}, out=folder, listener=Listener(watch, update))
        os.write(say, f"{os.getpid()} ends with {len(found.rows)} and {len(found.failures)}\\n".encode())
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(7)

def kill(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

def state():
    if not (folder / "store.db").exists():
        return {}, []
    db = sqlite3.connect(folder / "store.db", timeout=30)
    try:
        rows = dict(db.execute("SELECT key, facts FROM rows"))
        return rows, [step for step, in db.execute("SELECT step FROM groups")]
    except sqlite3.OperationalError:  # killed before it had tables
        return {}, []
    finally:
        db.close()
"""

KILLS = """
rng, kills, seen = random.Random(0), int(sys.argv[3]), []
for number in range(kills):
    aim = 0 if number % 4 == 0 else run["steps"] * number // kills  # some before it trains at all
    child = start(halts=lambda news: news.step >= run["steps"] * (number + 1) // kills)
    while max(state()[1], default=0) < aim:
        assert os.waitpid(child, os.WNOHANG)[0] == 0, "the command ended by itself"
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.1))
    kill(child)
    seen.append(state())
last = start()
assert os.waitpid(last, 0)[1] == 0
print(json.dumps({"seen": seen, "end": state()}))
"""

TOGETHER = """
log = folder / "log"
first, second = start(log), start(log, seeds=run["seeds"] + 1)
codes = [os.waitpid(child, 0)[1] for child in (first, second)]

begun = len(state()[0])  # one more command, with new cells; it is killed while another waits for it
changed = {"seed": 100, "steps": 300}
held = start(log, halts=lambda news: news.rows, **changed)
while len(state()[0]) == begun:
    time.sleep(0.005)
waits = start(log, **changed)
while f"{waits} waits" not in log.read_text():
    time.sleep(0.005)
kill(held)
codes.append(os.waitpid(waits, 0)[1])
print(json.dumps({"codes": codes, "pids": [first, second, held, waits]}))
"""


def nursery(script: str, folder: Path, run: dict, *arguments: object) -> str:
    command = [sys.executable, "-W", "ignore", "-c", NURSERY + script]  # Python warns where a library has threads
    command += [str(folder), json.dumps(run), *map(str, arguments)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, Row]:
    """The rows of `MLP` as an undisturbed run gives them."""
    return rows_of(MLP, tmp_path_factory.mktemp("alone"))


@pytest.fixture
def swept(monkeypatch) -> None:
    """What a crash leaves among the checkpoints goes with the next command, not after a minute."""
    monkeypatch.setattr(store, "LEFTOVER", -1.0)


@pytest.mark.parametrize("kills", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_rows_of_an_unkilled_run(tmp_path, kills, swept):
    run = {**MLP, "steps": 40 * kills}
    found = json.loads(nursery(KILLS, tmp_path / "killed", run, kills))
    assert len(found["seen"]) == kills
    steps = [steps[0] for _, steps in found["seen"] if steps]
    assert steps == sorted(steps), "a run that was killed went back"
    assert len(set(steps) - {0}) >= kills // 3, "the kills did not come in the middle of the training"
    rows, groups = found["end"]
    assert groups == []
    for before, _ in found["seen"]:
        assert before.items() <= rows.items(), "a finished cell was run again"
    assert any(0 < len(before) < 4 for before, _ in found["seen"])
    with Store(tmp_path / "killed", must_exist=True) as left:
        assert keyed(left.rows()) == rows_of(run, tmp_path / "alone")
        left.clean()
    assert checkpoints(tmp_path / "killed") == []


def test_commands_on_one_store_share_its_cells_and_take_over_from_the_dead(tmp_path, swept):
    run = {**MLP, "task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}, "seeds": 1}
    shared = tmp_path / "shared"
    found = json.loads(nursery(TOGETHER, shared, run))
    assert found["codes"] == [0, 0, 0]
    first, second, held, waits = map(str, found["pids"])
    lines = [line.split(" ", 1) for line in (shared / "log").read_text().splitlines() if "waits" not in line]
    assert {pid: told for pid, told in lines if "ends" in told} == {
        first: "ends with 4 and 0",
        second: "ends with 8 and 0",
        waits: "ends with 4 and 0",
    }
    ran = Counter(key for pid, key in lines if pid in (first, second) and "ends" not in key)
    assert Counter(ran.values()) == {1: 8}, "each cell was run by one of the two"
    assert {pid for pid, key in lines if key not in ran and "ends" not in key} == {held, waits}
    with Store(shared, must_exist=True) as left:
        rows = keyed(left.rows())
        assert left.failures() == []
    assert len(rows) == 12
    late = {"seed": 100, "steps": 300}
    expected = rows_of(run, tmp_path / "alone", **late)
    assert {key: rows[key] for key in expected} == expected
    assert learn(**{**run, "seeds": 2}, out=shared).reused == 8
    assert checkpoints(shared) == []


@pytest.mark.parametrize("run", [MLP, RNN], ids=["mlp", "rnn"])
def test_an_interrupted_run_saves_its_state_and_goes_on_from_there(tmp_path, run):
    run = {**run, "save_every": 1000.0}

    def interrupt(done: float, total: float, label: str) -> None:
        if "step 40" in label:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(**run, out=tmp_path / "stopped", listener=Listener(watch=interrupt))
    [(step, saved, owner)] = open_groups(tmp_path / "stopped")
    assert step >= 40
    assert owner is None
    assert checkpoints(tmp_path / "stopped") == [saved]
    steps: list[int] = []
    listener = Listener(update=lambda group, news: steps.append(news.step))
    found = learn(**run, out=tmp_path / "stopped", listener=listener)
    assert min(steps) > step
    assert keyed(found.rows) == rows_of(run, tmp_path / "alone")
    assert found.reused == sum(row["steps"] <= step for row in found.rows)
    assert checkpoints(tmp_path / "stopped") == []


def stopped_at(folder: Path, step: int, run: dict = MLP) -> str:
    """A run that was interrupted there; gives the name of its checkpoint."""

    def interrupt(group: object, news: campaign.Update) -> None:
        if news.step >= step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(**run, out=folder, listener=Listener(update=interrupt))
    return open_groups(folder)[0][1]


@pytest.mark.parametrize("damage", ["bytes", "cut", "missing", "foreign"])
def test_a_checkpoint_that_cannot_be_used_lets_the_group_begin_again(tmp_path, damage, caplog, alone):
    file = tmp_path / "runs" / "checkpoints" / stopped_at(tmp_path / "runs", 100)
    content = bytearray(file.read_bytes())
    if damage == "bytes":
        content[-20] ^= 255
        file.write_bytes(content)
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "missing":
        file.unlink()
    else:
        checkpoint.write_checkpoint(
            file, {"parameter.weight": torch.zeros(3)}, {"session": '{"members": [], "step": 3}'}
        )
    steps: list[int] = []
    listener = Listener(update=lambda group, news: steps.append(news.step))
    found = learn(**MLP, out=tmp_path / "runs", listener=listener)
    assert min(steps) < 100
    assert "begins again" in caplog.text
    assert not found.failures
    assert keyed(found.rows) == alone
    assert checkpoints(tmp_path / "runs") == []


def test_a_group_that_began_is_finished_as_it_began_also_for_one_who_wants_less(tmp_path, alone):
    stopped_at(tmp_path / "runs", 100)
    found = learn(**{**MLP, "seeds": 1}, out=tmp_path / "runs")
    assert len(found.rows) == 2
    assert keyed(found.rows).items() <= alone.items()
    with Store(tmp_path / "runs", must_exist=True) as left:
        assert keyed(left.rows()) == alone


def test_what_crashes_leave_among_the_checkpoints_is_swept_away(tmp_path, alone):
    folder = tmp_path / "runs" / "checkpoints"
    folder.mkdir(parents=True)
    left = [f"{'a' * 16}-16-{'b' * 8}.safetensors", f".{'a' * 16}-16-{'b' * 8}.safetensors.x1y2", ".tmpXqK3tv"]
    for name in (*left, "notes.txt", ".tmp"):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - 120,) * 2)
    (folder / ".tmpYounge").touch()
    assert keyed(learn(**MLP, out=tmp_path / "runs").rows) == alone
    assert checkpoints(tmp_path / "runs") == [".tmp", ".tmpYounge", "notes.txt"]


# Full and broken disks


def fill(place: Path) -> None:
    with (place / "ballast").open("ab", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            pass


def test_a_disk_that_fills_up_stops_the_run_and_costs_nothing_but_time(tmp_path, small_disk, alone):
    def full_after(step: int) -> Listener:
        return Listener(update=lambda group, news: fill(small_disk) if news.step >= step else None)

    kept: list[int] = []
    for step in (60, 120):  # twice: also a run that goes on from its checkpoint
        with pytest.raises(StoreError, match="disk is full: finished cells are kept; free some space"):
            learn(**MLP, out=small_disk / "runs", listener=full_after(step))
        (small_disk / "ballast").unlink()
        [(at, saved, _)] = open_groups(small_disk / "runs")
        assert (small_disk / "runs" / "checkpoints" / saved).is_file()
        kept.append(at)
        assert asked(small_disk / "runs", "SELECT count(*) FROM rows") == [(2,)]
        assert asked(small_disk / "runs", "SELECT count(*) FROM failures") == [(0,)]
    assert 0 < kept[0] < kept[1] < 200
    assert keyed(learn(**MLP, out=small_disk / "runs").rows) == alone


def test_a_checkpoint_that_cannot_be_written_is_nobodys_failure(tmp_path, monkeypatch, alone):
    times = 0

    def refuse(*_: object) -> None:
        nonlocal times
        times += 1
        if times > 6:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "_to_disk", refuse)
    with pytest.raises(StoreError, match="disk is full"):
        learn(**MLP, out=tmp_path / "runs")
    monkeypatch.undo()
    [(step, _, owner)] = open_groups(tmp_path / "runs")
    assert (step, owner) == (36, None)  # after 16 and 20; each takes two calls, and the seventh is refused
    assert asked(tmp_path / "runs", "SELECT count(*) FROM failures") == [(0,)]
    assert keyed(learn(**MLP, out=tmp_path / "runs").rows) == alone


def test_a_row_that_cannot_be_written_is_computed_again(tmp_path, monkeypatch, alone):
    record = Store.record

    def full(self: Store, group: object, finished: object = (), *given: object, **named: object) -> None:
        if finished:
            raise DiskFull("the disk is full")
        record(self, group, finished, *given, **named)

    monkeypatch.setattr(Store, "record", full)
    with pytest.raises(DiskFull):
        learn(**MLP, out=tmp_path / "runs")
    monkeypatch.undo()
    assert asked(tmp_path / "runs", "SELECT count(*) FROM rows") == [(0,)]
    assert keyed(learn(**MLP, out=tmp_path / "runs").rows) == alone


# Failures


def test_a_net_that_raises_fails_alone_and_is_told_at_once(tmp_path, alone):
    bad = net_file(tmp_path, "if self.calls > 5: raise ValueError('five is enough\\nand more')")
    told: list[tuple[str, int, int]] = []
    rows: list[str] = []
    listener = Listener(
        update=lambda group, news: rows.extend(row.cell.key for row in news.rows),
        failure=lambda failure: told.append((failure.sentence, len(failure.cells), len(rows))),
    )
    run = {**MLP, "net": [bad, "mlp"], "shape": {"width": 8}}
    found = learn(**run, out=tmp_path / "runs", listener=listener)
    assert told == [("ValueError: five is enough", 4, 0)]
    assert [row.cell.config["net"] for row in found.rows] == ["mlp"] * 4
    assert (found.asked, found.reused) == (8, 0)
    assert keyed(found.rows) == alone
    with Store(tmp_path / "runs", must_exist=True) as left:
        [failure] = left.failures()
    assert failure["sentence"] == "ValueError: five is enough"
    assert "net.py" in failure["traceback"]
    assert "five is enough\nand more" in failure["traceback"]
    assert not failure["retried"]
    assert checkpoints(tmp_path / "runs") == []
    again = learn(**run, out=tmp_path / "runs", listener=listener)
    assert again.reused == 4
    assert len(told) == 2, "what failed is tried again by the next command"


def test_too_many_failures_stop_the_run_and_what_is_finished_is_kept(tmp_path):
    bad = net_file(tmp_path, "if self.calls: raise ValueError('no')")
    run = {**MLP, "net": ["mlp", bad], "task_args": {"bits": 5}, "shape": {"width": 4}, "lr": 1e-2, "steps": 40}
    run["task_args"]["parity.relevant"] = 2
    found = learn(**run, out=tmp_path / "one", max_failures=1)
    assert (len(found.failures), len(found.rows), found.asked) == (1, 2, 4)
    others = {**run, "task": ["parity", "majority"]}
    for most, failed in ((1, 1), (2, 1), (3, 2), (None, 2)):  # groups of two members fail together
        found = learn(**{**others, "net": bad}, out=tmp_path / str(most), max_failures=most)
        assert len(found.failures) == failed, most
        assert found.asked == 4
    assert open_groups(tmp_path / "1") != []
    assert learn(**{**others, "net": ["mlp", bad]}, out=tmp_path / "one").reused == 2


def test_members_that_diverge_are_results_and_not_failures(tmp_path):
    late = net_file(tmp_path, "x = x * float('nan') if self.calls > 30 else x")
    found = learn(**{**MLP, "net": late, "lr": 1e-6, "chunk": 1}, out=tmp_path / "runs")
    assert not found.failures
    assert [row["status"] for row in found.rows] == ["diverged"] * 2
    assert all(0 < row["steps"] < 200 for row in found.rows)
    assert found.summary[0]["accuracy"] is None
    assert found.summary[0]["solved"]["count"] == 0


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        ("return torch.full((len(x), 1), float('nan'))", "not finite"),
        ("return torch.zeros(len(x), 7)", r"shape \(3, 7\)"),
        ("return (1, 2)", "returned a tuple"),
        ("raise ValueError('always')", "cannot run on 'parity': ValueError: always"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
    ],
)
def test_a_net_that_never_works_is_refused_before_anything_is_made(tmp_path, happens, told):
    with pytest.raises(BadInput, match=told):
        learn(**{**MLP, "net": net_file(tmp_path, happens)}, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_changed_file_means_other_cells(tmp_path):
    net = net_file(tmp_path)
    run = {**MLP, "net": net, "lr": 1e-2, "steps": 20}
    first = learn(**run, out=tmp_path / "runs")
    assert learn(**run, out=tmp_path / "runs").reused == 2
    net_file(tmp_path, "x = x.abs()")
    changed = learn(**run, out=tmp_path / "runs")
    assert changed.reused == 0
    assert keyed(changed.rows).keys().isdisjoint(keyed(first.rows))
    net_file(tmp_path)
    assert keyed(learn(**run, out=tmp_path / "runs").rows) == keyed(first.rows)


def test_a_file_that_changes_while_its_run_waits_is_a_failure_with_a_sentence(tmp_path):
    net = net_file(tmp_path)
    listener = Listener(watch=lambda *_: net_file(tmp_path, "x = -x"))
    run = {**MLP, "net": net, "lr": 1e-2, "steps": 20, "task": ["parity", "majority"]}
    run["task_args"] = {"bits": 5, "parity.relevant": 2}
    found = learn(**run, out=tmp_path / "runs", listener=listener)
    assert len(found.rows) == 2
    assert "was changed since this run was planned: start the command again" in found.failures[0].sentence


def test_two_files_of_one_name_are_two_nets(tmp_path):
    nets = [net_file(tmp_path / "a"), net_file(tmp_path / "b", "x = x.abs()")]
    found = learn(**{**MLP, "net": nets, "lr": 1e-2, "steps": 20})
    assert not found.failures
    assert len(found.rows) == 4
    assert len({row.cell.config["source"] for row in found.rows}) == 2


def test_a_group_that_another_command_took_is_left_to_it(tmp_path, caplog, alone):
    """As after a long sleep of this machine: the other thinks we are dead, takes our group, and is at work."""
    taken: list[Store] = []

    def take(group: object, news: campaign.Update) -> None:
        if not taken and news.step >= 60:
            with Store(tmp_path / "runs") as thief, thief._database.writing() as db:
                db.execute("DELETE FROM owners")  # its groups are free
            taken.append(thief)

    found = learn(**MLP, out=tmp_path / "runs", listener=Listener(update=take))
    assert "not held by this command any more" in caplog.text
    assert not found.failures
    assert keyed(found.rows) == alone


def test_what_a_retry_starts_from_is_the_last_checkpoint(tmp_path, alone):
    """The engine says that its worker died, twice in a row: the group is tried again where it was saved."""
    submitted: list[tuple[int, int]] = []

    class Dying(campaign.Engine):  # a `Here` whose worker dies when it reaches a step
        def __init__(self) -> None:
            self.inner, self.workers = Here(), 1
            self.deaths = [40, 120]

        @property
        def free(self) -> int:
            return self.inner.free

        def submit(self, group, context) -> None:
            submitted.append((group.step, group.attempts))
            self.inner.submit(group, context)

        def poll(self, timeout):  # pyright: ignore[reportIncompatibleMethodOverride]
            messages = self.inner.poll(timeout)
            for news in messages:
                if self.deaths and news.step >= self.deaths[0]:  # pyright: ignore[reportAttributeAccessIssue]
                    self.deaths.pop(0)
                    self.inner.drop(news.group)
                    return [campaign.Died(news.group, -9)]
            return messages

        def drop(self, group) -> None:
            self.inner.drop(group)

        def stop(self):
            return self.inner.stop()

    engine = Dying()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("theodolite.lab.running.make_engine", lambda *_: engine)
        found = learn(**MLP, out=tmp_path / "runs")
    assert submitted == [(0, 0), (36, 1), (116, 2)]
    assert keyed(found.rows) == alone
    with Store(tmp_path / "runs", must_exist=True) as left:
        sentence = "a worker died (killed, often for want of memory); its group is tried again"
        assert [(f["sentence"], f["retried"]) for f in left.failures()] == [(sentence, True)] * 2
    engine = Dying()
    engine.deaths = [20, 20, 20]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("theodolite.lab.running.make_engine", lambda *_: engine)
        found = learn(**MLP, out=tmp_path / "hopeless")
    assert [f.sentence for f in found.failures] == ["its worker died 3 times (killed, often for want of memory)"]
    assert len(found.rows) == 0
    assert open_groups(tmp_path / "hopeless") == []
    assert not found.failures[0].expected


def test_steps_that_were_to_be_compiled_and_run_one_by_one_are_said_with_the_reason(tmp_path, caplog):
    peeking = net_file(tmp_path, "x = x if x.sum().item() > 0 else 2 * x")
    run = {**MLP, "net": peeking, "lr": 1e-6, "steps": 20, "chunk": None, "compile": "always"}
    found = learn(**run, out=tmp_path / "tried")
    assert ".item()" in caplog.text
    assert caplog.text.count("are not compiled: its members run one by one") == 1
    assert [row["status"] for row in found.rows] == ["unsolved"] * 2
    caplog.clear()
    learn(**{**run, "chunk": 1}, out=tmp_path / "asked")
    assert "since --chunk 1 asks for that" in caplog.text
