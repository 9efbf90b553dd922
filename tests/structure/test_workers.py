"""Calls in other processes: the same values, the same errors, whatever becomes of a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from theodolite.graphs import CompositionalGraph
from theodolite.structure import workers
from theodolite.structure.draws import own_draws
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.fitting import fit
from theodolite.structure.workers import Promise, begin, by_workers, forget, ready

PATIENCE = 60.0  # seconds: a worker loads torch
SMALL = Effort(folds=2, restarts=1, descent=30, polish=5, products=1e9, width=4, dense_width=None)


@pytest.fixture
def crew() -> Iterator[workers._Crew]:
    """One worker, at work."""
    ready(2)
    assert until(lambda: begin(os.getpid), lambda promise: promise.state == "done").value != os.getpid()
    yield workers._crew
    for worker in workers._crew.workers:
        worker._end()


def until(make: Callable[[], Promise], true: Callable[[Promise], bool]) -> Promise:
    promise, end = make(), time.monotonic() + PATIENCE
    while not true(promise):
        assert time.monotonic() < end
        time.sleep(0.01)
    return promise


def test_without_workers_all_is_made_here_and_in_order() -> None:
    assert list(by_workers([os.getpid] * 3)) == [os.getpid()] * 3
    made: list[int] = []
    promise = begin(partial(made.append, 1))
    assert made == []
    promise.result()
    promise.result()
    assert made == [1]


def test_what_a_network_learns_does_not_depend_on_where(crew: workers._Crew) -> None:
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (80, 2))
    graph = CompositionalGraph.dense(("a", "b"))

    def call(seed: int) -> partial:
        return partial(fit, graph, x, x[:, 0] * x[:, 1], own_draws(np.random.default_rng(seed)), effort=SMALL)

    there = [until(lambda s=seed: begin(call(s)), lambda promise: promise.state == "done").value for seed in range(2)]
    shared = list(by_workers(call(seed) for seed in range(2)))
    for seed in range(2):
        for found in (there[seed], shared[seed]):
            np.testing.assert_allclose(found.held_out, call(seed)().held_out, rtol=1e-7, atol=1e-9)


def test_several_are_at_work_and_come_in_order(crew: workers._Crew) -> None:
    calls = [partial(_slow, place) for place in range(6)]
    assert [place for place, _ in by_workers(calls)] == list(range(6))
    assert len({process for _, process in by_workers(calls)}) == 2


def _slow(place: int) -> tuple[int, int]:
    time.sleep(0.1)
    return place, os.getpid()


def test_an_error_is_raised_where_the_result_is_asked_for(crew: workers._Crew) -> None:
    promise = until(lambda: begin(partial(divmod, 1, 0)), lambda promise: promise.here)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            promise.result()
    assert begin(partial(divmod, 7, 2)).result() == (3, 1)


def test_what_cannot_be_sent_is_made_here(crew: workers._Crew) -> None:
    secret = object()
    assert until(lambda: begin(lambda: secret), lambda promise: promise.here).result() is secret
    stream = (number for number in range(3))
    assert list(by_workers([partial(next, stream), partial(next, stream)])) == [0, 1]


def test_a_worker_that_prints_still_answers(crew: workers._Crew, capfd: pytest.CaptureFixture[str]) -> None:
    told = until(lambda: begin(partial(os.write, 1, b"hello")), lambda promise: promise.state == "done")
    assert told.value == 5
    assert capfd.readouterr().out == ""


def test_a_worker_that_dies_loses_nothing(crew: workers._Crew) -> None:
    promise = until(lambda: begin(partial(_slow, 1)), lambda promise: promise.state == "begun")
    crew.workers[0].process.kill()
    assert promise.result() == (1, os.getpid())
    assert list(by_workers([partial(pow, 2, 3)] * 3)) == [8, 8, 8]
    ready(2)  # another
    until(lambda: begin(os.getpid), lambda promise: promise.state == "done")


def test_what_is_forgotten_is_not_made(crew: workers._Crew) -> None:
    busy = until(lambda: begin(partial(_slow, 0)), lambda promise: promise.state == "begun")
    unwanted = [begin(partial(_slow, 1)) for _ in range(3)]
    forget(unwanted)
    busy.result()
    time.sleep(0.3)
    assert all(promise.state == "waiting" for promise in unwanted)


def test_what_is_begun_behind_waits_for_all_else(crew: workers._Crew) -> None:
    busy = until(lambda: begin(partial(_slow, 0)), lambda promise: promise.state == "begun")
    order: list[int] = []
    spare = Promise(partial(_slow, 1))
    spare.begin_behind()
    wanted = begin(partial(_slow, 2))
    for promise in (busy, wanted):
        until(lambda p=promise: p, lambda p: p.state == "done")
        order.append(promise.value[0])
    assert order == [0, 2]
    assert until(lambda: spare, lambda promise: promise.state == "done").value[1] == crew.workers[0].process.pid


def test_what_is_begun_behind_before_there_are_workers_is_made_by_them() -> None:
    spare, never = Promise(os.getpid), Promise(os.getpid)
    for promise in (spare, never):
        promise.begin_behind()
    forget([never])
    assert (spare.state, never.state) == ("waiting", "waiting")
    ready(2)
    assert until(lambda: spare, lambda promise: promise.state == "done").value != os.getpid()
    assert never.state == "waiting"
    for worker in workers._crew.workers:
        worker._end()


def test_what_is_begun_behind_is_made_here_where_there_are_no_workers() -> None:
    spare = Promise(os.getpid)
    spare.begin_behind()
    assert spare.result() == os.getpid()
    assert not workers._crew.spare


SCRIPT = """
import os, sys, time
from theodolite.structure import workers
print("once", flush=True)  # a script without a guard is not run again
workers.ready(2)
promise = workers.begin(os.getpid)
while promise.state != "done":
    time.sleep(0.01)
print(promise.value, flush=True)
promise = workers.begin(__import__("functools").partial(time.sleep, 50))
while promise.state != "begun":
    time.sleep(0.01)
print("begun", flush=True)
if "stay" in sys.argv:
    time.sleep(50)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks in /proc")
@pytest.mark.parametrize("ending", ["return", "kill"])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, ending: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    stay = ["stay"] if ending == "kill" else []
    with subprocess.Popen([sys.executable, str(script), *stay], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "once\n"
        worker = int(process.stdout.readline())
        assert process.stdout.readline() == "begun\n"
        if ending == "kill":
            process.send_signal(signal.SIGKILL)
        assert process.stdout.read() == ""
    end = time.monotonic() + PATIENCE
    while _runs(worker):
        assert time.monotonic() < end
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"  # an orphan that nobody buries
