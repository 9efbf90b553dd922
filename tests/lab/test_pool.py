"""Worker processes: they give what this process gives, die alone, and never outlive their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from theodolite.bench.learn import learn
from theodolite.errors import BadInput
from theodolite.lab.campaign import Listener
from theodolite.lab.engines import pool
from theodolite.lab.engines.pool import Died, Failed, Here, Pool
from theodolite.lab.group import Group
from theodolite.lab.run_cells import place
from theodolite.lab.store import store
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context

from .small_runs import MLP, RNN, checkpoints, held, keyed, net_file, rows_of

TWO_LANES = {**MLP, "task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}, "steps": 80}


# In a worker it raises at the second step; once there is a file beside it, it says so in another and sleeps.
SLEEPS = """if multiprocessing.parent_process() and self.calls > 1:
            assert os.path.exists(__file__ + ".sleep"), "no bed"
            open(__file__ + ".asleep", "w").close()
            signal.pause()"""


def workers() -> list[int]:
    return [child.pid for child in multiprocessing.active_children() if child.pid is not None]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_workers_give_the_rows_of_this_process_also_when_one_of_them_is_killed(tmp_path, monkeypatch):
    killed: list[int] = []
    blocked: list[int] = []

    def kill(group: Group, news: pool.Update) -> None:
        if not killed and news.checkpoint and len(workers()) == 2:
            for pid in workers():
                status = Path(f"/proc/{pid}/status").read_text()
                blocked.append(int(status.partition("SigBlk:\t")[2].split()[0], 16))
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)
            (tmp_path / "go").touch()

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    run = {**TWO_LANES, "net": net_file(tmp_path, held(tmp_path / "go", calls=40)), "steps": 120}
    found = learn(**run, out=tmp_path / "pool", workers=2, threads=1, listener=Listener(update=kill))
    assert killed
    assert all(mask >> (signal.SIGINT - 1) & 1 for mask in blocked), "Ctrl-C would kill a worker"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert workers() == []
    assert not found.failures
    assert keyed(found.rows) == rows_of(run, tmp_path / "here")
    assert len({row.facts["group"] for row in found.rows}) == 2
    with Store(tmp_path / "pool", must_exist=True) as left:
        sentence = "a worker died (killed, often for want of memory); its group is tried again"
        assert [(f["sentence"], f["retried"]) for f in left.failures()] == [(sentence, True)]
        monkeypatch.setattr(store, "LEFTOVER", -1.0)  # it may have been killed while it wrote a checkpoint
        left.clean()
    assert checkpoints(tmp_path / "pool") == []


def test_a_net_that_ends_its_worker_is_tried_three_times_and_the_others_are_finished(tmp_path):
    bad = net_file(tmp_path, "if multiprocessing.parent_process() and self.calls > 3: os._exit(5)")
    told: list[str] = []
    listener = Listener(failure=lambda failure: told.append(failure.sentence))
    run = {**MLP, "steps": 40, "lr": 1e-2, "net": [bad, "mlp"], "shape": {"width": 8}}
    found = learn(**run, out=tmp_path / "runs", workers=1, threads=1, listener=listener)
    assert told == ["its worker died 3 times (exit code 5)"]
    assert [len(failure.cells) for failure in found.failures] == [2]
    assert keyed(found.rows) == rows_of(run, tmp_path / "here", net="mlp")
    with Store(tmp_path / "runs", must_exist=True) as left:
        assert [f["retried"] for f in left.failures()] == [True, True, False]
    assert checkpoints(tmp_path / "runs") == []


def group_of(run: dict, folder: Path) -> tuple[Group, Context]:
    """A group as a campaign hands it over."""
    cells = [row.cell for row in rows_of(run, folder / "rows").values()]
    (folder / "checkpoints").mkdir(exist_ok=True)
    return Group.of(cells, {"device": "cpu", "chunk": 2}), Context(folder / "checkpoints")


def until(engine: Pool | Here, group: Group, end: type | tuple[type, ...] = ()) -> list[Any]:
    messages: list[Any] = []
    while not any(isinstance(m, end) or (isinstance(m, pool.Update) and m.done) for m in messages):
        messages += engine.poll(0.2)
    return messages


def test_a_worker_serves_many_groups_and_one_that_died_idle_is_noticed(tmp_path):
    group, context = group_of({**RNN, "steps": 20}, tmp_path)
    engine = Pool(1, 1)
    assert engine.free == 1
    engine.submit(group, context)
    assert engine.free == 0
    messages = until(engine, group)
    assert [m.number for m in messages] == list(range(len(messages)))
    assert engine.free == 1
    [worker] = workers()
    engine.submit(group, context)
    again = until(engine, group)
    assert workers() == [worker]
    rows = [{r.cell.key: r for m in news for r in m.rows} for news in (messages, again)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4
    os.kill(worker, signal.SIGKILL)
    engine.submit(group, context)
    assert until(engine, group, Died)[-1] == Died(group.id, -signal.SIGKILL)
    assert engine.free == 1
    assert engine.stop() == []
    assert gone(worker)


def test_a_worker_without_work_goes_by_itself(tmp_path):
    """One that is terminated leaves semaphores behind, and Python's warning of them as the last line of a command."""
    group, context = group_of({**MLP, "steps": 20}, tmp_path)
    engine = Pool(1, 1)
    engine.submit(group, context)
    while engine.free == 0:
        engine.poll(0.05)
    (worker,) = engine._pool
    engine.stop()
    assert worker.process.exitcode == 0


