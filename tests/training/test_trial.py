"""The choice between the loop and chunks, and the step that finds out whether a net can be batched at all."""

from __future__ import annotations

import json
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.device import cpu_threads
from theodolite.errors import NotEnoughMemory
from theodolite.nets import nets
from theodolite.tasks.contract import make_task
from theodolite.training import trial
from theodolite.training.members import Members
from theodolite.training.optimiser import Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching
from theodolite.training.trial import Trial, agreement, try_sizes

from . import user_nets
from .plain import CPU

PARITY = make_task("parity", {"bits": 6, "relevant": 2})
RECALL = make_task("recall", {"keys": 6, "values": 4, "longest": 4})
SIZES = st.lists(st.floats(1, 1e6), max_size=10).map(
    lambda rates: dict(zip((2, 4, 8, 16, 32, 64), rates, strict=False))
)


@given(st.floats(1, 1e6), SIZES, st.integers(1, 200), st.booleans(), st.booleans())
def test_a_choice_can_always_be_run(loop, chunks, members, agrees, graphs):
    chosen = Trial(loop, chunks, agrees).choose(members, graphs)
    assert 1 <= chosen.chunk <= members
    if not agrees or not chunks:
        assert not chosen.batched
    if not chosen.batched:
        assert chosen == Batching(1, batched=False)
        return
    assert chosen.graphs is graphs
    calls = -(-members // chosen.chunk)
    sizes = [min(chosen.chunk, members - i * chosen.chunk) for i in range(calls)]
    assert sum(sizes) == members
    assert max(sizes) - min(sizes) <= calls, "chunks are even, but for what does not divide"
    # Nothing that was tried and could be used is much faster.
    usable = [rate for size, rate in chunks.items() if size <= members]
    assert max(chunks.values()) >= 1.05 * loop
    tried = min((size for size in chunks if size >= chosen.chunk), default=max(chunks))
    assert all(chunks[tried] * 1.05**2 >= rate for rate in usable) or tried < max(chunks)


@given(SIZES, st.integers(1, 200))
def test_the_loop_is_chosen_where_it_is_faster(chunks, members):
    assert not Trial(2 * max(chunks.values(), default=1.0), chunks, True).choose(members, False).batched


@pytest.mark.parametrize(
    ("chunks", "members", "chunk"),
    [
        ({2: 10.0, 4: 20.0, 8: 30.0, 16: 60.0}, 16, 16),
        ({2: 10.0, 4: 20.0, 8: 30.0, 16: 30.5}, 16, 8),  # hardly faster: the smaller one
        ({2: 10.0, 4: 20.0, 8: 40.0, 16: 20.0}, 16, 8),
        ({2: 10.0, 4: 20.0, 8: 40.0}, 20, 7),  # three calls of 7, 7 and 6, not 8, 8 and 4
        ({2: 10.0, 4: 20.0, 8: 40.0}, 9, 5),
        ({2: 10.0, 4: 20.0, 8: 40.0}, 3, 3),
    ],
)
def test_the_chunk_that_is_chosen(chunks, members, chunk):
    assert Trial(5.0, chunks, True).choose(members, False) == Batching(chunk, batched=True)


def test_one_member_alone_is_not_an_ensemble_unless_its_steps_are_captured():
    trial = Trial(5.0, {2: 10.0, 4: 20.0}, True)
    assert trial.choose(1, False) == Batching(1, batched=False)
    assert trial.choose(1, True) == Batching(1, batched=True, graphs=True)


def test_a_chunk_larger_than_the_group_does_not_speak_for_it():
    """16 at once are fast, but there are 4: what 4 at once gain decides."""
    assert not Trial(50.0, {2: 10.0, 4: 20.0, 8: 30.0, 16: 600.0}, True).choose(4, False).batched


@given(st.floats(1, 1e6), SIZES, st.booleans(), st.none() | st.text())
def test_a_trial_survives_json(loop, chunks, agrees, reason):
    one = Trial(loop, chunks, agrees, reason)
    assert Trial.from_json(json.loads(json.dumps(one.to_json()))) == one


@each("net", [n for n in nets if n not in ("conv-circuit", "sum-of-products", "polynomial-mixer")])
def test_built_in_nets_can_be_batched(net):
    assert agreement(pair(net, PARITY if nets[net].kind == "vector" else RECALL), CPU) == (True, None)


@pytest.mark.parametrize("net", [user_nets.Frozen, user_nets.Tied, user_nets.Odd, user_nets.Dropping])
def test_so_can_ordinary_nets_of_users(net):
    assert agreement(pair(net, PARITY), CPU) == (True, None)


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (user_nets.Peeking, r"it cannot be batched \(RuntimeError: .*item"),
        (user_nets.Wordless, r"it cannot be batched \(AssertionError\)"),
        (user_nets.WrongWhenBatched, r"batched and single steps differ in 'enter\.(weight|bias)'"),
        (user_nets.QuietlyWrongWhenBatched, r"batched and single steps differ in 'enter\.(weight|bias)'"),
        (user_nets.Counting, r"batched and single steps differ in|it cannot be batched"),
    ],
)
def test_what_batching_would_change_is_found_out(net, words):
    agrees, reason = agreement(pair(net, PARITY), CPU)
    assert not agrees
    assert reason is not None
    assert re.search(words, reason)


