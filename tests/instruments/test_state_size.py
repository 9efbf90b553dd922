"""Measured state sizes against what each architecture is known to carry from token to token."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.state_past import Past
from theodolite.instruments.state_size import state_size
from theodolite.measurement import Measurement
from theodolite.nets.load import blueprint, seeded
from theodolite.nets.lstm import lstm
from theodolite.nets.transformer import Transformer

from .foreign_nets import RWKV, S4D, Attention, Mamba, RetNet, Stacked


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (1, 5), (2, 4), (3, 6)])
def test_an_elman_network_carries_its_hidden_states(depth, width):
    found = state_size("rnn", depth=depth, width=width)
    assert found.value == depth * width
    assert found.diagnostics["resolved"]
    assert found.diagnostics["growth_per_token"] == 0


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (1, 5), (1, 30), (2, 4), (2, 12)])
def test_an_lstm_carries_hidden_states_and_cells(depth, width):
    found = state_size("lstm", depth=depth, width=width, features=2, outputs=1)
    assert found.value == 2 * depth * width
    assert found.diagnostics["resolved"]


def test_the_number_of_features_and_outputs_asked_for_does_not_change_it():
    shapes = [{"features": f, "outputs": o} for f, o in ((1, 1), (9, 1), (3, 7))]
    assert {state_size("lstm", width=6, **shape).value for shape in shapes} == {12}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_does_not_depend_on_the_seed(seed):
    assert state_size("lstm", seed=seed, width=8, depth=2).value == 32
    assert state_size("rnn", seed=seed, width=8, depth=2).value == 16
    assert state_size("transformer", seed=seed, width=8, depth=2).diagnostics["growth_per_token"] == 7


@pytest.mark.parametrize(
    ("shape", "tokens"),
    [
        ({"depth": 1, "kernel": 4, "dilation": 1}, 3),
        ({"depth": 2, "kernel": 3, "dilation": 2}, 2 + 4),
        ({"depth": 2, "kernel": 3, "dilation": 1}, 2 + 2),
        ({"depth": 3, "kernel": 2, "dilation": 2}, 1 + 2 + 4),
        ({"depth": 2, "kernel": 3, "dilation": 2, "causal": False}, 1 + 2),
        ({"depth": 3, "kernel": 1, "dilation": 2}, 0),
    ],
)
def test_a_convolution_carries_what_its_windows_reach_back_to(shape, tokens):
    """Layer l keeps (kernel − 1)·dilationˡ tokens of its input, each of `width` numbers; half of that if centred."""
    found = state_size("convolution", width=5, **shape)
    assert found.value == 5 * tokens
    assert found.diagnostics["window"] == tokens
    assert found.diagnostics["at_least"] >= 5 * tokens - 1


def test_a_large_window_is_bounded_by_its_tokens():
    found = state_size("convolution", most=64)
    assert found.value == 32 * 4 * (1 + 2 + 4 + 8) == found.diagnostics["at_most"]
    assert not found.diagnostics["resolved"]
    assert found.diagnostics["at_least"] < found.value


@pytest.mark.parametrize(
    "shape",
    [
        {"depth": 1},
        {"depth": 2, "causal": True, "positions": "rotary"},
        {"depth": 2, "causal": False, "positions": "none"},
        {"depth": 2, "causal": True, "block": "parallel", "positions": "sinusoidal"},
    ],
)
def test_a_transformer_carries_more_with_every_token(shape):
    """The embedding of a token less its mean, which every norm on the way takes away: width − 1 numbers."""
    found = state_size("transformer", width=8, heads=2, **shape)
    assert found.value is None
    assert "grows" in found.diagnostics["reason"]
    assert found.diagnostics["growth_per_token"] == 8 - 1
    assert found.diagnostics["sizes"] == {tokens: 7 * tokens for tokens in found.diagnostics["sizes"]}
    assert len(found.diagnostics["sizes"]) >= 2


def test_attention_without_softmax_carries_a_symmetric_matrix():
    """Σ_j x^j (x^j)ᵀ is all a layer of degree 3 knows of other tokens: width·(width + 1)/2 numbers."""
    for width in (3, 4, 8):
        found = state_size("degree-attention", depth=1, width=width)
        assert found.value == width * (width + 1) // 2
        assert found.diagnostics["growth_per_token"] == 0


class Counter(nn.Module):
    """Σ of all tokens so far: as many numbers as features."""

    def __init__(self, features: int, outputs: int = 1) -> None:
        super().__init__()
        self.read = nn.Linear(features, outputs)

    def forward(self, x):
        return self.read(torch.tanh(x.cumsum(dim=1)))


@pytest.mark.parametrize("features", [1, 3, 7])
def test_a_counter_carries_one_number_per_feature(features):
    """Widened, it would be another net; as a class, as a module, and as a function."""
    made = Counter(features)
    for net in (Counter, made, lambda x: x.cumsum(dim=1)):
        found = state_size(net, tokens=4, features=features)
        assert found.value == features
        assert found.diagnostics["net"] == "as it is"


class PointWise(nn.Module):
    def __init__(self, features: int, outputs: int, width: int = 6) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, outputs))

    def forward(self, x):
        return self.layers(x)


class ZeroStart(nn.Module):
    """A GRU whose readout starts at zero, as residual branches often do."""

    def __init__(self, features: int, outputs: int, hidden_size: int = 6) -> None:
        super().__init__()
        self.cell = nn.GRU(features, hidden_size, batch_first=True)
        self.read = nn.Linear(hidden_size, outputs)
        nn.init.zeros_(self.read.weight)

    def forward(self, x):
        return self.read(self.cell(x)[0])


def test_a_net_that_sees_no_past_carries_nothing():
    assert state_size(PointWise, tokens=4).value == 0
    assert state_size(lambda x: x + 1, tokens=4).value == 0
    assert state_size(lambda x: x * 0 + torch.ones((), dtype=x.dtype), tokens=4).value == 0


def test_a_users_recurrent_net_is_measured_whatever_its_weights_start_with():
    assert state_size(ZeroStart, tokens=4, features=2).value == 6
    assert state_size(ZeroStart, tokens=4, hidden_size=11).value == 11


def test_a_module_at_hand_is_measured_as_it_is():
    torch.manual_seed(0)
    found = state_size(lstm(3, 2, width=4), tokens=4, features=3)
    assert found.value == 8
    assert found.diagnostics["net"] == "as it is"
    attention = state_size(Transformer(3, 2, width=8, heads=2), tokens=4, features=3)
    assert attention.value is None
    assert attention.diagnostics["growth_per_token"] is None
    assert "at least 192 numbers, all that 64 tokens hold, and not resolved" in attention.diagnostics["reason"]


class Words(nn.Module):
    def __init__(self, vocab: int, outputs: int = 2, hidden_size: int = 6, tokens: int = 8) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(vocab, hidden_size), nn.Embedding(tokens, hidden_size)
        self.cell, self.read = nn.GRU(hidden_size, hidden_size, batch_first=True), nn.Linear(hidden_size, outputs)

    def forward(self, ids):
        return self.read(self.cell(self.table(ids) + self.places(torch.arange(ids.shape[1])))[0])


class OneHot(nn.Module):
    def __init__(self, vocab: int, outputs: int = 2) -> None:
        super().__init__()
        self.read = nn.Linear(vocab, outputs)

    def forward(self, ids):
        return self.read(nn.functional.one_hot(ids, self.read.in_features).to(self.read.weight.dtype).cumsum(1))


def test_a_net_of_ids_is_measured_through_its_embedding():
    """A GRU's hidden state, whatever stands before it; the table of places is not the one that reads ids."""
    found = state_size(Words, vocab=5)
    assert found.value == 6 == found.diagnostics["at_most"]


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("only on Sundays")