def test_a_worker_that_does_not_answer_is_ended_and_one_that_raises_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_PATIENCE", 1.0)
    net = net_file(tmp_path, SLEEPS)
    group, context = group_of({**MLP, "net": net, "steps": 20, "chunk": 1}, tmp_path)
    context = Context(context.checkpoints, {place(group.cells[0].config): net})
    engine = Pool(1, 1)
    engine.submit(group, context)
    failed = until(engine, group, Failed)[-1]
    assert failed.sentence == "AssertionError: no bed"
    assert not failed.expected
    assert not failed.disk
    assert "net.py" in failed.traceback
    [worker] = workers()
    (tmp_path / "net.py.sleep").touch()
    engine.submit(group, context)
    while not (tmp_path / "net.py.asleep").exists():
        engine.poll(0.05)
    assert workers() == [worker], "a net that raised costs no worker"
    engine.stop()
    assert gone(worker)
    assert workers() == []


def test_this_process_as_an_engine_takes_one_group_and_saves_it_when_asked_to_stop(tmp_path):
    group, context = group_of({**MLP, "steps": 100}, tmp_path)
    context = Context(context.checkpoints, save_every=1000.0)
    engine = Here()
    engine.submit(group, context)
    assert engine.free == 0
    engine.poll(0)
    last: Any
    [last] = engine.stop()
    assert last.checkpoint is not None
    assert checkpoints(tmp_path) == [last.checkpoint]
    assert engine.free == 1
    rest = Here()
    rest.submit(Group(group.id, group.cells, group.settings, last.step, last.checkpoint), context)
    messages = until(rest, group)
    assert messages[0].step > last.step
    rows = {row.cell.key: row for news in messages for row in news.rows}
    alone = Here()
    alone.submit(group, context)
    expected = {row.cell.key: row for news in until(alone, group) for row in news.rows}
    assert len(expected) == 4
    assert rows.items() <= expected.items()
    assert rows


def test_an_object_as_a_net_stays_in_this_process(tmp_path):
    class Own(nn.Linear):
        def __init__(self, features: int, outputs: int) -> None:
            super().__init__(features, outputs)

    run = {**MLP, "net": Own, "shape": {}, "steps": 20}
    with pytest.raises(BadInput, match="an object cannot be sent to other processes"):
        learn(**run, out=tmp_path / "runs", workers=1)
    assert len(learn(**run, out=tmp_path / "runs").rows) == 4
