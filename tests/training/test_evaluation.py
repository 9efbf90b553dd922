"""Many lengths in one call against one call per length, of every net by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.each import each
from theodolite.tasks.contract import make_task
from theodolite.training import evaluation
from theodolite.training.evaluation import evaluate
from theodolite.training.members import Members
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import Pairing, pair
from theodolite.training.program import Batching, Program

from . import user_nets
from .plain import CPU, LOOP, plain_loss, program

REVERSE = make_task("reverse", {"symbols": 3, "longest": 6})
RECALL = make_task("recall", {"keys": 12, "values": 4, "longest": 5})
PARITY = make_task("parity", {"bits": 6, "relevant": 2})
SQUARE = make_task("linear-periodic", {})
RATES = [Rates(1e-2, 0.0)] * 3
BATCHINGS = [LOOP, Batching(2, batched=True), Batching(3, batched=True)]
PADDING = [("lstm", {}), ("rnn", {}), ("convolution", {}), ("convolution", {"causal": False}), ("transformer", {})]
PADDING += [("transformer", {"causal": False}), ("transformer", {"causal": False, "positions": "sinusoidal"})]
OWN = [user_nets.Recurrent, user_nets.MeanOfPresent, user_nets.Ids]


def untrained(pairing: Pairing, batching: Batching) -> Program:
    return program(pairing, RATES, Rule(), batching)


def oracle(pairing: Pairing, lengths: list, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores (member, length) and mean losses: one call per length and member, positions counted one by one."""
    generator = torch.Generator().manual_seed(seed)
    spec = pairing.task.spec
    scores, loss = np.zeros((3, len(lengths))), np.zeros((3, len(lengths)))
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] or 0) if pairing.pads else range(len(lengths))
    for place in order:
        batch = pairing.task.sample(3, rows, lengths[place], generator)
        for member in range(3):
            read = batch.inputs[member]
            if spec.vocab is not None and not pairing.reads_ids:
                read = F.one_hot(read, spec.vocab).float()
            with torch.no_grad():
                outputs = pairing.build(member).eval()(read)
            targets, mask = batch.targets[member], batch.mask[member]
            loss[member, place] = float(plain_loss(spec, outputs, targets, mask))
            if spec.loss == "square":
                scores[member, place] = 1 - loss[member, place] / float(targets.var(correction=0))
                continue
            guess = outputs.argmax(-1) if spec.loss == "cross-entropy" else torch.where(outputs >= 0, 1.0, -1.0)
            shares = [float((guess == targets)[r][mask[r]].double().mean()) for r in range(rows)]
            scores[member, place] = sum(shares) / rows
    return scores, loss.mean(axis=1)


def agree(pairing: Pairing, lengths: list, batching: Batching, rows: int = 7) -> None:
    found = evaluate(untrained(pairing, batching), lengths, rows, torch.Generator().manual_seed(5))
    scores, loss = oracle(pairing, lengths, rows, seed=5)
    assert found.lengths == tuple(lengths)
    assert found.finite.all()
    np.testing.assert_allclose(found.scores.numpy(), scores, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.loss.numpy(), loss, rtol=1e-4)
    np.testing.assert_allclose(found.mean.numpy(), scores.mean(axis=1), rtol=1e-4)
    assert scores.std() > 0, "all the same would agree whatever is mixed up"


@each("batching", BATCHINGS)
@each(("net", "shape"), PADDING)
def test_lengths_that_share_a_call_score_as_they_would_alone(net, shape, batching):
    pairing = pair(net, REVERSE, {"width": 8, **shape}, longest=14)
    assert pairing.pads
    agree(pairing, [9, 1, 14, 2, 3, 8, 13, 10], batching)


@pytest.mark.parametrize("net", OWN)
@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_nets_of_users_too(net, batching):
    pairing = pair(net, RECALL, longest=12)
    assert pairing.pads
    agree(pairing, [12, 1, 5, 4, 11, 10], batching)


@pytest.mark.parametrize(("net", "task"), [("self-attention", REVERSE), (user_nets.Mean, RECALL)])
def test_nets_that_padding_would_change_get_every_length_alone(monkeypatch, net, task):
    pairing = pair(net, task, longest=12)
    assert not pairing.pads
    agree(pairing, [12, 1, 5, 4, 11, 10], LOOP)
    shapes = called_with(monkeypatch)
    evaluate(untrained(pairing, LOOP), [3, 4, 5, 6], 7, torch.Generator().manual_seed(5))
    assert len(shapes) == 3 * 4
    assert len({s[2] for s in shapes}) == 4
    assert {s[1] for s in shapes} == {7}


