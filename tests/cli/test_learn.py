"""`theodolite learn` as a user runs it: killed, interrupted, on a full disk, with nets that fail."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lab.commands import HANGS, TASKS, Running, command, until_a_row
from tests.lab.small_runs import MLP, asked, checkpoints, held, keyed, net_file, open_groups, rows_of
from theodolite.lab.store.store import Store

FULL_FIELDS = {
    *("net", "shape", "task", "task_args", "members", "seeds", "solved", "diverged", "score", "accuracy", "chance"),
    *("threshold", "unseen", "by_length", "trained_lengths", "steps", "steps_to_solve", "rates", "parameters"),
    *("state_size", "seconds", "device", "batching"),
    "converged",
    "mean_steps",
}

STOPPED = "stopped: what is finished is kept, and the same command goes on\n"


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts commands; whatever a test that failed left of them is ended."""
    made: list[Running] = []

    def one(arguments: list[str], cwd: Path | None = None) -> Running:
        made.append(Running(arguments, cwd))
        return made[-1]

    yield one
    for running in made:
        for pid in running.family():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        running.process.kill()
        running.process.wait()


def imports_torch(pid: int) -> bool:
    """The first thing that a worker does."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    return False


@pytest.mark.parametrize("kills", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_again_and_again_the_same_command_gives_the_rows_of_an_unkilled_run(start, tmp_path, kills):
    rng, seen = random.Random(1), []
    steps = 200 * kills  # more than as many processes get done before they are held
    net = net_file(tmp_path, held(tmp_path / "go"))
    given = ["--net", net, "--workers", 2, "--threads", 1, "--save-every", 0, "--json"]
    again = command(tmp_path / "killed", *given, steps=steps)
    for number in range(kills):
        running = start(again)
        if number == 0:
            until_a_row(tmp_path / "killed", running)
        else:
            time.sleep(rng.uniform(0.5, 7.0))
        assert running.process.poll() is None
        running.process.kill()
        running.process.wait()
        assert running.all_gone(), "workers outlived their command"
        seen.append(dict(asked(tmp_path / "killed", "SELECT key, facts FROM rows")))
    (tmp_path / "go").touch()
    code, out, err = start(again).ended()
    assert (code, err) == (0, "")
    assert sum(entry["members"] for entry in json.loads(out)["results"]) == 8
    rows = dict(asked(tmp_path / "killed", "SELECT key, facts FROM rows"))
    assert seen[0]
    for before in seen:
        assert before.items() <= rows.items(), "a finished cell was run again"
    with Store(tmp_path / "killed", must_exist=True) as left:
        assert keyed(left.rows()) == rows_of({**MLP, **TASKS, "net": net, "steps": steps}, tmp_path / "alone")
        assert left.failures() == []
    assert open_groups(tmp_path / "killed") == []


def test_interrupted_it_says_so_saves_its_state_and_goes_on_from_there(start, tmp_path, learn):
    net = net_file(tmp_path, held(tmp_path / "go", pause=0.4))
    given = ["--net", net, "--every", 5, "--save-every", 1000]
    running = start(command(tmp_path / "runs", *given, "--workers", 2, "--threads", 1, steps=400))
    until_a_row(tmp_path / "runs", running)
    os.killpg(running.process.pid, signal.SIGINT)
    code, out, err = running.ended()
    assert (code, out, err) == (130, "", STOPPED)
    assert running.all_gone()
    groups = open_groups(tmp_path / "runs")
    assert all(owner is None for *_, owner in groups)
    assert sorted(checkpoints(tmp_path / "runs")) == sorted(saved for _, saved, _ in groups if saved)
    facts = dict(asked(tmp_path / "runs", "SELECT key, facts FROM rows"))
    begun = {json.loads(one)["group"] for one in facts.values()}  # the others may have had no time to begin
    steps = dict(asked(tmp_path / "runs", "SELECT id, step FROM groups"))
    assert begun
    assert all(steps[group] > 0 for group in begun)
    (tmp_path / "go").touch()
    outcome = learn(*given, "--json", steps=400, lr="2e-2,1e-6")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out)["reused"] == len(facts) > 0
    assert facts.items() <= dict(asked(tmp_path / "runs", "SELECT key, facts FROM rows")).items()
    with Store(tmp_path / "runs", must_exist=True) as left:
        assert keyed(left.rows()) == rows_of({**MLP, **TASKS, "net": net, "every": 5, "steps": 400}, tmp_path / "alone")
    assert checkpoints(tmp_path / "runs") == []


def test_interrupted_while_its_workers_start_it_leaves_nothing_behind(start, tmp_path):
    net = net_file(tmp_path, held(tmp_path / "go", pause=0.2))
    running = start(command(tmp_path / "runs", "--net", net, "--every", 5, "--workers", 1))
    limit = time.monotonic() + HANGS
    while time.monotonic() < limit and not any(map(imports_torch, running.family())):
        time.sleep(0.01)
    os.killpg(running.process.pid, signal.SIGINT)
    assert running.ended() == (130, "", STOPPED)
    assert running.all_gone()
    assert all(owner is None for *_, owner in open_groups(tmp_path / "runs"))


def test_failures_are_shown_at_once_and_stdout_is_one_document(start, tmp_path, theodolite):
    bad = net_file(tmp_path, "if self.calls > 5: raise ValueError('five is enough')")
    slow = net_file(tmp_path, held(tmp_path / "go", calls=5), "slow.py")
    arguments = f"learn --net {bad},{slow} --task parity --seeds 1 --steps 50 --workers 1 --json".split()
    arguments += ["--arg", "width=4", "--task-arg", "bits=4", "--task-arg", "relevant=2", "--chunk", "1"]
    script = "from theodolite.cli.main import run; run()"
    here = tmp_path / "here"
    here.mkdir()
    running = start([sys.executable, "-c", script, *arguments, "--out", "kept"], cwd=here)
    assert running.process.stderr is not None
    first = running.process.stderr.readline()
    assert running.process.poll() is None, "the failure was told after the end"
    assert first == "failed: 1 members of 'net.py:Net' on 'parity': ValueError: five is enough\n"
    (tmp_path / "go").touch()
    code, out, err = running.ended()
    assert code == 2
    assert err == (
        "error: 1 of 2 members failed, the first with: ValueError: five is enough; "
        "the finished ones are kept, and the same command tries these again\n"
    )
    document = json.loads(out)
    assert [entry["net"] for entry in document["results"]] == ["slow.py:Net"]
    assert document["failures"] == [{"cells": 1, "reason": "ValueError: five is enough"}]
    assert document["asked"] == 2
    assert sorted(path.name for path in here.iterdir()) == ["kept"], "something was written outside --out"
    shown = theodolite("runs", "--failures", "-v", "--out", here / "kept").out
    assert "Traceback" in shown
    assert "raise ValueError('five is enough')" in shown


# In this process: the pool gives way to the engine that needs no start


@pytest.fixture
def learn(theodolite, monkeypatch, tmp_path):
    from theodolite.lab.engines.pool import Here

    monkeypatch.setattr("theodolite.lab.running.make_engine", lambda *_: Here())

    def call(*more: object, steps: int = 40, lr: str = "2e-2", out: Path | None = None):
        return theodolite(*command(out or tmp_path / "runs", *more, steps=steps, lr=lr)[3:])

    return call


def test_json_holds_every_figure_and_progress_goes_elsewhere(learn, tmp_path, monkeypatch):
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    outcome = learn("--json", "--keep-weights", "--tensorboard", tmp_path / "board", "--log-file", tmp_path / "log")
    assert (outcome.code, outcome.err) == (0, "")
    document = json.loads(outcome.out)
    assert set(document) == {"results", "not_applicable", "failures", "reused", "asked"}
    assert [entry["task"] for entry in document["results"]] == ["parity", "majority"]
    for entry in document["results"]:
        assert set(entry) == FULL_FIELDS
        assert entry["solved"]["of"] == entry["members"] == 2
        assert 0 <= entry["solved"]["interval"][0] <= entry["solved"]["share"] <= entry["solved"]["interval"][1] <= 1
        assert entry["batching"] == "ensemble of 2"
        assert entry["device"]
        assert entry["seconds"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board", "cwd", "log", "runs"]
    assert list((tmp_path / "cwd").iterdir()) == []
    assert sorted(p.name for p in (tmp_path / "runs").iterdir() if "store.db-" not in p.name) == [
        "checkpoints",
        "store.db",
        "weights",
    ]


def test_the_table_says_what_was_kept_and_what_was_there(learn):
    assert "4 members kept in" in learn().out
    again = learn()
    assert again.code == 0
    assert "(4 of them from an earlier run)" in again.out


def test_a_net_that_fits_nothing_and_one_that_fits(learn):
    outcome = learn("--task-arg", "parity-check.longest=3", "--net", "mlp,rnn", "--task", "majority,parity-check")
    assert outcome.code == 2  # 'bits' is no field of parity-check
    assert "parity-check" in outcome.err
    outcome = learn("--net", "mlp,conv-circuit")
    assert outcome.code == 0
    assert "not applicable: " in outcome.out
    assert "'conv-circuit'" in outcome.out


@pytest.mark.parametrize(
    ("more", "told", "failed"),
    [(["--fail-fast"], "and 2 were not run", 2), (["--max-failures", "2"], "and 2 were not run", 2), ([], "4 of 4", 4)],
    ids=str,
)
def test_enough_failures_end_the_run_with_a_document_and_exit_2(learn, tmp_path, more, told, failed):
    bad = net_file(tmp_path, "if self.calls: raise ValueError('no')")
    outcome = learn("--net", bad, "--json", *more)
    assert outcome.code == 2
    assert told in outcome.err
    document = json.loads(outcome.out)
    assert document["results"] == []
    assert sum(one["cells"] for one in document["failures"]) == failed
    assert len(outcome.err.splitlines()) == failed // 2 + 1  # one line a group, at once, and the last word


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--net", "lsmt"], "did you mean 'lstm'"),
        (["--task", "partiy"], "did you mean 'parity'"),
        (["--task-arg", "bit=4"], "did you mean 'bits'"),
        (["--task-arg", "copy.longest=4"], "--task-arg copy.longest is about 'copy', which is not among the tasks"),
        (["--arg", "width=4"], "'width' is given as an option and with --arg: give it once"),
        (["--arg", "widht=4"], "did you mean 'width'"),
        (["--lr", "fast"], "--lr 'fast' is not a list of numbers"),
        (["--lr", "1e-3,"], "--lr '1e-3,' is not a list of numbers"),
        (["--device", "gpu"], "gpu"),
        (["--device", "cuda:99"], "cuda"),
        (["--seeds", "0"], "seeds must be at least 1"),
        (["--params", "64k"], "give --params or the width, not both"),
        (["--net", "nowhere.py:Net"], "there is no file 'nowhere.py'"),
        (["--net", "nowhere.py"], "names no class or function"),
        (["--checkpoint", "nowhere"], "there is no checkpoint 'nowhere'"),
        (["--log-file", "nowhere/log"], "the log file 'nowhere/log' cannot be written"),
        (["--unseen", "many", "--net", "rnn", "--task", "parity-check"], "parity-check"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_in_one_sentence_and_makes_nothing(learn, tmp_path, more, told):
    outcome = learn(*more)
    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err
    assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# Stores that cannot be used


@pytest.fixture
def used(learn, tmp_path) -> Path:
    assert learn().code == 0
    return tmp_path / "runs"


def damaged(folder: Path, how: str) -> None:
    file = folder / "store.db"
    if how == "random":
        file.write_bytes(random.Random(0).randbytes(20_000))
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    else:
        with sqlite3.connect(file) as db:
            if how == "newer":
                db.execute("PRAGMA user_version = 99")
            else:
                db.execute("PRAGMA application_id = 7")
        db.close()


@pytest.mark.parametrize("how", ["random", "cut", "newer", "foreign"])
def test_a_store_that_cannot_be_read_is_refused_and_left_alone(learn, used, how):
    damaged(used, how)
    before = (used / "store.db").read_bytes()
    outcome = learn("--json", "--seeds", 3)
    assert outcome.code == 2
    assert json.loads(outcome.out)["error"]["exit_code"] == 2
    assert str(used) in outcome.err
    assert outcome.err.count("\n") == 1
    assert (used / "store.db").read_bytes() == before


def test_a_locked_store_is_told_and_works_again_after(learn, used, monkeypatch):
    init = Store.__init__
    monkeypatch.setattr(Store, "__init__", lambda self, folder: init(self, folder, timeout=0.3))
    lock = sqlite3.connect(used / "store.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    outcome = learn("--seeds", 3)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "locked" in outcome.err or "busy" in outcome.err or "another" in outcome.err
    lock.execute("ROLLBACK")
    lock.close()
    assert learn("--seeds", 3).code == 0


def test_members_that_finished_before_weights_were_kept_are_counted(learn):
    assert learn("--seeds", 1).code == 0
    again = learn("--seeds", 2, "--keep-weights")
    assert again.code == 0
    assert "2 that finished in an earlier run have none" in again.err  # two tasks
    assert learn("--seeds", 2, "--keep-weights").err == again.err


def test_a_full_or_read_only_disk_is_one_sentence_and_the_same_command_goes_on(learn, small_disk, tmp_path):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(800_000))
    full = learn("--save-every", 0, "--seeds", 12, "--keep-weights", out=small_disk / "runs")
    assert (full.code, full.out) == (2, "")
    assert full.err == "error: the disk is full: finished cells are kept; free some space and run the same command\n"
    kept = dict(asked(small_disk / "runs", "SELECT key, facts FROM rows"))
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
    outcome = learn("--save-every", 0, "--seeds", 12, "--keep-weights", "--json", out=small_disk / "runs")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out)["reused"] == len(kept)
    assert kept.items() <= dict(asked(small_disk / "runs", "SELECT key, facts FROM rows")).items()
    with Store(small_disk / "runs", must_exist=True) as left:
        expected = rows_of({**MLP, **TASKS, "steps": 40, "lr": 2e-2, "seeds": 12}, tmp_path / "alone")
        assert keyed(left.rows()) == expected
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    refused = learn("--seeds", 13, out=small_disk / "runs")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "cannot be written" in refused.err
