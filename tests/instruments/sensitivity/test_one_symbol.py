"""Sensitivity over length against nets whose influence is known exactly, and built-in nets against their laws."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.sensitivity.influence import decay, logit_range, profile_distances
from theodolite.instruments.sensitivity.one_symbol import influence_law, sensitivity
from theodolite.measurement import Measurement
from theodolite.measures import measure
from theodolite.nets.load import blueprint, load

SHORT = (8, 16, 32, 64)


def running_mean(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype).view(1, -1, 1)


@pytest.mark.parametrize(
    ("net", "exponent"),
    [
        (lambda x: x.mean(1, keepdim=True).expand_as(x), -1.0),
        (running_mean, -1.0),
        (lambda x: x.cumsum(1) / x.shape[1] ** 0.5, -0.5),
        (lambda x: x.cumsum(1), 0.0),
        (lambda x: x.sum(1) / x.shape[1] ** 2, -2.0),
    ],
)
def test_the_slope_is_the_known_one_of_a_linear_net(net, exponent):
    """Symbols are the same at every length, so the slope of a linear net has no noise at all."""
    found = sensitivity(net, lengths=SHORT, tokens=8, features=3)
    assert found.value == pytest.approx(exponent, abs=1e-9)
    assert found.interval == pytest.approx((exponent, exponent), abs=1e-9)
    assert found.diagnostics["weights"] == "as they are"
    assert found.diagnostics["agrees"] is None
    assert found.diagnostics["law"] is None
    assert [row["tokens"] for row in found.diagnostics["curve"]] == list(SHORT)


def test_the_change_is_in_units_of_the_outputs_deviation():
    """The last of many equal readings of one token has deviation √features, and a new token is √2 times that away."""
    found = sensitivity(lambda x: x[:, :1].expand_as(x), lengths=SHORT, draws=64, tokens=8, features=50)
    first = [row["change"] for row in found.diagnostics["first"]["curve"]]
    assert first == pytest.approx([math.sqrt(2)] * 4, rel=0.1)
    assert found.diagnostics["curve"][-1]["change"] == 0, "and all the other places move nothing"
    assert found.value is None
    assert "0 or below rounding" in found.diagnostics["no_slope"]


def leaky(x):
    state, states = torch.zeros_like(x[:, 0]), []
    for token in x.unbind(1):
        state = 0.5 * state + token
        states.append(state)
    return torch.stack(states, dim=1)


def test_a_leaky_sum_forgets_half_with_every_token():
    found = sensitivity(leaky, lengths=SHORT, tokens=8, features=20)
    assert found.value is None
    assert found.diagnostics["over_length"]["shape"] == "exponential"
    assert "halves every" in found.diagnostics["no_slope"]
    assert found.diagnostics["profile"]["shape"] == "exponential"
    assert found.diagnostics["profile"]["half_life"] == pytest.approx(1, rel=0.05)
    change = dict(zip(found.diagnostics["profile"]["distance"], found.diagnostics["profile"]["change"], strict=True))
    assert change[4] / change[8] == pytest.approx(2**4, rel=0.5)


@pytest.mark.parametrize("exponent", [-1.0, -2.0])
def test_a_kernel_that_falls_as_a_power_is_told_from_an_exponential(exponent):
    def net(x):
        place = torch.arange(x.shape[1], dtype=x.dtype)
        weights = (place[:, None] - place).clamp(min=1) ** exponent * (place[:, None] >= place)
        return weights @ x

    profile = sensitivity(net, lengths=(16, 64, 256, 1024), draws=4, tokens=8, features=20).diagnostics["profile"]
    assert profile["shape"] == "power"
    assert profile["exponent"] == pytest.approx(exponent, abs=0.2)


def test_decay_on_exact_curves():
    distances = profile_distances(128)
    assert distances[:6] == [1, 2, 3, 4, 6, 8]
    assert distances[-1] < 128
    fallen = decay(distances, np.array([[2.0**-d for d in distances]]), 1e-12)
    assert (fallen["shape"], fallen["half_life"]) == ("exponential", pytest.approx(1))
    power = decay(distances, np.array([[d**-1.5 for d in distances]]), 1e-12)
    assert (power["shape"], power["exponent"]) == ("power", pytest.approx(-1.5))
    assert decay(distances, np.full((1, len(distances)), 0.3), 1e-12)["shape"] == "flat"
    assert decay(distances, np.zeros((1, len(distances))), 1e-12) == {"shape": None}


def moving_sum(x):
    padded = nn.functional.pad(x, (0, 0, 4, 0))
    return torch.stack([padded[:, t : t + 5].sum(1) for t in range(x.shape[1])], dim=1)


def test_beyond_a_window_the_change_is_exactly_zero():
    found = sensitivity(moving_sum, lengths=SHORT, tokens=8, features=2)
    assert found.diagnostics["reach"] == 4
    assert found.value is None
    assert found.diagnostics["no_slope"] == "the change is exactly 0 beyond 4 tokens"
    assert found.diagnostics["profile"]["shape"] == "window"
    by_distance = zip(found.diagnostics["profile"]["distance"], found.diagnostics["profile"]["change"], strict=True)
    assert all((change > 0) == (distance <= 4) for distance, change in by_distance)


@pytest.mark.parametrize(
    ("shape", "reach"),
    [
        ({"depth": 2, "kernel": 3, "dilation": 2}, 6),
        ({"depth": 2, "kernel": 3, "dilation": 2, "causal": False}, 3),
        ({"depth": 2, "kernel": 3, "dilation": 2, "causal": False, "padding": "circular"}, 3),
        ({"depth": 4, "kernel": 5, "dilation": 2}, 60),
        ({"depth": 2, "kernel": 1}, 0),
    ],
)
def test_a_convolution_reaches_as_far_as_its_windows(shape, reach):
    found = sensitivity("convolution", lengths=SHORT, draws=2, width=8, **shape)
    assert found.diagnostics["reach"] == found.diagnostics["predicted_reach"] == reach
    assert found.diagnostics["law"] == "window"
    assert found.diagnostics["agrees"] is True
    assert found.value is None


def test_a_window_longer_than_every_input_is_no_window_here():
    found = sensitivity("convolution", lengths=SHORT, draws=2, width=8, depth=3, kernel=5, dilation=4)
    assert (found.diagnostics["reach"], found.diagnostics["predicted_reach"]) == (63, 4 * (1 + 4 + 16))
    assert found.diagnostics["agrees"] is True


def test_what_fades_below_the_smallest_number_is_not_taken_for_a_window():
    def net(x):
        place = torch.arange(x.shape[1], dtype=x.dtype)
        return (0.05 ** (place[:, None] - place).clamp(min=0) * (place[:, None] >= place)) @ x

    found = sensitivity(net, lengths=(8, 16, 32, 300), draws=2, tokens=8, features=9)
    assert net(torch.eye(300, dtype=torch.float64)[None])[0, -1, 0] == 0
    assert found.diagnostics["reach"] == 299
    assert found.diagnostics["profile"]["shape"] == "exponential"
    assert found.diagnostics["profile"]["half_life"] == pytest.approx(math.log(2) / math.log(20), rel=0.2)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("transformer", {"causal": False, "positions": "none"}),
        ("transformer", {"causal": False, "positions": "rotary", "depth": 1}),
        ("linear-transformer", {"causal": False}),
        ("linear-transformer", {"causal": True}),
    ],
)
def test_attention_gives_every_symbol_a_share_of_order_one_over_n(name, shape):
    found = sensitivity(name, lengths=(16, 32, 64, 128), width=16, **shape)
    assert found.value == pytest.approx(-1, abs=0.1)
    assert found.interval[0] < found.value < found.interval[1]
    assert found.diagnostics["agrees"] is True
    assert found.diagnostics["predicted"] == -1
    assert found.diagnostics["profile"]["shape"] == "flat"
    assert (found.diagnostics["logit_range"] is None) == (name == "linear-transformer")


def test_the_first_symbol_of_a_causal_transformer_gains_a_logarithm():
    found = sensitivity("transformer", lengths=(16, 32, 64, 128), inputs=3, depth=3, width=8, positions="none")
    low, high = found.diagnostics["first_predicted"]
    assert low == -1 < high
    assert found.diagnostics["first_agrees"] is True
    assert found.diagnostics["first"]["slope"] > found.value + 0.02


@pytest.mark.parametrize("name", ["lstm", "rnn"])
def test_a_recurrence_forgets_exponentially_and_theory_has_no_law(name):
    found = sensitivity(name, lengths=SHORT, draws=4)
    assert found.value is None
    assert found.diagnostics["over_length"]["shape"] == "exponential"
    assert "halves every" in found.diagnostics["no_slope"]
    assert found.diagnostics["agrees"] is None
    assert "no law" in found.diagnostics["reason"]


def test_large_logits_are_reported():
    """The same attention with queries 30 times as large does not look at all tokens alike any more."""
    plain = load("transformer", depth=1, width=8, heads=2, positions="none").module.double()
    with torch.no_grad():
        x = torch.randn(2, 12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        plan = blueprint(plain, tokens=12, features=4)
        block = plain.blocks[0]
        normed = nn.functional.layer_norm(plain.embed(x), (8,), block.before_attention.weight)
        projected = (normed + block.before_attention.bias) @ block.project.weight.T + block.project.bias
        largest = 0.0
        for b in range(2):
            for head in range(2):
                q, k = (projected[b, :, part * 8 + head * 4 : part * 8 + head * 4 + 4] for part in (0, 1))
                for i in range(12):
                    scores = [float(q[i] @ k[j]) / 2 for j in range(i + 1)]
                    largest = max(largest, max(scores) - min(scores))
        assert logit_range(plan, plain, x) == pytest.approx(largest)
        block.project.weight[:8] *= 30
        block.project.bias[:8] *= 30
        assert logit_range(plan, plain, x) == pytest.approx(30 * largest)
    assert not block._forward_pre_hooks
    assert logit_range(blueprint("lstm"), load("lstm").module.double(), x) is None


class Words(nn.Module):
    def __init__(self, vocab: int, tokens: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab, 4)

    def forward(self, ids):
        return running_mean(self.table(ids))


class Limited(nn.Module):
    """Learnt positions for 40 tokens, whatever is asked for."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(40, features))

    def forward(self, x):
        return running_mean(x + self.places[: x.shape[1]])