@pytest.mark.parametrize("task", [PARITY, SQUARE], ids=lambda t: t.name)
@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_vectors_score_as_in_a_slow_loop(task, batching):
    agree(pair("mlp", task, {"width": 12}), [None], batching, rows=40)


def called_with(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    shapes: list[tuple[int, ...]] = []
    real = Program.outputs

    def outputs(self, inputs, present=None, most=None):
        for start, stop, found in real(self, inputs, present, most):
            shapes.append((stop - start, *inputs.shape[1:]))
            yield start, stop, found

    monkeypatch.setattr(Program, "outputs", outputs)
    return shapes


def test_lengths_share_far_fewer_calls_than_there_are_lengths(monkeypatch):
    pairing = pair("rnn", REVERSE, {"width": 4}, longest=200)
    shapes = called_with(monkeypatch)
    evaluate(untrained(pairing, Batching(3, batched=True)), list(range(41, 201)), 2, torch.Generator().manual_seed(0))
    assert sum(s[0] * s[1] for s in shapes) == 3 * 2 * 160
    assert len(shapes) <= 16
    cells = sum(s[0] * s[1] * s[2] for s in shapes)
    assert cells <= 1.25 * sum(3 * 2 * 2 * n for n in range(41, 201)), "little is padded"


@pytest.mark.parametrize("limit", [1, 2000, 9000, 60_000])
@pytest.mark.parametrize("net", ["rnn", "transformer"])
def test_calls_stay_below_the_limit_and_the_scores_the_same(monkeypatch, net, limit):
    pairing = pair(net, REVERSE, {"width": 8}, longest=14)
    assert pairing.token_by_token == (net == "rnn")
    lengths = [9, 1, 14, 2, 3, 8, 13, 10]
    expected = evaluate(untrained(pairing, BATCHINGS[2]), lengths, 7, torch.Generator().manual_seed(5))
    shapes = called_with(monkeypatch)
    monkeypatch.setitem(evaluation._CELLS, "cpu", limit)
    monkeypatch.setattr(evaluation, "_POSITIONS", {"cpu": max(1, limit // 64)})
    found = evaluate(untrained(pairing, BATCHINGS[2]), lengths, 7, torch.Generator().manual_seed(5))
    for members, rows, tokens in shapes:
        room = max(1, limit // 64) if net == "rnn" else limit / (tokens + 64)
        fits = members * rows * tokens <= room
        assert fits or (members == 1 and rows == 7), "only one member at one length may be larger"
    torch.testing.assert_close(found.scores, expected.scores)
    torch.testing.assert_close(found.loss, expected.loss)


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_a_member_that_is_not_finite_is_marked_alone(batching):
    pairing = pair("rnn", REVERSE, {"width": 4})
    found = untrained(pairing, batching)
    found.members.parameters["read.bias"][1] = torch.nan
    shown = evaluate(found, [1, 2, 6], 4, torch.Generator().manual_seed(0))
    assert shown.finite.tolist() == [True, False, True]
    assert [math.isfinite(x) for x in shown.loss.tolist()] == [True, False, True]


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_what_a_net_says_at_padding_is_nobodys_concern(batching):
    pairing = pair(user_nets.NoNumberAtPadding, RECALL, longest=12)
    assert pairing.pads
    agree(pairing, [12, 1, 5, 4, 11, 10], batching)


def test_members_are_scored_on_rows_of_their_own():
    pairing = pair("rnn", REVERSE, {"width": 4})
    same = Members(pairing, [pairing.build(0) for _ in range(3)], CPU, batched=True)
    shown = evaluate(Program(same, None, BATCHINGS[2], CPU), [6], 9, torch.Generator().manual_seed(0))
    assert len(set(shown.loss.tolist())) == 3


def test_exact_is_the_share_of_rows_with_no_position_wrong():
    """Of a net that errs at a known share of positions: it always says symbol 0, on strings of two symbols."""
    task = make_task("copy", {"symbols": 2, "longest": 3})

    class Zero(torch.nn.Module):
        def __init__(self, features, outputs, tokens):
            super().__init__()
            self.bias = torch.nn.Parameter(torch.tensor([1.0, 0.0]))

        def forward(self, x):
            return self.bias.expand(*x.shape[:2], 2)

    found = evaluate(untrained(pair(Zero, task), LOOP), [1, 2, 3], 4000, torch.Generator().manual_seed(0))
    torch.testing.assert_close(found.exact[0], torch.tensor([0.5, 0.25, 0.125]), atol=0.03, rtol=0)
    torch.testing.assert_close(found.scores[0], torch.full((3,), 0.5), atol=0.03, rtol=0)