@pytest.mark.parametrize(
    ("net", "shape", "reason"),
    [
        (OneHot, {}, "no nn.Embedding"),
        ("mlp", {}, "reads a vector"),
        ("conv-circuit", {}, "power of two"),
        (Fails(), {"tokens": 4}, "only on Sundays"),
        (lambda x: x.cumsum(1) / 0, {"tokens": 4}, "not finite"),
    ],
)
def test_where_there_is_none_the_reason_is_given(net, shape, reason):
    found = state_size(net, **shape)
    assert found.value is None
    assert reason in found.diagnostics["reason"]


def test_a_state_beyond_the_limit_is_not_given_a_number():
    found = state_size("lstm", width=40, most=48)
    assert found.value is None
    assert "more than 40" in found.diagnostics["reason"]
    with pytest.raises(BadInput, match="at least 16"):
        state_size("lstm", most=3)
    with pytest.raises(BadInput, match="did you mean 'width'"):
        state_size("lstm", widht=3)


@pytest.mark.parametrize(
    ("net", "shape", "carried"),
    [
        ("delta-net", {"heads": 4, "depth": 1}, 4 * 2**2 + 3 * 7),
        ("delta-net", {"heads": 4, "depth": 2}, 2 * (4 * 2**2 + 3 * 7)),
        ("state-space", {"heads": 4, "depth": 1, "state": 4}, 4 * 8 + 3 * 7),
        ("state-space", {"depth": 1, "state": 4, "selective": False}, 2 * 4 * 8),
        ("mamba-2", {"heads": 4, "depth": 1, "state": 2}, 2 * 16 + 3 * 8),
        ("gated-delta-net", {"heads": 2, "depth": 1}, 2 * 3 * 6 + 3 * 8),
        ("s4d", {"depth": 1, "state": 4}, 4 * 8),
    ],
)
def test_rounding_is_never_counted(net, shape, carried):
    """A chunked recurrence amplifies it: values far above the smallest of a double, and none of them is carried."""
    found = state_size(net, width=8, **shape)
    told = found.diagnostics
    assert 0.8 * carried < told["at_least"] <= carried
    assert found.value == carried if told["resolved"] else told["at_most"] is None


