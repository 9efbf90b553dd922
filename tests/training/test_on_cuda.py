"""The same promises on a GPU: captured steps, interruptions, running out of memory."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
import torch

from theodolite.errors import NotEnoughMemory
from theodolite.lab.checkpoint import read_checkpoint, write_checkpoint
from theodolite.nets import nets
from theodolite.tasks.contract import Batch, make_task
from theodolite.training.group import MemberSpec, Schedule
from theodolite.training.members import Members
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import Pairing, pair
from theodolite.training.perceptron_step import PerceptronSteps
from theodolite.training.program import Batching, Program
from theodolite.training.session import Session
from theodolite.training.trial import agreement, try_sizes

from . import user_nets
from .plain import batches, program, weights

pytestmark = pytest.mark.gpu

CUDA = torch.device("cuda")
RECALL = make_task("recall", {"keys": 6, "values": 4, "longest": 4})
PARITY = make_task("parity", {"bits": 4, "relevant": 1})
RATES = [Rates(1e-3, 0.0)] * 3 + [Rates(3e-3, 0.1)] * 5
RULES = [Rule("adamw", epsilon=1e-3), Rule("sgd")]
NETS = ["lstm", "rnn", "gru", "stack-rnn", "tape-rnn", "delta-net", "state-space", "convolution", "transformer", "mlp"]
# Vectors of a head are brought to length 1, which enlarges the rounding of narrow ones, layer by layer.
SHAPES = {"delta-net": {"width": 24, "heads": 2, "depth": 1}}


def fitting(net: str) -> Pairing:
    return pair(net, PARITY if nets[net].kind == "vector" else RECALL, SHAPES.get(net, {"width": 8}))


def train_in_pairs(one: Program, drawn: Sequence[Batch], step: int) -> None:
    """Batches that are alike are captured together, by their number: pairs of them come again."""
    for start in range(0, len(drawn), 2):
        one.train(drawn[start : start + 2], step + start)


@pytest.mark.parametrize("rule", RULES, ids=["adamw", "sgd"])
@pytest.mark.parametrize("net", NETS)
def test_captured_steps_give_the_weights_of_plain_ones(net, rule):
    """Lengths come again and again, so that most steps are replayed; members leave in between."""
    pairing = fitting(net)
    drawn = batches(pairing, 8, count=24, device=CUDA)
    found = []
    for batching in (Batching(3, batched=True, graphs=True), Batching(3, batched=True), Batching(1, batched=False)):
        one = program(pairing, RATES, rule, batching, CUDA)
        train_in_pairs(one, drawn[:14], 1)
        one.keep(torch.tensor([0, 2, 5, 6, 7], device=CUDA))
        rest = [type(b)(*(t[[0, 2, 5, 6, 7]] for t in (b.inputs, b.targets, b.mask))) for b in drawn[14:]]
        train_in_pairs(one, rest, 15)
        found.append(weights(one))
        if batching.graphs:
            assert one._step is not None
            assert one._step.captured is not None
            assert one._step.captured._graphs
            assert not one._step.captured._refused
    captured, plain, loop = found
    for name in captured:
        # Captured batches are padded, so sums differ by rounding, which Adam's division enlarges: a step is 0.001.
        torch.testing.assert_close(captured[name], plain[name], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(captured[name], loop[name], rtol=1e-3, atol=1e-4)


def test_a_capture_that_fails_leaves_draws_and_streams_as_they_were(caplog):
    pairing = pair(user_nets.Waiting, PARITY)
    one = program(pairing, RATES, RULES[0], Batching(8, batched=True, graphs=True), CUDA)
    stream = torch.cuda.current_stream(CUDA)
    train_in_pairs(one, batches(pairing, 8, count=6, device=CUDA), 1)
    assert "cannot be captured" in caplog.text
    assert torch.rand(3, device=CUDA).isfinite().all()
    assert torch.cuda.current_stream(CUDA) == stream


@pytest.mark.parametrize("net", ["mlp", "lstm", "tape-rnn", "transformer"])
def test_compiled_steps_give_the_weights_of_plain_ones(net, tmp_path, monkeypatch):
    """One length alone, so that blocks of steps are captured together."""
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path))
    monkeypatch.setattr(PerceptronSteps, "of", lambda *_: None)  # a kernel would take the whole step of the MLP
    pairing = fitting(net)
    length = None if pairing.task.spec.lengths is None else 4
    generator = torch.Generator(CUDA).manual_seed(7)
    drawn = [pairing.task.sample(8, 6, length, generator) for _ in range(24)]
    found = []
    for compiled in (True, False):
        one = program(pairing, RATES, RULES[0], Batching(4, batched=True, graphs=compiled, compiled=compiled), CUDA)
        for start in range(0, 24, 8):
            one.train(drawn[start : start + 8], start + 1)
        found.append(weights(one))
        if compiled:
            assert one.compiled is not None
            assert one.compiled.refused is None
            assert one._step is not None
            assert one._step.captured is not None
            assert one._step.captured._graphs
            again = program(pairing, RATES, RULES[0], Batching(4, batched=True), CUDA)
            assert again.compiled_before(drawn[0])
    for name in found[0]:
        torch.testing.assert_close(found[0][name], found[1][name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("net", [net for net in NETS if nets[net].kind == "sequence"])
def test_outside_training_a_net_has_a_second_derivative(net):
    module = fitting(net).build(0).to(CUDA)
    x = torch.rand(2, 5, RECALL.spec.features, device=CUDA, requires_grad=True)
    (slope,) = torch.autograd.grad(module(x).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.square().sum(), x)
    assert second.isfinite().all()
    assert second.abs().max() > 0


@pytest.mark.parametrize("net", NETS)
def test_weights_are_those_of_the_cpu(net):
    pairing = fitting(net)
    drawn = batches(pairing, 8, count=8)
    there = [type(b)(*(t.to(CUDA) for t in (b.inputs, b.targets, b.mask))) for b in drawn]
    here = program(pairing, RATES, RULES[0], Batching(8, batched=True))
    gpu = program(pairing, RATES, RULES[0], Batching(8, batched=True, graphs=True), CUDA)
    here.train(drawn, 1)
    gpu.train(there, 1)
    for name, tensor in weights(here).items():
        torch.testing.assert_close(weights(gpu)[name].cpu(), tensor, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("batching", [Batching(3, batched=True, graphs=True), Batching(1, batched=False)], ids=str)
@pytest.mark.parametrize("net", ["lstm", "mlp", user_nets.Dropping])
def test_an_interruption_changes_nothing(net, batching, tmp_path):
    pairing = fitting(net) if isinstance(net, str) else pair(net, PARITY)
    members = [MemberSpec(f"member {i}", i, Rates(lr, 0.0)) for i, lr in enumerate((1e-6, 0.03, 0.1, 0.01, 1e-3))]
    schedule = Schedule(70, 8, 10, 4, unseen=(5, 6) if pairing.task.spec.lengths else ())

    def fresh() -> Session:
        return Session(pairing, members, schedule, Rule(), batching, CUDA)

    whole, session = [], fresh()
    before = torch.cuda.get_rng_state(CUDA)
    while not session.done:
        whole += session.advance()[0]
    assert torch.equal(torch.cuda.get_rng_state(CUDA), before)
    finished, session = [], fresh()
    while not session.done:
        finished += session.advance()[0]
        write_checkpoint(tmp_path / "checkpoint", *session.state())
        if not session.done:
            session = fresh()
            session.restore(*read_checkpoint(tmp_path / "checkpoint"))
    assert [f.key for f in finished] == [f.key for f in whole]
    assert len(whole) == 5
    assert json.dumps([f.result for f in finished]) == json.dumps([f.result for f in whole])


def test_other_devices_keep_their_generators():
    """A group on the CPU leaves the GPU's random numbers alone."""
    members = [MemberSpec("member", 0, Rates(1e-3, 0.0))]
    batching, cpu = Batching(1, batched=False), torch.device("cpu")
    session = Session(fitting("mlp"), members, Schedule(5, 4, 5, 2), Rule(), batching, cpu)
    before = torch.cuda.get_rng_state(CUDA)
    session.advance()
    assert torch.equal(torch.cuda.get_rng_state(CUDA), before)