def test_a_net_that_cannot_be_batched_is_tried_in_the_loop_alone():
    tried = try_sizes(pair(user_nets.Peeking, PARITY), Rule(), 4, 8, CPU, seconds=0.01)
    assert tried.loop > 0
    assert not tried.chunks
    assert not tried.agrees
    assert "item" in (tried.reason or "")


@pytest.mark.parametrize(("members", "largest"), [(1, 2), (2, 2), (3, 4), (5, 8)])
def test_sizes_are_tried_up_to_the_group(members, largest):
    tried = try_sizes(pair("mlp", PARITY, {"width": 4}), Rule(), 4, members, CPU, seconds=0.01)
    assert tried.agrees
    assert tried.reason is None
    assert max(tried.chunks) == largest
    assert min(tried.chunks) == 2
    assert all(rate > 0 for rate in tried.chunks.values())


def test_sizes_that_do_not_fit_into_memory_are_not_chosen(monkeypatch):
    real = Members.outputs

    def outputs(self, weights, start, stop, inputs, present):
        if stop - start > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, weights, start, stop, inputs, present)

    monkeypatch.setattr(Members, "outputs", outputs)
    tried = try_sizes(pair("mlp", PARITY, {"width": 4}), Rule(), 4, 16, CPU, seconds=0.01)
    assert set(tried.chunks) == {2, 4}


def test_a_net_of_which_one_does_not_fit_says_so(monkeypatch):
    def outputs(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Members, "outputs", outputs)
    with pytest.raises(NotEnoughMemory, match="one member of 'mlp'"):
        agreement(pair("mlp", PARITY, {"width": 4}), CPU)


def test_larger_sizes_are_left_out_once_they_stop_to_pay(monkeypatch):
    rates = {2: 20.0, 4: 40.0, 8: 80.0, 16: 30.0, 32: 900.0}
    asked = []

    def rate(pairing, rule, batch, batching, device, seconds):
        size = batching.chunk
        asked.append(size)
        return rates[size] if batching.batched else 10.0

    monkeypatch.setattr(trial, "member_steps", rate)
    tried = try_sizes(pair("mlp", PARITY, {"width": 4}), Rule(), 4, 64, CPU)
    assert asked == [1, 2, 4, 8, 16]
    assert tried.choose(64, False).chunk == 8


@pytest.mark.parametrize(
    ("loop", "chunks", "more", "chosen"),
    [
        (10.0, 10.0, 0.02, Batching(8, batched=True, threads=1)),  # threads that starve each other
        (10.0, 10.0, 1.04, Batching(8, batched=True, threads=1)),  # hardly faster
        (10.0, 10.0, 1.8, Batching(8, batched=True, threads=3)),
        (90.0, 10.0, 1.8, Batching(1, batched=False, threads=3)),
        (90.0, 10.0, 0.5, Batching(1, batched=False, threads=1)),
    ],
)
def test_more_threads_than_one_must_be_faster(monkeypatch, loop, chunks, more, chosen):
    """`more`: how many times as fast three threads are as one."""

    def rate(pairing, rule, batch, batching, device, seconds):
        size = batching.chunk
        assert batching.threads == torch.get_num_threads()
        return (chunks * size if batching.batched else loop) * (more if batching.threads == 3 else 1.0)

    monkeypatch.setattr(trial, "member_steps", rate)
    with cpu_threads(3):
        tried = try_sizes(pair("mlp", PARITY, {"width": 4}), Rule(), 4, 8, CPU)
        assert torch.get_num_threads() == 3
        assert tried.speaks_here()
    assert tried.choose(8, False) == chosen
    assert not tried.speaks_here(), "a process that may use other numbers tries for itself"
    assert Trial.from_json(json.loads(json.dumps(tried.to_json()))) == tried


def test_large_chunks_on_more_threads_beat_the_loop_on_one(monkeypatch):
    def rate(pairing, rule, batch, batching, device, seconds):
        size = batching.chunk
        return 10.0 if not batching.batched else 8.0 if batching.threads == 1 else 2.0 * size

    monkeypatch.setattr(trial, "member_steps", rate)
    with cpu_threads(2):
        chosen = try_sizes(pair("mlp", PARITY, {"width": 4}), Rule(), 4, 64, CPU).choose(64, False)
    assert chosen == Batching(64, batched=True, threads=2)
    assert str(chosen) == "ensemble of 64, 2 threads"


def test_a_trial_on_one_thread_takes_no_more():
    with cpu_threads(1):
        tried = try_sizes(pair("mlp", PARITY, {"width": 4}), Rule(), 4, 2, CPU, seconds=0.01)
    assert tried.threads == 1


def test_trying_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    try_sizes(pair("mlp", PARITY, {"width": 4}), Rule(), 4, 2, CPU, seconds=0.01)
    assert torch.equal(torch.get_rng_state(), before)