@pytest.mark.parametrize("tokens", [8, 16, 32])
def test_rounding_is_not_counted_however_long_the_past(tokens):
    with seeded(0):
        past = Past(blueprint("delta-net", width=8, heads=4, depth=1), 0, 60.0)
        assert past.rank(tokens, 24, 256).rank == 4 * 2**2 + 3 * 7


def test_units_that_are_flat_leave_a_bound_from_below():
    """Of 16 units and 3 cells of 8 numbers, ReLUs that are off at this past show nothing; tanh shows all."""
    found = state_size("stack-rnn", stack=3, width=16)
    assert found.diagnostics["at_least"] < 16 + 3 * 8
    assert not found.diagnostics["resolved"]
    assert found.diagnostics["at_most"] is None
    smooth = state_size("stack-rnn", stack=3, width=16, activation="tanh")
    assert smooth.value == 16 + 3 * 8 == smooth.diagnostics["at_least"] == smooth.diagnostics["at_most"]
    assert smooth.diagnostics["resolved"]


def test_a_stack_without_end_has_no_bound_from_above():
    found = state_size("stack-rnn", width=8, cell=2, seconds=60)
    assert found.diagnostics["at_least"] == max(found.diagnostics["sizes"].values()) > 32
    assert not found.diagnostics["resolved"]
    assert found.diagnostics["at_most"] is None


class Slow(nn.Module):
    """A sum of all tokens, whose work a clock that is turned by hand counts: a second for a row of 64 tokens."""

    spent = 0.0  # by all copies together

    def forward(self, x):
        Slow.spent += x.shape[0] * x.shape[1] / 64
        return x.cumsum(dim=1).cumsum(dim=1) * x


def test_a_net_that_is_too_slow_is_given_up_with_what_is_known(monkeypatch):
    net = Slow()
    monkeypatch.setattr(Slow, "spent", 0.0)
    monkeypatch.setattr("theodolite.instruments.state_past._clock", lambda: Slow.spent)
    found = state_size(net, tokens=4, features=3, seconds=40.0)
    assert found.value is None
    assert "too slow to probe in 40 s" in found.diagnostics["reason"]
    assert 0 < Slow.spent <= 40
    assert not found.diagnostics["resolved"]
    assert (found.diagnostics["at_least"], found.diagnostics["at_most"]) == (6, None)
    hasty = state_size(net, tokens=4, features=3, seconds=10.0)
    assert hasty.value is None
    assert "at_least" not in hasty.diagnostics
    patient = state_size(net, tokens=4, features=3, seconds=1e6)
    assert patient.value == 2 * 3