@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "plain"])
def test_running_out_of_memory_halves_the_chunk(monkeypatch, graphs):
    """Really out of it: a wide net, and of the GPU's memory only a slice is allowed."""
    pairing = pair("mlp", PARITY, {"width": 256, "depth": 3})
    drawn = batches(pairing, 64, count=6, rows=2048, device=CUDA)
    rates = [Rates(1e-3, 0.0)] * 64
    expected = program(pairing, rates, RULES[1], Batching(4, batched=True), CUDA)
    expected.train(drawn, 1)
    truth = weights(expected)
    del expected
    found = program(pairing, rates, RULES[1], Batching(64, batched=True, graphs=graphs), CUDA)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(CUDA).total_memory
    # Three layers of 64 · 2048 · 256 floats are 0.4 GB forward, and as much again backward.
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved(CUDA) + 300e6) / total)
    try:
        found.train(drawn, 1)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert found.batching.chunk < 64
    for name, tensor in weights(found).items():
        torch.testing.assert_close(tensor, truth[name], rtol=1e-3, atol=1e-4)


def test_one_member_that_does_not_fit_is_told_in_a_sentence():
    pairing = pair("mlp", PARITY, {"width": 256, "depth": 3})
    drawn = batches(pairing, 2, count=1, rows=1 << 18, device=CUDA)
    found = program(pairing, RATES[:2], RULES[1], Batching(2, batched=True), CUDA)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(CUDA).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved(CUDA) + 100e6) / total)
    try:
        with pytest.raises(NotEnoughMemory, match="one member of 'mlp' alone does not fit into the memory of cuda"):
            found.train(drawn, 1)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize("net", NETS)
def test_built_in_nets_can_be_batched(net):
    assert agreement(fitting(net), CUDA) == (True, None)


def test_sizes_are_tried_with_graphs():
    tried = try_sizes(fitting("lstm"), Rule(), 8, 64, CUDA, seconds=0.05)
    assert tried.agrees
    assert max(tried.chunks) == 64
    assert tried.choose(64, graphs=True).batched


def test_members_are_stacked_on_the_device():
    pairing = fitting("mlp")
    members = Members(pairing, [pairing.build(seed) for seed in range(3)], CUDA, batched=True)
    for member in range(3):
        for name, tensor in pairing.build(member).state_dict().items():
            assert torch.equal(members.state(member)[name].cpu(), tensor)
