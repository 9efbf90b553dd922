"""The promise that an interruption changes nothing, and neither do the clock and the numbers drawn elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from theodolite.device import cpu_threads
from theodolite.errors import BadInput
from theodolite.lab.checkpoint import read_checkpoint, write_checkpoint
from theodolite.training import session as module
from theodolite.training.group import Schedule
from theodolite.training.optimiser import Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching, Program

from . import user_nets
from .groups import BATCHINGS, CHECK, EASY, MLP, RNN, SQUARE, make, run, same, specs
from .plain import LOOP

# Captured steps are for CUDA alone, but that members leave such a group late is decided everywhere.
REGROUPED_LATE = Batching(9, batched=True, graphs=True)

# Members that are solved at once or later, that diverge, and that do neither.
VARIED = specs(1e-6, 0.3, 1e36, 0.01, 3e-3, 1e-6)
INTERRUPTED = {
    "solved, diverged and neither": (MLP, VARIED, Schedule(70, 8, 10, 4), Rule("sgd", clip=None)),
    "with adamw": (MLP, specs(1e-6, 0.1, 0.03, 0.01, 1e-6), Schedule(70, 8, 10, 4), Rule()),
    "to the end": (MLP, VARIED, Schedule(50, 8, 10, 4, to_the_end=True), Rule("sgd", clip=None)),
    "lengths": (RNN, specs(1e-2, 1e-3), Schedule(40, 4, 20, 3, unseen=(6, 9)), Rule()),
    "momentum 0": (RNN, specs(1e-2, 1e-3), Schedule(33, 4, 20, 3), Rule("sgd", momentum=0.0)),
    "nothing trained": (RNN, specs(1e-2), Schedule(0, 4, 20, 3), Rule()),
    "explained variance": (
        pair("mlp", SQUARE, {"width": 8}),
        specs(1e-2, 1e30),
        Schedule(20, 8, 10, 4),
        Rule("sgd", clip=None),
    ),
    "dropout": (pair(user_nets.Dropping, EASY), specs(1e-3, 1e-2), Schedule(36, 4, 18, 2), Rule()),
    "batch norm": (pair(user_nets.Normed, EASY), specs(1e-4, 1e-4), Schedule(36, 4, 18, 2), Rule()),
}


@pytest.mark.parametrize("batching", [*BATCHINGS, REGROUPED_LATE], ids=str)
@pytest.mark.parametrize("case", INTERRUPTED)
def test_an_interruption_at_any_block_changes_nothing(case, batching, tmp_path):
    """Every block ends one process: the next one builds the group anew and reads the checkpoint from the disk."""
    pairing, members, schedule, rule = INTERRUPTED[case]
    if case == "batch norm":
        batching = LOOP
    whole, looks = run(make(pairing, members, schedule, rule, batching))
    finished, seen, blocks = [], [], 0
    session = make(pairing, members, schedule, rule, batching)
    while not session.done:
        rows, looked = session.advance()
        finished += rows
        seen += looked
        blocks += 1
        write_checkpoint(tmp_path / "checkpoint", *session.state())
        if session.done:
            break
        session = make(pairing, members, schedule, rule, batching)
        session.restore(*read_checkpoint(tmp_path / "checkpoint"))
    same(finished, whole)
    assert [repr(look) for look in seen] == [repr(look) for look in looks]
    assert blocks >= schedule.steps / 16, "someone trains to the end"
    assert {f.key for f in whole} == {m.key for m in members}


def test_the_varied_group_is_varied():
    """So that the test above cannot pass without anything having happened."""
    pairing, members, schedule, rule = INTERRUPTED["solved, diverged and neither"]
    finished, _ = run(make(pairing, members, schedule, rule))
    assert {f.result["status"] for f in finished} == {"solved", "unsolved", "diverged"}
    assert len({f.result["steps"] for f in finished if f.result["status"] == "solved"}) > 1
    ended, _ = run(make(*INTERRUPTED["to the end"]))
    assert {f.result["status"] for f in ended} == {"solved", "unsolved", "diverged"}


@pytest.mark.parametrize("block", [1, 2, 3])
def test_the_seconds_of_a_member_go_on_too(block):
    first = make(schedule=Schedule(100, 8, 100, 4))
    for _ in range(block):
        first.advance()
    second = make(schedule=Schedule(100, 8, 100, 4))
    second.restore(*first.state())
    assert second.seconds == first.seconds
    assert all(s > 0 for s in second.seconds.values())


def test_a_chunk_that_was_halved_stays_so_after_an_interruption():
    first = make(batching=Batching(3, batched=True))
    first.program.batching = Batching(1, batched=True)
    second = make(batching=Batching(3, batched=True))
    second.restore(*first.state())
    assert second.program.batching == Batching(1, batched=True)


def test_threads_stay_so_after_an_interruption_unless_there_are_fewer():
    with cpu_threads(3):
        first = make(batching=Batching(3, batched=True, threads=2))
        second, third = make(batching=Batching(3, batched=True)), make(batching=Batching(3, batched=True))
        second.restore(*first.state())
    assert second.program.batching == Batching(3, batched=True, threads=2)
    with cpu_threads(1):
        third.restore(*first.state())
    assert third.threads == 1


def test_a_block_is_trained_on_its_threads(monkeypatch):
    seen = []
    train = Program.train
    monkeypatch.setattr(Program, "train", lambda *given: (seen.append(torch.get_num_threads()), train(*given)))
    with cpu_threads(3):
        make(batching=Batching(3, batched=True, threads=1)).advance()
        assert torch.get_num_threads() == 3
        make(batching=Batching(3, batched=True)).advance()
    assert seen == [1, 3]


@pytest.mark.parametrize("net", [RNN, pair("rnn", CHECK, {"width": 5})], ids=["another group", "another shape"])
def test_the_checkpoint_of_something_else_is_refused(net):
    held = make(RNN, specs(1e-2, 1e-3))
    held.advance()
    other = make(net, [replace(m, key=f"other {m.key}") if net is RNN else m for m in specs(1e-2, 1e-3)])
    words = "belongs to another group" if net is RNN else "does not hold 'parameter.*' in the shape"
    with pytest.raises(BadInput, match=words):
        other.restore(*held.state())


def test_a_file_that_is_no_checkpoint_of_a_session_is_refused():
    with pytest.raises(BadInput, match="not one of a training session"):
        make().restore({}, {})


def test_results_do_not_depend_on_the_clock(monkeypatch):
    case = INTERRUPTED["with adamw"]
    usual, _ = run(make(*case))
    ticks = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(ticks)))
    slow, _ = run(make(*case))
    same(slow, usual)
    assert all(s.seconds > 100 > u.seconds for s, u in zip(slow, usual, strict=True))


def test_nothing_global_is_touched():
    torch.manual_seed(5)
    before, dtype, threads = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads()
    finished, _ = run(make(*INTERRUPTED["dropout"]))
    assert torch.equal(torch.get_rng_state(), before)
    assert (torch.get_default_dtype(), torch.get_num_threads()) == (dtype, threads)
    torch.manual_seed(6)
    again, _ = run(make(*INTERRUPTED["dropout"]))
    same(again, finished)


def test_members_that_leave_late_are_not_looked_at_or_finished_twice():
    """One of five leaves first: too few to make the group anew."""
    _, members, *_ = case = INTERRUPTED["with adamw"]
    session = make(*case, REGROUPED_LATE)
    (first,), _ = session.advance()
    assert first.key in {m.key for m in session.specs}
    assert first.key not in {m.key for m in session.live}
    finished, looks = run(make(*case, REGROUPED_LATE))
    assert sorted(f.key for f in finished) == sorted(m.key for m in members)
    for one in finished:
        seen = [look.step for look in looks if look.key == one.key]
        assert seen == list(range(10, one.result["steps"] + 1, 10))
        assert [point[0] for point in one.result["curve"]] == seen


@pytest.mark.parametrize("case", ["to the end", "lengths"])
def test_a_longer_training_goes_on_from_the_end_of_a_shorter_one(case, tmp_path):
    """As if it had been one, members included that diverged before: draws do not depend on the number of steps."""
    pairing, members, schedule, rule = INTERRUPTED[case]
    longer = replace(schedule, steps=3 * schedule.every, to_the_end=True, grows=True)
    shorter = replace(longer, steps=schedule.every)
    whole, looks = run(make(pairing, members, longer, rule))
    first = make(pairing, members, shorter, rule)
    _, before = run(first)
    assert first.end is not None
    write_checkpoint(tmp_path / "end", *first.end)
    second = make(pairing, members, longer, rule)
    second.restore(*read_checkpoint(tmp_path / "end"))
    assert second.step == shorter.steps
    finished, after = run(second)
    early = {f.key: f.result for f in whole if f.key not in {g.key for g in finished}}
    assert second.early.items() >= early.items()
    same(finished, [f for f in whole if f.key not in early])
    shown = [repr(look) for look in (*before, *after)]
    assert set(shown) == {repr(look) for look in looks}


def test_only_what_goes_to_the_end_and_ends_with_a_look_may_grow():
    for wrong in ({"to_the_end": False}, {"steps": 30}):
        with pytest.raises(BadInput, match="may grow"):
            Schedule(**{"steps": 40, "every": 20, "to_the_end": True, "grows": True, **wrong})
    assert "grows" not in Schedule(40).to_json(), "the names of older cells stay"
    grown = Schedule(40, every=20, unseen=(3,), to_the_end=True, grows=True)
    assert Schedule.from_json(grown.to_json()) == grown
