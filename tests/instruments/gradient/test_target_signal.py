"""The share of the gradient that speaks of one target, against sums over all inputs written out."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import itertools
import json

import pytest
import torch

from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.gradient.signal import builder, signal
from theodolite.instruments.gradient.target_signal import target_signal
from theodolite.measures import measure
from theodolite.tasks.contract import make_task


def share_by_hand(net: str, task: str, arguments: dict, seed: int, **shape: int) -> float:
    target = make_task(task, arguments)
    _, build = builder(net, target, shape)
    module = build(seed).double()
    rows = list(itertools.product([1.0, -1.0], repeat=target.spec.features))
    answers = torch.tensor([target.solve(row)[0] for row in rows], dtype=torch.float64)
    total, power = 0.0, 0.0
    for row, answer in zip(rows, answers, strict=True):
        x = torch.tensor([row], dtype=torch.float64)
        each = torch.autograd.grad(module(x).sum(), list(module.parameters()), allow_unused=True)
        flat = torch.cat([g.flatten() for g in each if g is not None])
        total = total + (answer - answers.mean()) * flat / len(rows)
        power += float(flat.square().sum()) / len(rows)
    return float(total.square().sum()) / (power * float(answers.var(correction=0)))


@pytest.mark.parametrize(
    ("net", "task", "arguments", "shape"),
    [
        ("mlp", "parity", {"bits": 6, "relevant": 2}, {"width": 8}),
        ("mlp", "majority", {"bits": 6}, {"width": 8}),
        ("rnn", "boolean", {"bits": 6, "function": "and"}, {"width": 4}),
        ("transformer", "parity", {"bits": 5, "relevant": 3}, {"width": 4, "heads": 2, "depth": 1}),
    ],
)
def test_the_share_is_the_sum_over_all_inputs(net, task, arguments, shape):
    found = target_signal(net, task, arguments, draws=2, seed=4, **shape)
    expected = [share_by_hand(net, task, arguments, seed, **shape) for seed in (4, 5)]
    assert found.exact
    assert found.inputs == 2 ** arguments["bits"]
    assert found.shares == pytest.approx(expected, rel=1e-5)
    assert found.share == pytest.approx(sum(expected) / 2, rel=1e-5)
    assert found.baseline == 2.0 ** -arguments["bits"]
    assert 0 <= found.share <= 1


def test_the_shares_of_parities_follow_the_spectrum_and_sum_to_one():
    spectrum = signal("mlp", bits=5, subclass="0,1", dtype="float64", width=6)
    found = target_signal("mlp", "parity", {"bits": 5, "relevant": 2}, draws=1, width=6)
    # Σ_S of the squared signals is G² (Parseval); the mean over pairs contains this pair.
    assert found.signal < 10 * spectrum.by_degree[2]
    assert found.gradient_power == pytest.approx(spectrum.gradient_power, rel=1e-5)
    assert found.interval is None


def test_drawn_inputs_give_an_estimate_around_the_exact_value(monkeypatch):
    exact = target_signal("mlp", "majority", {"bits": 8}, draws=6, width=16)
    monkeypatch.setattr("theodolite.instruments.gradient.target_signal.MOST_BITS", 4)
    drawn = target_signal("mlp", "majority", {"bits": 8}, draws=6, width=16, samples=20_000)
    assert not drawn.exact
    assert exact.exact
    assert drawn.shares == pytest.approx(exact.shares, rel=0.25)


def test_noise_is_not_taken_for_signal():
    """A wave far too fast for the net: every draw's estimate scatters around 0, on both sides."""
    found = target_signal("mlp", "linear-periodic", {"frequency": 40.0}, draws=10, samples=2048, width=16)
    assert found.interval[0] == 0 < found.interval[1], "a share has no negative end"
    assert min(found.shares) < 0 < max(found.shares)
    assert not found.resolved


def test_tasks_on_one_real_number_are_measured_by_drawing():
    found = target_signal("mlp", "sawtooth", {"folds": 1}, draws=5, width=16, samples=4096)
    assert (found.exact, found.baseline, found.times_baseline) == (False, None, None)
    assert found.interval[0] < found.share < found.interval[1]


def test_the_measure_gives_the_same_as_plain_json():
    config = {
        "net": "mlp",
        "shape": {"width": 8},
        "task": "parity",
        "task_args": {"bits": 5, "relevant": 2},
        "draws": 2,
    }
    row = measure("target-signal", config, 7, "cpu")
    json.dumps(row, allow_nan=False)
    assert row["share"] == target_signal("mlp", "parity", {"bits": 5, "relevant": 2}, draws=2, seed=7, width=8).share


def test_what_has_no_signal_is_refused():
    with pytest.raises(NotApplicable, match="tokens"):
        target_signal("rnn", "copy")
    with pytest.raises(BadInput, match="draws"):
        target_signal("mlp", "parity", draws=0)
