"""A group from its first step to its last row: looks, endings, and who sees which data."""

# pyright: reportAbstractUsage=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, TaskSpec, make_task
from theodolite.training.group import MemberSpec, Schedule
from theodolite.training.members import Members
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching
from theodolite.training.session import Session, spread

from .groups import BATCHINGS, EASY, MLP, RNN, SQUARE, make, run, specs
from .plain import CPU


@each(
    ("steps", "every", "looked_at"),
    [
        (0, 10, [0]),
        (1, 10, [1]),
        (40, 20, [20, 40]),
        (40, 100, [40]),
        (40, 17, [17, 34, 40]),
        (35, 5, [5, 10, 15, 20, 25, 30, 35]),
        (33, 16, [16, 32, 33]),
        (3, 1, [1, 2, 3]),
    ],
)
@each("batching", BATCHINGS[:2])
def test_looks_come_when_they_are_due(steps, every, looked_at, batching):
    session = make(RNN, specs(1e-6, 1e-5), Schedule(steps, 2, every, 2), batching=batching)
    stepped = Counter()
    real = session.program.train

    def train(batches, step):
        stepped.update(range(step, step + len(batches)))
        assert len(batches) <= 16
        real(batches, step)

    session.program.train = train  # pyright: ignore[reportAttributeAccessIssue]
    finished, looks = run(session)
    assert stepped == Counter(range(1, steps + 1)), "every step once, by its number"
    assert sorted({look.step for look in looks}) == looked_at
    assert {f.key for f in finished} == {"member 0", "member 1"}
    for one in finished:
        assert [point[0] for point in one.result["curve"]] == looked_at
        assert one.result["steps"] == steps
        assert one.result["status"] == "unsolved"
        assert one.result["solved_at"] is None


def test_the_curve_is_what_the_looks_said():
    finished, looks = run(make(RNN, specs(1e-2, 1e-3), Schedule(40, 4, 10, 3)))
    for one in finished:
        said = [[look.step, look.loss, look.score] for look in looks if look.key == one.key]
        assert one.result["curve"] == said
        assert len(said) == 4


def test_without_a_step_the_fresh_net_is_evaluated():
    finished, _ = run(make(RNN, specs(1e-2, 1e-3), Schedule(0, 2, 10, 40, unseen=(6, 7))))
    assert len(finished) == 2
    for one in finished:
        fresh = RNN.build(int(one.key.split()[1])).state_dict()
        assert all(torch.equal(one.weights[n], t) for n, t in fresh.items())
        lengths = [length for length, _ in one.result["by_length"]]
        assert lengths == [1, 2, 3, 4, 5, 6, 7]
        shares = dict(map(tuple, one.result["by_length"]))
        assert one.result["accuracy"] == pytest.approx(sum(shares[n] for n in range(1, 6)) / 5)
        assert one.result["unseen"] == pytest.approx((shares[6] + shares[7]) / 2)


def test_a_row_says_what_was_measured():
    finished, _ = run(make(RNN, specs(1e-2), Schedule(3, 2, 10, 2)))
    result = finished[0].result
    assert result["score"] == "accuracy"
    assert result["chance"] == 0.5
    assert result["threshold"] == 0.99
    assert result["trained_lengths"] == [1, 5]
    assert result["unseen"] is None
    assert result["parameters"] == sum(p.numel() for p in RNN.build(0).parameters())
    vector, _ = run(make(MLP, specs(1e-6), Schedule(3, 2, 10, 2)))
    assert vector[0].result["trained_lengths"] is None
    assert vector[0].result["by_length"] == []


@dataclass(frozen=True)
class Marked:
    """Vectors whose first entry is a number that no other draw has: who saw what can be told."""

    name: ClassVar[str] = "marked"
    summary: ClassVar[str] = ""
    version: ClassVar[int] = 1
    solved: float = 2.0
    drawn: ClassVar[list[tuple[torch.Generator, Batch]]] = []

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("vector", 2, 1, None, None, loss="square", chance=0.0, solved=self.solved)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        inputs = torch.rand(members, batch, 2, generator=generator, dtype=torch.float64)
        targets = inputs[..., :1].float()
        made = Batch(inputs.float(), targets, torch.ones_like(targets, dtype=torch.bool))
        self.drawn.append((generator, made))
        return made

    def solve(self, row):
        return row[:1]


def test_no_row_is_ever_seen_twice():
    """Between members, steps, blocks, looks and the last evaluation."""
    pairing = pair("mlp", Marked(), {"width": 2, "depth": 1})
    Marked.drawn.clear()
    run(make(pairing, specs(1e-3, 1e-3, 1e-2), Schedule(48, 5, 24, 1)))
    seen = torch.cat([batch.inputs.reshape(-1, 2) for _, batch in Marked.drawn])
    expected = 3 * 48 * 5 + 2 * 3 * 32 + 3 * 32  # steps, two looks, the last evaluation
    assert len(seen) == expected
    assert len(set(map(tuple, seen.tolist()))) == expected