class Mean(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()

    def forward(self, x):
        return x.mean(-1, keepdim=True)


def test_ids_are_replaced_by_other_ids():
    found = sensitivity(Words, lengths=SHORT, vocab=2)
    assert found.value == pytest.approx(-1, abs=1e-9)
    assert found.diagnostics["reach"] == 63, "by derivatives of what its embedding looks up"
    with pytest.raises(NotApplicable, match="one symbol"):
        sensitivity(Words, vocab=1)


def test_a_vectors_entries_stand_for_tokens():
    found = sensitivity(Mean, lengths=SHORT)
    assert found.value == pytest.approx(-1, abs=1e-9)
    assert found.diagnostics["reads"] == "the whole output"
    assert "no token" in found.diagnostics["profile"]["reason"]
    assert sensitivity("mlp", lengths=SHORT, draws=8).value < 0
    with pytest.raises(NotApplicable, match="vectors of one size"):
        sensitivity(nn.Linear(8, 1), features=8)


def test_a_net_for_a_limited_number_of_tokens_is_measured_as_far_as_it_goes():
    found = sensitivity(Limited, lengths=(8, 16, 32, 64), tokens=8, features=3)
    assert found.diagnostics["lengths_not_taken"] == [64]
    assert [row["tokens"] for row in found.diagnostics["curve"]] == [8, 16, 32]
    with pytest.raises(NotApplicable, match="over lengths"):
        sensitivity(Limited, lengths=(8, 64, 128), tokens=8, features=3)


@pytest.mark.parametrize(
    ("net", "options", "error", "message"),
    [
        ("lstm", {"lengths": (8, 16)}, BadInput, "at least 3 different ones"),
        ("lstm", {"lengths": (2, 4, 8)}, BadInput, "from 4 on"),
        ("lstm", {"draws": 1}, BadInput, "too few"),
        ("conv-circuit", {"lengths": (8, 12, 16)}, NotApplicable, "power of two"),
        (lambda x: x / 0, {"tokens": 8}, BadInput, "NaN or infinity"),
        (lambda x: "x", {"tokens": 8}, BadInput, "str"),
        ("lstm", {"haeds": 3}, BadInput, "haeds"),
    ],
)
def test_what_cannot_be_measured_is_said_in_a_sentence(net, options, error, message):
    with pytest.raises(error, match=message):
        sensitivity(net, **options)


class Single(nn.Module):
    """Makes tensors of single precision whatever it is given: it does not run in double at all."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.read = nn.Linear(features, 2)

    def forward(self, x):
        return self.read(running_mean(x.float()))


def test_a_net_made_for_single_precision_is_measured_in_it():
    found = sensitivity(Single, lengths=SHORT, tokens=8, features=3)
    assert found.value == pytest.approx(-1, abs=1e-3)
    assert "float32" in found.diagnostics["precision"]


def test_it_is_repeated_and_stored_and_nothing_global_is_touched():
    state = torch.random.get_rng_state()
    config = {"net": "rnn", "shape": {"width": 8}, "lengths": [8, 16, 32], "draws": 2}
    rows = [measure("sensitivity", config, seed, "cpu") for seed in (1, 1, 2)]
    assert torch.equal(torch.random.get_rng_state(), state)
    curves = [row["diagnostics"]["curve"] for row in rows]
    assert curves[0] == curves[1] != curves[2]
    row = Measurement.from_json(json.loads(json.dumps(rows[0], allow_nan=False)))
    assert row.quantity == "sensitivity exponent"
    assert influence_law(nn.Linear(2, 2)) is None
