"""Real processes on one store, killed at any moment: every row is there once, as if nobody had been killed."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from theodolite.lab.cell import Cell
from theodolite.lab.store.store import Store

# A worker: a chain of digests stands for training, so that a row is right only if the run went on from its checkpoint.
WORK = """
import fcntl, hashlib, json, os, random, signal, sqlite3, sys, time
from pathlib import Path
from theodolite.lab.store import store as module
from theodolite.lab.cell import Cell, Row
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store

assert "torch" not in sys.modules

def work(folder, count, size, pause=lambda: None):
    cells = [Cell("learn", {"seed": seed}) for seed in range(count)]
    keys = [cell.key for cell in cells]
    say = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = Store(folder)
    store.clean()
    while True:
        store.plan(cells, lambda free: [Group.of(free[i : i + size]) for i in range(0, len(free), size)])
        group = store.claim(keys)
        if group is None:
            if len(store.finished(keys)) == count:
                return store.close()
            time.sleep(0.01)
            continue
        alone = os.open(folder / f"alone-{group.id}", os.O_WRONLY | os.O_CREAT)
        try:
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.write(say, b"SHARED\\n")
        state = (store.checkpoints / group.checkpoint).read_text() if group.checkpoint else ""
        for step in range(group.step, len(group.cells)):
            cell = group.cells[step]
            os.write(say, f"run {cell.key}\\n".encode())
            pause()
            state = hashlib.sha256((state + cell.key).encode()).hexdigest()
            name = group.checkpoint_name(step + 1)
            (store.checkpoints / name).write_text(state)
            pause()
            store.record(group, [Row(cell, {"state": state})], step=step + 1, checkpoint=name)
            os.write(say, f"finished {cell.key}\\n".encode())
        store.record(group, done=True)
        os.close(alone)
"""

SLOWLY = """
rng, folder = random.Random(int(sys.argv[2])), Path(sys.argv[1])

def pause():  # the last rows wait until there were enough kills
    time.sleep(0.02 * rng.random())
    while (folder / "log").read_text().count("finished") > 170 and not (folder / "enough").exists():
        time.sleep(0.01)

work(folder, 200, 10, pause)
"""

HOLD = """
store, cell = Store(Path(sys.argv[1])), Cell("m", {})
store.plan([cell], lambda free: [Group.of(free)])
store.claim([cell.key])
"""

# One child for each statement of a whole run, killed just before that statement; then a run that is left alone.
AT_EVERY_STATEMENT = """
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
    if ticks == deadly:
        os.kill(os.getpid(), signal.SIGKILL)

connect = sqlite3.connect
def watched(*given, **named):
    connection = connect(*given, **named)
    connection.set_trace_callback(tick)
    return connection

module.LEFTOVER = -1.0  # what a crash leaves is swept away at once
deaths, endings = 0, []
for deadly in range(1, 10_000):
    folder = Path(sys.argv[1]) / str(deadly)
    folder.mkdir()
    child = os.fork()
    if child == 0:
        sqlite3.connect = watched
        work(folder, 4, 2, tick)
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    work(folder, 4, 2)
    with Store(folder) as store:
        store.clean()
        lines = (folder / "log").read_text().split("\\n")
        endings.append({
            "rows": {row.cell.key: row["state"] for row in store.rows()},
            "files": [file.name for file in store.checkpoints.iterdir()],
            "again": [line for number, line in enumerate(lines) if line.startswith("run") and
                      line.replace("run", "finished") in lines[:number]],
            "shared": "SHARED" in lines,
        })
    if not killed:
        break
    deaths += 1
print(json.dumps({"deaths": deaths, "endings": endings}))
"""

AT_ONCE = """
cells = [Cell("learn", {"seed": seed}) for seed in range(6)]
claimed = []
for turn in range(int(sys.argv[2])):
    folder, start = Path(sys.argv[1]) / str(turn), time.time() + 0.03
    children = []
    for _ in range(6):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            time.sleep(max(0, start - time.time()))
            store = Store(folder)
            store.plan(cells, lambda free: [Group.of([cell]) for cell in free])
            group = store.claim([cell.key for cell in cells])
            os.write(write, group.id.encode())
            os.close(write)
            signal.pause()  # and keep it
        os.close(write)
        children.append((child, read))
    claimed.append([os.read(read, 100).decode() for _, read in children])
    for child, read in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