def test_other_members_mean_other_data():
    lists = []
    for members in (specs(1e-3, 1e-3), [replace(m, key=f"other {m.key}") for m in specs(1e-3, 1e-3)]):
        session = make(pair("mlp", Marked(), {"width": 2, "depth": 1}), members, Schedule(3, 5, 24, 1))
        Marked.drawn.clear()
        run(session)
        lists.append(torch.cat([batch.inputs.reshape(-1, 2) for _, batch in Marked.drawn]))
    assert not set(map(tuple, lists[0].tolist())) & set(map(tuple, lists[1].tolist()))


def test_lengths_of_training_are_drawn_over_their_whole_range():
    session = make(RNN, specs(1e-3), Schedule(400, 1, 400, 1))
    counts = Counter(session._lengths)
    assert set(counts) == {1, 2, 3, 4, 5}
    assert all(45 < count < 120 for count in counts.values())


class Answering(nn.Module):
    """Right or wrong as its phase says: one weight that counts the steps decides."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * x[..., :1]


def scripted(monkeypatch: pytest.MonkeyPatch, says: dict[tuple[str, int], list[float]]) -> None:
    """Evaluations by purpose and step, as told; the rest is that of the net, which scores 0."""
    real = Session._evaluate

    def evaluate(self, lengths, what, program=None):
        shown = real(self, lengths, what, program)
        scores = says.get((what, self.step))
        if scores is None:
            return replace(shown, scores=torch.zeros_like(shown.scores))
        chosen = torch.tensor(scores)[: len(shown.scores), None]
        return replace(shown, scores=chosen.expand_as(shown.scores))

    monkeypatch.setattr(Session, "_evaluate", evaluate)


ANSWERING = pair(Answering, EASY)


def test_who_only_seemed_to_have_solved_it_trains_on(monkeypatch):
    scripted(monkeypatch, {("look", 10): [1.0], ("last", 10): [0.5], ("look", 20): [1.0], ("last", 20): [1.0]})
    session = make(ANSWERING, specs(1e-3), Schedule(40, 4, 10, 2))
    finished, looks = run(session)
    assert [look.step for look in looks] == [10, 20]
    assert finished[0].result["status"] == "solved"
    assert finished[0].result["solved_at"] == 20 == finished[0].result["steps"]


def test_who_seemed_to_have_solved_it_at_the_last_step_has_not(monkeypatch):
    scripted(monkeypatch, {("look", 20): [1.0], ("last", 20): [0.5]})
    finished, _ = run(make(ANSWERING, specs(1e-3), Schedule(20, 4, 10, 2)))
    assert finished[0].result["status"] == "unsolved"
    assert finished[0].result["solved_at"] is None
    assert finished[0].result["accuracy"] == 0.5


def test_to_the_end_a_solved_member_trains_on_and_its_first_time_is_kept(monkeypatch):
    scripted(monkeypatch, {("look", 10): [1.0], ("look", 20): [0.4], ("look", 30): [1.0], ("last", 30): [1.0]})
    finished, looks = run(make(ANSWERING, specs(1e-3), Schedule(30, 4, 10, 2, to_the_end=True)))
    assert [look.step for look in looks] == [10, 20, 30]
    assert finished[0].result["status"] == "solved"
    assert finished[0].result["solved_at"] == 10
    assert finished[0].result["steps"] == 30


def test_the_right_member_leaves_and_the_others_go_on(monkeypatch):
    """The middle one of three is done; what the others do afterwards is what they would have done in this group."""
    scripted(monkeypatch, {("look", 10): [0.0, 1.0, 0.0], ("last", 10): [1.0]})
    members = specs(1e-3, 1e-2, 1e-1)
    session = make(ANSWERING, members, Schedule(20, 4, 10, 2))
    (first,), _ = session.advance()
    assert first.key == "member 1"
    assert [m.key for m in session.specs] == ["member 0", "member 2"]
    assert [r.lr for r in session.optimiser.rates] == [1e-3, 1e-1]
    finished, _ = run(session)
    assert [f.key for f in finished] == ["member 0", "member 2"]


def test_members_that_are_done_cost_nothing_any_more(monkeypatch):
    scripted(monkeypatch, {("look", 10): [1.0, 0.0, 1.0, 0.0], ("last", 10): [1.0, 1.0]})
    widths: list[int] = []
    real = Members.outputs

    def outputs(self, weights, start, stop, inputs, present):
        if torch.is_grad_enabled():
            widths.append(stop - start)
        return real(self, weights, start, stop, inputs, present)

    monkeypatch.setattr(Members, "outputs", outputs)
    run(make(ANSWERING, specs(1e-3, 1e-3, 1e-3, 1e-3), Schedule(20, 4, 10, 2), batching=Batching(4, batched=True)))
    assert widths == [4] * 10 + [2] * 10


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
@pytest.mark.parametrize("task", [EASY, SQUARE], ids=lambda t: t.name)
def test_a_member_that_diverges_says_so_in_plain_json(task, batching):
    pairing = pair("mlp", task, {"width": 4})
    members = specs(1e-3, 1e38, 1e-3)
    finished, looks = run(make(pairing, members, Schedule(40, 4, 10, 2), Rule("sgd", clip=None), batching))
    by_key = {f.key: f.result for f in finished}
    ill = by_key["member 1"]
    assert ill["status"] == "diverged"
    assert ill["steps"] == 10
    assert ill["accuracy"] is None
    assert ill["unseen"] is None
    assert ill["by_length"] == []
    assert ill["solved_at"] is None
    assert ill["curve"][0][:2] == [10, None]
    assert [look.loss for look in looks if look.key == "member 1"] == [None]
    assert {by_key[k]["status"] for k in ("member 0", "member 2")} <= {"unsolved", "solved"}
    json.dumps([f.result for f in finished], allow_nan=False)


class Overflowing(nn.Module):
    """Its outputs are finite and their squares are not."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs)
        self.register_buffer("gain", torch.tensor(1e25))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * self.gain