def test_the_measurement_can_be_stored_and_nothing_global_is_touched():
    state = torch.random.get_rng_state()
    found = state_size("rnn", width=4)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32
    assert not found.exact
    again = Measurement.from_json(found.to_json())
    assert (again.quantity, again.value, again.diagnostics["sizes"]) == ("state size", 4, {"2": 4, "4": 4})
    assert found.diagnostics["tolerance"] > 0


@pytest.mark.parametrize(
    ("net", "shape", "carried"),
    [
        (S4D, {}, 8 * 4),
        (S4D, {"d_model": 4, "d_state": 64}, 4 * 64),
        (RetNet, {}, 2 * 4 * (4 - 1)),
        (RWKV, {}, 8 + 8 + (8 - 1)),
        (Mamba, {}, 8 * 4 + 3 * (4 - 1)),
        (Stacked, {}, 3 * 2 * 8),
        (Stacked, {"cell": "GRU", "num_layers": 2}, 2 * 8),
        (Attention, {"window": 5}, (5 - 1) * (8 - 1)),
    ],
)
def test_a_published_layer_never_grows_beyond_what_it_carries(net, shape, carried):
    """However slowly it fills: 64 numbers a channel want 64 tokens, of which 32 look like growth without end."""
    found = state_size(net, tokens=8, features=4, outputs=2, seconds=2.0, **shape)
    told = found.diagnostics
    assert not told["growth_per_token"]
    assert 0.35 * carried < told["at_least"] <= carried
    assert found.value == carried if told["resolved"] else told["at_most"] is None


@pytest.mark.parametrize("shape", [{}, {"d_model": 16, "n_head": 4, "n_layer": 2}])
def test_a_published_transformer_grows_beyond_its_weights(shape):
    """Shown on a narrow copy, whose state passes the number of its weights."""
    found = state_size(Attention, tokens=8, features=4, outputs=2, **shape)
    assert found.value is None
    assert found.diagnostics["growth_per_token"] == shape.get("d_model", 8) - 1
    numbers, held = re.search(
        r"([\d,]+) numbers after .* there are ([\d,]+) weights", found.diagnostics["reason"]
    ).groups()
    assert int(numbers.replace(",", "")) > int(held.replace(",", ""))


def test_a_window_longer_than_the_first_look_is_no_growth():
    found = state_size(Attention, tokens=8, features=4, outputs=2, window=300)
    assert found.diagnostics["window"] == 299
    assert found.value == found.diagnostics["at_most"] == 299 * (8 - 1)


class Single(nn.Module):
    """Single precision inside, whatever comes in: its rounding is no memory."""

    def forward(self, x):
        return (
            torch.fft.irfft(torch.fft.rfft(x.float(), dim=1).conj().conj(), n=x.shape[1], dim=1).cumsum(1).to(x.dtype)
        )


def test_rounding_of_single_precision_is_not_counted():
    found = state_size(Single(), tokens=8, features=3)
    assert found.value == 3
    assert "float32" in found.diagnostics["precision"]


class FewPlaces(nn.Module):
    """A table of positions that ends, as minGPT's."""

    def __init__(self, features: int, outputs: int, seats: int = 40) -> None:
        super().__init__()
        self.places, self.inner = nn.Parameter(torch.randn(seats, features)), Attention(features, outputs)

    def forward(self, x):
        return self.inner(x + self.places[: x.shape[1]])


def test_a_net_whose_positions_end_is_measured_up_to_there():
    found = state_size(FewPlaces, tokens=8, features=4)
    assert found.value is None
    assert "takes no more than" in found.diagnostics["reason"]
    assert found.diagnostics["at_least"] >= 7 * 8
