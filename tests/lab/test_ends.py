"""A longer run in a folder goes on from where a shorter one ended, and gives what it would have given alone."""

from __future__ import annotations

from dataclasses import replace

from theodolite.bench.plan import plan_training
from theodolite.lab import ends, work
from theodolite.lab.running import Running
from theodolite.lab.work import Context
from theodolite.tasks.contract import make_task
from theodolite.training.group import Schedule
from theodolite.training.optimiser import Rates, Rule

SHORT = Schedule(40, batch=8, every=20, rows=4, unseen=(6,), to_the_end=True, grows=True)
RATES = [Rates(1e-2), Rates(3e38), Rates(1e-3)]  # one diverges at once


def trained(out, steps: int, rates=RATES, **how):
    task = make_task("parity-check", {"longest": 4})
    rule = Rule("sgd", clip=None)
    schedule = replace(SHORT, steps=steps)
    plan = plan_training("rnn", task, schedule=schedule, rule=rule, rates=rates, seeds=[0], shape={"width": 4})
    running = Running(**{"out": out, "chunk": 4, **how})
    with running.open() as store:
        context = Context(checkpoints=store.checkpoints.resolve(), locations=plan.locations)
        return running.run(plan.cells, store, context, {}).of(plan.cells)


def results(rows):
    return [(row.cell.key, row.result) for row in rows]


def test_a_longer_run_goes_on_from_the_end_of_a_shorter_one(tmp_path, monkeypatch):
    alone = trained(tmp_path / "alone", 120)
    short = trained(tmp_path / "grown", 40)
    begun = []
    monkeypatch.setattr(work, "read_end", lambda *what: begun.append(ends.read_end(*what)) or begun[-1])
    grown = trained(tmp_path / "grown", 120)
    assert begun[0] is not None
    assert '"step": 40' in begun[0][1]["session"]
    assert results(grown) == results(alone)
    assert {row["status"] for row in grown} >= {"diverged"}
    assert [row["curve"] for row in short] == [row["curve"][:2] for row in grown]
    (end,) = (tmp_path / "grown" / "checkpoints" / "ends").iterdir()
    assert end.name.endswith("-120.safetensors"), "the shorter one's is not needed any more"


def test_other_members_and_fewer_steps_begin_anew(tmp_path):
    trained(tmp_path / "one", 40)
    assert results(trained(tmp_path / "one", 20)) == results(trained(tmp_path / "two", 20))
    assert results(trained(tmp_path / "one", 60, RATES[:1])) == results(trained(tmp_path / "three", 60, RATES[:1]))


def test_a_broken_end_costs_time_only(tmp_path, caplog):
    alone = trained(tmp_path / "alone", 60)
    trained(tmp_path / "grown", 40)
    for end in (tmp_path / "grown" / "checkpoints" / "ends").iterdir():
        end.write_bytes(end.read_bytes()[:-7])
    assert results(trained(tmp_path / "grown", 60)) == results(alone)
    assert "begins again" in caplog.text


def test_how_members_are_batched_and_by_how_many_workers_does_not_matter(tmp_path):
    trained(tmp_path / "grown", 40)
    grown = trained(tmp_path / "grown", 60, chunk=64, workers=2)
    (end,) = (tmp_path / "grown" / "checkpoints" / "ends").iterdir()
    assert end.name.endswith("-60.safetensors"), "one group, which went on"
    assert results(grown) == results(trained(tmp_path / "alone", 60))