def test_a_loss_beyond_all_numbers_has_diverged():
    finished, _ = run(make(pair(Overflowing, SQUARE), specs(1e-3), Schedule(0, 4, 10, 2)))
    assert finished[0].result["status"] == "diverged"
    json.dumps(finished[0].result, allow_nan=False)


def test_one_that_breaks_only_in_the_last_evaluation_has_diverged_too(monkeypatch):
    real = Session._evaluate

    def evaluate(self, lengths, what, program=None):
        shown = real(self, lengths, what, program)
        broken = torch.full_like(shown.scores, math.nan)
        return replace(shown, scores=broken, finite=~shown.finite) if what == "last" else shown

    monkeypatch.setattr(Session, "_evaluate", evaluate)
    finished, _ = run(make(ANSWERING, specs(1e-3), Schedule(5, 4, 10, 2, to_the_end=True)))
    assert finished[0].result["status"] == "diverged"
    assert finished[0].result["accuracy"] is None
    json.dumps(finished[0].result, allow_nan=False)


def test_the_order_of_the_members_does_not_mix_up_their_rates_and_seeds():
    """With one member's data for all, a group of three is three groups of one."""
    members = [
        MemberSpec("b", 4, Rates(3e-2, 0.1)),
        MemberSpec("a", 9, Rates(1e-3, 0.0)),
        MemberSpec("c", 2, Rates(3e-2, 0.0)),
    ]

    @dataclass(frozen=True)
    class Same(type(EASY)):
        def sample(self, members, batch, length, generator):
            one = super().sample(1, batch, length, torch.Generator().manual_seed(batch))
            return Batch(*(t.expand(members, *t.shape[1:]) for t in (one.inputs, one.targets, one.mask)))

    pairing = pair("mlp", Same(bits=4, relevant=1), {"width": 4})
    schedule = Schedule(20, 8, 20, 2, to_the_end=True)
    together = {f.key: f for f in run(make(pairing, members, schedule))[0]}
    for member in members:
        (alone,), _ = run(make(pairing, [member], schedule))
        for name, tensor in alone.weights.items():
            torch.testing.assert_close(together[member.key].weights[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("longest", "count"), [(5, 8), (8, 8), (9, 8), (40, 8), (41, 40), (100, 8)])
def test_lengths_to_look_at_are_spread_over_the_range(longest, count):
    found = spread(make_task("parity-check", {"longest": longest}), count)
    assert found[0] == 1
    assert found[-1] == longest
    assert len(found) == min(count, longest)
    steps = [b - a for a, b in itertools.pairwise(found)]
    assert max(steps) - min(steps) <= 1
    assert spread(EASY, count) == [None]


@pytest.mark.parametrize(
    ("given", "words"),
    [({"batch": 0}, "batch .* 0"), ({"every": 0}, "every .* 0"), ({"rows": -1}, "rows .* -1"), ({"steps": -1}, "-1")],
)
def test_a_schedule_that_cannot_be_kept_is_refused(given, words):
    with pytest.raises(BadInput, match=words):
        Schedule(**{"steps": 5, **given})


def test_a_net_that_solves_for_a_fixed_point_tells_how_often_it_arrives():
    """One step cannot reach the tolerance, many can; other nets say nothing."""
    shares = {}
    for steps in (1, 60):
        pairing = pair("equilibrium", make_task("parity-check", {"longest": 4}), {"width": 8, "steps": steps})
        session = Session(
            pairing, [MemberSpec("a", 0, Rates(1e-6, 0.0))], Schedule(0), Rule(), Batching(1, batched=False), CPU
        )
        ((finished, _),) = [session.advance()]
        shares[steps] = finished[0].result["converged"]
    assert shares == {1: 0.0, 60: 1.0}
