"""Small groups of members, and what is done with a group in every test of one."""

from __future__ import annotations

import json

import torch

from theodolite.tasks.contract import make_task
from theodolite.training.group import Finished, Look, MemberSpec, Schedule
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import Pairing, pair
from theodolite.training.program import Batching
from theodolite.training.session import Session

from .plain import CPU, LOOP

CHECK = make_task("parity-check", {"longest": 5})
EASY = make_task("parity", {"bits": 4, "relevant": 1})
SQUARE = make_task("sawtooth", {"folds": 1})
MLP = pair("mlp", EASY, {"width": 4, "depth": 1})
RNN = pair("rnn", CHECK, {"width": 4}, longest=9)
BATCHINGS = [LOOP, Batching(2, batched=True), Batching(9, batched=True)]


def specs(*rates: float, decay: float = 0.0) -> list[MemberSpec]:
    return [MemberSpec(f"member {i}", i, Rates(lr, decay)) for i, lr in enumerate(rates)]


def make(
    pairing: Pairing = MLP,
    members: list[MemberSpec] | None = None,
    schedule: Schedule | None = None,
    rule: Rule | None = None,
    batching: Batching = BATCHINGS[1],
) -> Session:
    members = specs(1e-2, 3e-2, 1e-2) if members is None else members
    return Session(pairing, members, schedule or Schedule(40, 8, 20, 4), rule or Rule(), batching, CPU)


def run(session: Session) -> tuple[list[Finished], list[Look]]:
    finished, looks = [], []
    while not session.done:
        rows, seen = session.advance()
        finished += rows
        looks += seen
    return finished, looks


def same(ours: list[Finished], theirs: list[Finished]) -> None:
    assert [f.key for f in ours] == [f.key for f in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert json.dumps(a.result, allow_nan=False) == json.dumps(b.result, allow_nan=False)
        assert a.weights.keys() == b.weights.keys()
        assert a.batching == b.batching
        for name in a.weights:
            assert torch.equal(a.weights[name].nan_to_num(7.0), b.weights[name].nan_to_num(7.0))
