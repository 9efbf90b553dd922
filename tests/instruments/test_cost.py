"""Measured costs against formulas of every shape, nets whose cost is known, and a net that sleeps."""

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

import json
import time
from typing import ClassVar

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.instruments.cost import cost, predicted_price
from theodolite.measurement import Measurement
from theodolite.measures import measure
from theodolite.nets.load import blueprint
from theodolite.theory.cost import PRICES

SHAPES: list[tuple[str, dict]] = [
    *((name, {}) for name in PRICES),
    ("mlp", {"features": 3, "outputs": 4, "depth": 1, "width": 7}),
    ("mlp", {"depth": 4}),
    ("rnn", {"depth": 3, "width": 5, "features": 2, "tokens": 11}),
    ("lstm", {"depth": 2, "width": 6, "outputs": 3}),
    ("gru", {"depth": 3, "width": 5, "outputs": 3}),
    ("stack-rnn", {"depth": 2, "width": 6, "cell": 3, "tokens": 11, "stack": 4}),
    ("tape-rnn", {"depth": 2, "width": 6, "cell": 3, "tokens": 11}),
    ("tape-rnn", {"tape": 5, "write_layers": 2, "tokens": 6}),
    ("mixer", {"tokens": 20, "depth": 3, "width": 6, "outputs": 2}),
    ("mixer", {"causal": True, "expansion": 1}),
    ("graph-network", {"depth": 3, "width": 6, "graph": "ring", "outputs": 2}),
    ("convolution", {"kernel": 3, "depth": 2, "width": 6, "tokens": 20}),
    ("convolution", {"causal": False, "padding": "circular", "width": 8}),
    ("transformer", {"tokens": 33, "block": "parallel", "depth": 1}),
    ("transformer", {"causal": False, "positions": "none", "heads": 2, "width": 12}),
    ("universal-transformer", {"tokens": 11, "depth": 3, "width": 12, "block": "parallel", "outputs": 3}),
    ("universal-transformer", {"halting": False, "positions": "rotary"}),
    ("universal-transformer", {"depth": 1}),
    ("linear-transformer", {"tokens": 64, "heads": 2}),
    ("linear-transformer", {"tokens": 100, "block": "parallel", "depth": 3}),
    ("linear-transformer", {"tokens": 130, "causal": False, "positions": "sinusoidal"}),
]


@each(("name", "shape"), SHAPES)
def test_parameters_and_operations_are_the_formulas(name, shape):
    found = cost(name, timed=False, state=False, **shape)
    for quantity in ("parameters", "flops_per_token"):
        row = found[quantity]
        assert row.exact
        assert row.value == pytest.approx(row.diagnostics["predicted"], rel=1e-12)
        assert row.value > 0
        assert row.diagnostics["formula"]


@pytest.mark.parametrize("batch", [1, 5])
def test_costs_per_token_do_not_depend_on_the_batch(batch):
    one, other = (cost("lstm", batch=b, timed=False, state=False) for b in (batch, 16))
    assert one["flops_per_token"].value == other["flops_per_token"].value
    assert one["parameters"].value == other["parameters"].value


class Perceptron(nn.Module):
    def __init__(self, features: int, width: int = 10) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(features, width), nn.Linear(width, 3)

    def forward(self, x):
        return self.out(torch.tanh(self.into(x)))


def test_a_perceptron_keeps_its_activations_and_multiplies_its_matrices():
    """Of what the backward pass needs, the input is not counted and tanh's output serves two gradients."""
    found = cost(Perceptron, features=6, width=10, timed=False)
    assert found["activation_bytes_per_token"].value == 4 * 10
    assert found["flops_per_token"].value == 2 * (6 * 10 + 10 * 3)
    assert found["flops_per_token"].diagnostics["per"] == "input"
    assert found["parameters"].value == 7 * 10 + 11 * 3
    assert found["parameters"].diagnostics["predicted"] is None
    assert "state_size" not in found
    by_token = cost(Perceptron, features=6, tokens=4, timed=False)
    assert by_token["activation_bytes_per_token"].value == 4 * 10
    assert by_token["flops_per_token"].diagnostics["per"] == "token"
    assert by_token["state_size"].value == 0


def test_attention_keeps_more_for_longer_inputs_and_a_recurrence_does_not():
    kept = lambda name, tokens: cost(name, tokens=tokens, timed=False, state=False)["activation_bytes_per_token"].value
    assert kept("transformer", 128) - kept("transformer", 64) >= 2 * 4 * 64 * 4  # depth · heads · keys · bytes
    assert kept("rnn", 128) == pytest.approx(kept("rnn", 64), rel=0.02)


class Recurrent(nn.Module):
    def __init__(self, features: int, tokens: int) -> None:
        super().__init__()
        self.cell = nn.LSTM(features, 6, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0]


def test_operations_inside_torchs_own_recurrent_kernels_are_seen():
    found = cost(Recurrent, features=3, tokens=5, timed=False, state=False)
    assert found["flops_per_token"].value == 2 * 4 * 6 * (3 + 6)


class Sleeps(nn.Module):
    """Moves the clock by four milliseconds a pass, but by forty at every fifth."""

    clock: ClassVar = [0.0]

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.clock.append(self.clock[-1] + (0.004 if len(self.clock) % 5 else 0.04))
        return x * self.weight


