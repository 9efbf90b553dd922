"""Steps compiled by other processes are what the group looks for."""

from __future__ import annotations

import shutil
import time

import pytest
import torch

from theodolite.bench.plan import plan_training
from theodolite.lab import compile_ahead
from theodolite.lab.compile_ahead import CompileAhead
from theodolite.lab.work import paired
from theodolite.tasks import make_task
from theodolite.training.group import MemberSpec, Schedule
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.program import Batching
from theodolite.training.session import Session

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler on a CPU")

SCHEDULE = Schedule(400, 4, every=20, rows=4, to_the_end=True)


@pytest.fixture
def plan(tmp_path, monkeypatch, inductor):
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(inductor))
    monkeypatch.setattr(compile_ahead, "_SPARE", 0)
    monkeypatch.setattr("theodolite.training.earning._SECONDS", {"cpu": 0.0})
    task = make_task("majority", {"bits": 3})
    return plan_training(
        "mlp", task, schedule=SCHEDULE, rule=Rule(), rates=[Rates(1e-2)], seeds=range(3), shape={"width": 4}
    )


def test_a_group_trains_on_and_takes_them_up_when_they_are_there(plan, tmp_path):
    config = plan.cells[0].config
    pairing = paired(config, plan.locations)
    members = [MemberSpec(cell.key, cell.seed, Rates(1e-2)) for cell in plan.cells]
    session = Session(pairing, members, SCHEDULE, Rule(), Batching(3, batched=True), torch.device("cpu"), "auto")
    ahead = CompileAhead(config, plan.locations, "cpu", 3, False, session.compiling.lengths)
    assert ahead.processes == 1
    session.compiling.compile_by(ahead)
    notes, programs = [], 0
    while not session.done:
        session.advance()
        notes.append(session.note)
        programs = programs or session.compiling.on_disk(session.program, session.like_a_step)
        until = time.monotonic() + 120
        while session.note == "steps are being compiled beside" and not ahead.finished and time.monotonic() < until:
            time.sleep(0.2)
    session.compiling.leave()
    assert "steps are being compiled beside" in notes
    assert session.compiling.said is not None
    assert session.compiling.said.startswith(("compiled from step 60 on", "not compiled after step"))
    assert programs == 1, "the other process compiled something else"
    assert len(list((tmp_path / "steps").glob("*.bin"))) == 1


def test_it_is_stopped_with_the_group(plan):
    ahead = CompileAhead(plan.cells[0].config, plan.locations, "cpu", 3, False, [None])
    ahead.begin()
    assert not ahead.finished
    ahead.stop()
    assert ahead.finished


def test_a_net_that_only_this_process_knows_is_not_compiled_elsewhere(plan):
    config = plan.cells[0].config
    locations = dict.fromkeys(plan.locations, object)
    assert CompileAhead(config, locations, "cpu", 3, False, [None]).processes == 0