print(json.dumps(claimed))
"""


def chain(cells: list[Cell], size: int) -> dict[str, str]:
    """What a run that nobody kills gives."""
    states, state = {}, ""
    for number, cell in enumerate(cells):
        state = hashlib.sha256(((state if number % size else "") + cell.key).encode()).hexdigest()
        states[cell.key] = state
    return states


def asked(script: str, *arguments: object) -> Any:
    command = [sys.executable, "-c", WORK + script, *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_workers_that_are_killed_at_random_lose_nothing_and_repeat_nothing(tmp_path):
    rng, cells = random.Random(0), [Cell("learn", {"seed": seed}) for seed in range(200)]

    def worker() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORK + SLOWLY, str(tmp_path), str(rng.randrange(10**9))]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    workers, kills = [worker() for _ in range(4)], 0
    try:
        while not (tmp_path / "store.db").exists():
            time.sleep(0.01)
        for _ in range(16):
            time.sleep(0.1 * rng.random())
            victim = rng.randrange(4)
            workers[victim].kill()
            kills += workers[victim].wait() == -signal.SIGKILL
            workers[victim] = worker()
        (tmp_path / "enough").touch()
        errors = [one.communicate()[1] for one in workers]
    finally:
        for one in workers:
            one.kill()
            one.wait()
    assert errors == [""] * 4
    assert [one.returncode for one in workers] == [0] * 4
    assert kills == 16
    with Store(tmp_path, must_exist=True) as left:
        assert Counter(row.cell.key for row in left.rows()) == Counter(cell.key for cell in cells)
        assert {row.cell.key: row["state"] for row in left.rows()} == chain(cells, 10)
        assert left.claim([cell.key for cell in cells]) is None
    lines = (tmp_path / "log").read_text().splitlines()
    assert "SHARED" not in lines  # no group was ever run by two at once
    finished: set[str] = set()
    for line in lines:
        kind, key = line.split()
        assert kind != "run" or key not in finished, "a finished cell was run again"
        if kind == "finished":
            finished.add(key)
    assert len(finished) > 150


def test_killed_before_any_statement_the_next_run_ends_like_one_that_was_left_alone(tmp_path):
    found = asked(AT_EVERY_STATEMENT, tmp_path)
    expected = chain([Cell("learn", {"seed": seed}) for seed in range(4)], 2)
    assert found["deaths"] > 80
    for ending in found["endings"]:
        assert ending == {"rows": expected, "files": [], "again": [], "shared": False}


def test_many_that_open_a_new_store_at_once_share_out_its_groups(tmp_path):
    for claimed in asked(AT_ONCE, tmp_path, 10):
        assert len(set(claimed)) == 6
        assert all(claimed)


def test_the_groups_of_a_stopped_process_are_not_taken_and_those_of_a_dead_one_are(tmp_path):
    script = HOLD + "print('held', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    key = Cell("m", {}).key
    with (
        subprocess.Popen([sys.executable, "-c", WORK + script, tmp_path], **pipes) as child,
        Store(tmp_path) as opened,
    ):
        try:
            assert child.stdout.readline() == "held\n"
            child.send_signal(signal.SIGSTOP)
            with opened._database.writing() as db:
                db.execute("UPDATE owners SET seen = 0")  # silent for years, and still alive
            assert opened.claim([key]) is None
            assert [line.split(",")[0] for line in opened.waiting_for([key])] == [
                f"pid {child.pid} on {opened._owner.host}"
            ]
        finally:
            child.kill()
        child.wait()
        assert opened.waiting_for([key]) == []
        assert opened.claim([key]) is not None


def test_a_store_is_not_shared_with_a_forked_process(tmp_path):
    script = """
store = Store(Path(sys.argv[1]))
child = os.fork()
if child == 0:
    try:
        store.rows()
    except module.StoreError as error:
        os._exit(7 if "open it again" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(store.rows()))
"""
    command = [sys.executable, "-c", WORK + script, tmp_path]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "7 0\n"


def test_ending_without_closing_gives_the_claims_back(tmp_path):
    subprocess.run([sys.executable, "-c", WORK + HOLD, tmp_path], check=True)
    with Store(tmp_path) as opened, opened._database.reading() as db:
        assert db.execute("SELECT count(*), count(owner) FROM groups").fetchone() == (1, 0)


@pytest.mark.parametrize("name", ["store.store", "store.database", "store.owner", "group", "cell"])
def test_the_store_needs_no_torch(name):
    script = f"import sys, theodolite.lab.{name}; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(__file__).parent).returncode == 0
