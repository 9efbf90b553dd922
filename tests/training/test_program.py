"""Stacked members against networks trained one by one in plain PyTorch."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from contextlib import suppress

import pytest
import torch

from theodolite.errors import NotApplicable
from theodolite.nets import nets
from theodolite.tasks.contract import make_task
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching, Program, pad_to_step
from theodolite.training.trial import without_draws

from . import user_nets
from .plain import CPU, LOOP, assert_same_moves, batches, lively, program, train_single, weights

TASKS = {
    "one length": make_task("parity-check", {"shortest": 7, "longest": 7}),
    "many answers": make_task("reverse", {"symbols": 40, "longest": 4}),
    "masks": make_task("recall", {"keys": 6, "values": 4, "longest": 4}),
    "hinge": make_task("parity", {"bits": 6, "relevant": 2}),
    "square": make_task("linear-periodic", {}),
}
SHAPE = {"transformer": {"width": 8, "heads": 2}, "lstm": {"width": 6}, "rnn": {"width": 6}, "mlp": {"width": 12}}
BATCHINGS = [LOOP, Batching(1, batched=True), Batching(2, batched=True), Batching(3, batched=True)]
RATES = [Rates(0.05, 0.0), Rates(0.1, 0.0), Rates(0.1, 0.01)]
SGD = Rule("sgd", momentum=0.9)
# A denominator that is not tiny: else a gradient of rounding errors alone makes a whole step.
ADAMW = Rule("adamw", epsilon=1e-3)

WITHOUT_TASK = {"conv-circuit"}  # answers once, and for a power of two of tokens: no task here has that
# Products of many Gaussian entries: a loss so uneven that nothing but its largest term moves.
UNEVEN = {("degree-attention", "square"), ("self-attention", "square")}


def fitting(net: str, among: Iterable[str] = TASKS) -> list[str]:
    """The tasks that a net fits."""
    found = []
    for task in among:
        with suppress(NotApplicable):
            pair(net, TASKS[task], SHAPE.get(net))
            found += [task] if (net, task) not in UNEVEN else []
    return found


@pytest.mark.parametrize("net", sorted(set(nets) - set(WITHOUT_TASK)))
def test_members_are_what_they_would_be_alone(net):
    """On the first task that fits: what a net computes and what a task makes of it meet in the outputs alone."""
    task = next(task for task in ("masks", "hinge", "square") if fitting(net, [task]))
    assert_members_are_what_they_would_be_alone(net, task)


@pytest.mark.parametrize("net", ["lstm", "mlp", "transformer"])
def test_members_are_what_they_would_be_alone_on_every_kind_of_task(net):
    found = fitting(net)
    assert {"mlp": {"hinge", "square"}}.get(net, set(TASKS)) == set(found)
    for task in found:
        assert_members_are_what_they_would_be_alone(net, task)


def test_nets_that_are_not_trained_here_fit_no_task():
    for net in WITHOUT_TASK:
        assert not fitting(net)


def assert_members_are_what_they_would_be_alone(net: str, task: str) -> None:
    pairing = without_draws(pair(net, TASKS[task], SHAPE.get(net)))
    pairing = lively(pairing) if nets[net].polynomial else pairing
    drawn = batches(pairing, 3)
    singles = [train_single(pairing, k, RATES[k], SGD, drawn) for k in range(3)]
    for batching in (LOOP, Batching(2, batched=True), Batching(3, batched=True)):
        found = program(pairing, RATES, SGD, batching)
        found.train(drawn[:3], 1)
        found.train(drawn[3:], 4)
        assert_same_moves(found, singles, pairing)


@pytest.mark.parametrize(
    ("net", "task"), [("mlp", "hinge"), ("mlp", "square"), ("lstm", "masks"), ("rnn", "one length")]
)
def test_step_numbers_go_on_over_blocks_with_adamw(net, task):
    """AdamW's first steps are corrected by their number: a wrong one moves the weights visibly."""
    pairing = pair(net, TASKS[task], SHAPE[net])
    drawn = batches(pairing, 3, count=7)
    rates = [Rates(1e-2, 0.1), Rates(3e-3, 0.0), Rates(1e-2, 0.1)]
    singles = [train_single(pairing, k, rates[k], ADAMW, drawn) for k in range(3)]
    for batching in BATCHINGS:
        found = program(pairing, rates, ADAMW, batching)
        for start, stop in ((0, 3), (3, 4), (4, 7)):
            found.train(drawn[start:stop], start + 1)
        assert_same_moves(found, singles, pairing, close=1e-3)