def test_seconds_are_those_of_a_net_that_sleeps(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: Sleeps.clock[-1])
    found = cost(Sleeps(), batch=4, tokens=5, features=2, state=False)
    for name in ("forward_seconds_per_token", "training_seconds_per_token"):
        row = found[name]
        assert row.value * 20 == pytest.approx(0.004)
        assert row.value == row.interval[0] <= row.interval[1] == row.diagnostics["median"]
        assert row.diagnostics["slowest"] * 20 == pytest.approx(0.04)
        assert row.diagnostics["runs"] >= 5


def test_training_costs_more_than_reading_and_leaves_the_users_net_alone():
    module = Perceptron(6).train()
    before = [p.clone() for p in module.parameters()]
    found = cost(module, features=6, batch=64)
    assert found["training_seconds_per_token"].value > found["forward_seconds_per_token"].value
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert module.training
    assert all(p.grad is None for p in module.parameters())


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("rnn", {"depth": 2, "width": 5}),
        ("lstm", {"width": 6}),
        ("gru", {"depth": 2, "width": 5}),
        ("convolution", {"depth": 2, "kernel": 3, "width": 5}),
        ("convolution", {"depth": 2, "kernel": 3, "width": 5, "causal": False}),
        ("linear-transformer", {"depth": 1, "width": 4, "heads": 1}),
        ("linear-transformer", {"depth": 2, "width": 4, "heads": 2}),
        ("linear-transformer", {"depth": 1, "width": 6, "heads": 2, "causal": False}),
        ("linear-transformer", {"depth": 2, "width": 8, "heads": 2}),
    ],
)
def test_the_measured_state_is_the_formulas(name, shape):
    row = cost(name, timed=False, **shape)["state_size"]
    assert row.value == row.diagnostics["predicted"] > 0
    assert row.diagnostics["agrees"] is True
    assert row.diagnostics["growth_per_token"] == row.diagnostics["predicted_per_token"] == 0


def test_a_state_that_was_not_resolved_confirms_nothing():
    row = cost("convolution", timed=False, width=18, features=4, most=64)["state_size"]
    assert not row.diagnostics["resolved"]
    assert row.diagnostics["at_least"] < row.value == row.diagnostics["predicted"]
    assert row.diagnostics["agrees"] is None


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("transformer", {}),
        ("transformer", {"causal": False, "positions": "none"}),
        ("entmax-transformer", {}),
        ("universal-transformer", {}),
        ("linear-transformer", {"causal": False}),
    ],
)
def test_the_measured_growth_is_the_formulas(name, shape):
    row = cost(name, timed=False, width=8, heads=2, depth=2, **shape)["state_size"]
    assert row.value is None
    assert row.diagnostics["growth_per_token"] == row.diagnostics["predicted_per_token"] == 8 - 1
    assert row.diagnostics["agrees"] is True
    assert row.diagnostics["cache_per_token"] == (2 * 8 * 2 if not shape else None)


def test_a_net_without_parameters_has_no_training_step():
    found = cost(lambda x: x.cumsum(1), tokens=4, features=2, state=False)
    assert "training_seconds_per_token" not in found
    assert found["flops_per_token"].value == 0
    assert found["flops_per_token"].diagnostics["nothing_seen"] is True
    assert found["activation_bytes_per_token"].diagnostics["trains"] is False


class Words(nn.Module):
    def __init__(self, vocab: int, tokens: int) -> None:
        super().__init__()
        self.table, self.read = nn.Embedding(vocab, 4), nn.Linear(4, 2)

    def forward(self, ids):
        return self.read(self.table(ids))


class Single(nn.Module):
    """Computes in float32 whatever it is asked for."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = torch.ones(features, 2)

    def forward(self, x):
        return x @ self.weight


def test_nets_that_read_ids_and_nets_made_for_float32():
    found = cost(Words, vocab=9)
    assert found["flops_per_token"].value == 2 * 4 * 2
    assert found["state_size"].value == 0, "a table and a layer for every token alone"
    assert cost(Single, features=5, timed=False)["flops_per_token"].value == 2 * 5 * 2


@pytest.mark.parametrize(
    ("net", "options", "message"),
    [
        ("lstm", {"batch": 0}, "batch of 0"),
        ("lstm", {"widht": 3}, "did you mean 'width'"),
        (nn.Linear(3, 2), {"features": 4}, "reads 3 numbers, not 4"),
        (lambda x: "x", {"features": 4}, "str"),
        ("lstm", {"device": "cuda:77"}, "cuda|CUDA"),
    ],
)
def test_what_cannot_be_measured_is_said_in_a_sentence(net, options, message):
    with pytest.raises(BadInput, match=message):
        cost(net, **options)


def test_a_users_net_of_a_built_in_name_has_no_formula():
    def lstm(features: int) -> nn.Module:
        return nn.Linear(features, 1)

    assert predicted_price(blueprint(lstm)) is None
    assert predicted_price(blueprint("lstm")).parameters > 0
    assert predicted_price(blueprint("self-attention")) is None


def test_the_measure_can_be_stored_and_nothing_global_is_touched():
    state = torch.random.get_rng_state()
    row = measure("cost", {"net": "rnn", "shape": {"width": 4}, "batch": 2}, 3, "cpu")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.is_grad_enabled()
    assert set(row) == {
        "parameters",
        "flops_per_token",
        "activation_bytes_per_token",
        "forward_seconds_per_token",
        "training_seconds_per_token",
        "state_size",
    }
    for one in json.loads(json.dumps(row, allow_nan=False)).values():
        assert Measurement.from_json(one).provenance.seed == 3