@pytest.mark.parametrize("net", [user_nets.Frozen, user_nets.Tied, user_nets.Odd, user_nets.Normed, user_nets.Counting])
def test_nets_of_users_are_what_they_would_be_alone(net):
    pairing = pair(net, TASKS["hinge"])
    drawn = batches(pairing, 3)
    singles = [train_single(pairing, k, RATES[k], SGD, drawn) for k in range(3)]
    # Batch norm and a replaced buffer are found out by the trial, and run in the loop.
    stateful = net in (user_nets.Normed, user_nets.Counting)
    for batching in [LOOP] if stateful else BATCHINGS:
        found = program(pairing, RATES, SGD, batching)
        found.train(drawn, 1)
        assert_same_moves(found, singles, pairing)


def test_buffers_that_forward_writes_into_belong_to_each_member():
    pairing = pair(user_nets.Normed, TASKS["hinge"])
    found = program(pairing, RATES, SGD, LOOP)
    found.train(batches(pairing, 3), 1)
    assert found.members.buffers["norm.num_batches_tracked"].tolist() == [4, 4, 4]
    means = found.members.buffers["norm.running_mean"]
    assert not torch.allclose(means[0], means[1])
    assert not torch.allclose(means[1], means[2])


def test_evaluation_leaves_buffers_alone():
    pairing = pair(user_nets.Normed, TASKS["hinge"])
    found = program(pairing, RATES, SGD, LOOP)
    found.train(batches(pairing, 3), 1)
    before = weights(found)
    assert len(list(found.outputs(batches(pairing, 3)[0].inputs))) == 3
    assert all(torch.equal(before[n], t) for n, t in weights(found).items())


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_dropout_drops_in_training_and_not_in_evaluation(batching):
    pairing = pair(user_nets.Dropping, TASKS["hinge"])
    found = program(pairing, RATES, SGD, batching)
    (batch,) = batches(pairing, 3, count=1)
    first, second = (torch.cat([o for _, _, o in found.outputs(batch.inputs)]) for _ in range(2))
    assert torch.equal(first, second)
    moved = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        again = program(pairing, RATES, SGD, batching)
        again.train([batch], 1)
        moved.append(again.members.parameters["layers.3.weight"])
    assert torch.equal(moved[0], moved[1])
    assert not torch.equal(moved[0], moved[2])


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_outputs_are_those_of_the_single_nets(batching):
    pairing = pair("lstm", TASKS["masks"], SHAPE["lstm"])
    found = program(pairing, RATES, SGD, batching)
    inputs = batches(pairing, 3)[1].inputs
    seen = torch.zeros(3, *inputs.shape[1:], 4)
    for start, stop, outputs in found.outputs(inputs):
        seen[start:stop] = outputs
    for k in range(3):
        read = torch.nn.functional.one_hot(inputs[k], 10).float()
        torch.testing.assert_close(seen[k], pairing.build(k)(read).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("most", [1, 2, 5, None])
def test_at_most_so_many_members_go_through_one_call(most):
    pairing = pair("mlp", TASKS["hinge"], SHAPE["mlp"])
    found = program(pairing, RATES * 2, SGD, Batching(4, batched=True))
    spans = [(a, b) for a, b, _ in found.outputs(batches(pairing, 6)[0].inputs, most=most)]
    assert [i for a, b in spans for i in range(a, b)] == list(range(6))
    assert max(b - a for a, b in spans) == min(4, most or 4)


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
@pytest.mark.parametrize("rule", [SGD, Rule("adamw")], ids=["sgd", "adamw"])
@pytest.mark.parametrize("net", ["mlp", "lstm", "transformer"])
def test_a_member_without_numbers_leaves_the_others_bit_identical(net, rule, batching):
    pairing = pair(net, TASKS["hinge" if net == "mlp" else "masks"], SHAPE[net])
    drawn = batches(pairing, 3)
    healthy, ill = (program(pairing, RATES, rule, batching) for _ in range(2))
    name = ill.members.trained[0]
    ill.members.parameters[name][1].flatten()[0] = torch.nan
    ill.members.parameters[name][1, 0] = torch.nan
    for one in (healthy, ill):
        one.train(drawn, 1)
    assert torch.isnan(ill.members.parameters[ill.members.trained[-1]][1]).any()
    for name, tensor in healthy.members.parameters.items():
        assert torch.equal(ill.members.parameters[name][[0, 2]], tensor[[0, 2]])


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_members_that_are_kept_go_on_as_if_they_had_been_alone(batching):
    pairing = pair("rnn", TASKS["one length"], SHAPE["rnn"])
    drawn = batches(pairing, 3, count=6)
    found = program(pairing, RATES, ADAMW, batching)
    found.train(drawn[:3], 1)
    found.keep(torch.tensor([0, 2]))
    assert len(found.members) == 2
    chosen = [type(b)(*(t[[0, 2]] for t in (b.inputs, b.targets, b.mask))) for b in drawn]
    found.train(chosen[3:], 4)
    for place, k in enumerate((0, 2)):
        single = dict(train_single(pairing, k, RATES[k], ADAMW, drawn).named_parameters())
        for name, tensor in found.members.parameters.items():
            torch.testing.assert_close(tensor[place], single[name].detach(), rtol=1e-4, atol=1e-5)


def test_copies_of_members_are_theirs_alone():
    pairing = pair("mlp", TASKS["hinge"], SHAPE["mlp"])
    found = program(pairing, RATES, SGD, LOOP)
    copied = found.members.select(torch.tensor([2, 0]))
    before = {n: p.clone() for n, p in copied.parameters.items()}
    found.train(batches(pairing, 3), 1)
    assert len(copied) == 2
    assert len(found.members) == 3
    for name, tensor in before.items():
        assert torch.equal(copied.parameters[name], tensor)
        assert torch.equal(tensor[0], dict(pairing.build(2).named_parameters())[name].detach())


@pytest.mark.parametrize("net", [user_nets.Odd, user_nets.Frozen])
def test_members_that_are_kept_keep_their_buffers(net):
    """The order of features and a frozen layer are drawn anew for every member."""
    pairing = pair(net, TASKS["hinge"])
    found = program(pairing, RATES, SGD, LOOP)
    copied = found.members.select(torch.tensor([2, 1]))
    found.keep(torch.tensor([1, 2]))
    for members, seeds in ((copied, (2, 1)), (found.members, (1, 2))):
        for place, seed in enumerate(seeds):
            for name, tensor in pairing.build(seed).state_dict().items():
                assert torch.equal(members.state(place)[name], tensor)


@pytest.mark.parametrize("net", [user_nets.Tied, user_nets.Odd, user_nets.Normed, user_nets.Frozen])
@pytest.mark.parametrize("batched", [True, False], ids=["batched", "loop"])
def test_the_state_of_a_member_loads_into_its_module(net, batched):
    pairing = pair(net, TASKS["hinge"])
    found = program(pairing, RATES, SGD, Batching(3, batched))
    module = pairing.build(9)
    module.load_state_dict(found.members.state(1), strict=True)
    for name, tensor in pairing.build(1).state_dict().items():
        assert torch.equal(module.state_dict()[name], tensor)


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_what_a_program_holds_is_freed_with_it(batching):
    """Captured steps hold most of a GPU's memory: they cannot wait until cycles are collected."""
    pairing = pair("mlp", TASKS["hinge"], SHAPE["mlp"])
    found = program(pairing, RATES, SGD, batching)
    found.train(batches(pairing, 3), 1)
    held = [weakref.ref(found), weakref.ref(found._step), weakref.ref(found.members.parameters["layers.0.weight"])]
    gc.disable()
    try:
        del found
        assert [one() for one in held] == [None, None, None]
    finally:
        gc.enable()


def test_a_program_without_an_optimiser_evaluates():
    pairing = pair("mlp", TASKS["hinge"], SHAPE["mlp"])
    members = program(pairing, RATES, SGD, LOOP).members
    spans = list(Program(members, None, LOOP, CPU).outputs(batches(pairing, 3)[0].inputs))
    assert [s[:2] for s in spans] == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("net", [name for name, entry in nets.items() if entry.kind == "sequence"])
def test_padding_a_batch_for_fewer_graphs_changes_no_move(net):
    """What captured steps do on a GPU, without a GPU: fewer numbers of tokens, the same steps."""
    if not fitting(net, ["masks"]):
        pytest.skip("the task does not fit")
    pairing = without_draws(pair(net, TASKS["masks"], SHAPE.get(net)))
    if not pairing.pads:
        pytest.skip("never padded")
    drawn = batches(pairing, 3)
    padded = [pad_to_step(batch, 100) for batch in drawn]
    assert len({b.inputs.shape for b, _ in padded}) < len({b.inputs.shape for b in drawn})
    plain, other = (program(pairing, RATES, SGD, Batching(3, batched=True)) for _ in range(2))
    assert plain._step is not None
    assert other._step is not None
    plain._step.begin(1)
    other._step.begin(1)
    for batch, (wide, present) in zip(drawn, padded, strict=True):
        plain._step.take([(batch.inputs, batch.targets, batch.mask)], 0, 3)
        told = (present,) if pairing.takes_present else ()
        other._step.take([(wide.inputs, wide.targets, wide.mask, *told)], 0, 3)
    for name, found in weights(other).items():
        torch.testing.assert_close(found, weights(plain)[name], rtol=1e-4, atol=1e-5)


def test_the_padding_is_never_long():
    task = make_task("copy", {"symbols": 3})
    for tokens in (*range(1, 70), 80, 81, 127, 128, 129, 250, 1000):
        batch = task.sample(2, 3, tokens, torch.Generator().manual_seed(0))
        wide, present = pad_to_step(batch, 10_000)
        assert pad_to_step(batch, 10_000, 4)[0].inputs.shape[2] < batch.inputs.shape[2] * 1.5 + 8
        real, shown = batch.inputs.shape[2], wide.inputs.shape[2]
        assert real <= shown < real + max(8, real / 4)
        assert shown % 8 == 0
        assert torch.equal(wide.inputs[..., :real], batch.inputs), tokens
        assert torch.equal(wide.targets[..., :real], batch.targets), tokens
        assert torch.equal(wide.mask[..., :real], batch.mask), tokens
        assert not wide.mask[..., real:].any(), tokens
        assert torch.equal(present, (torch.arange(shown) < real).expand(present.shape)), tokens
        assert present.shape == wide.inputs.shape


def test_no_padding_goes_beyond_what_the_net_was_built_for():
    """A table of positions ends somewhere."""
    pairing = pair(user_nets.Positions, make_task("copy", {"symbols": 3, "longest": 9}))
    assert (pairing.most, pairing.pads) == (18, True)
    for length, tokens in ((9, 18), (7, 16), (1, 8)):
        batch = pairing.task.sample(1, 2, length, torch.Generator().manual_seed(0))
        assert pad_to_step(batch, pairing.most)[0].inputs.shape[2] == tokens
