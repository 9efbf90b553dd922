"""Equivariance errors against closed forms, and every symmetry and asymmetry a built-in net declares, measured."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.symmetry import BROKEN, GROUPS, HOLDS, equivariance, predicted_symmetry, symmetries
from theodolite.measurement import Measurement
from theodolite.measures import measure
from theodolite.nets import nets
from theodolite.nets.contract import Symmetrical
from theodolite.nets.load import load

BOTH = (False, True)
VARIANTS: dict[str, list[dict]] = {
    "transformer": [{"causal": c, "positions": p} for c in BOTH for p in ("none", "sinusoidal", "rotary")],
    **{
        f"{kind}-transformer": [{}, {"causal": False, "positions": "none"}]
        for kind in ("thresholded", "sparsemax", "entmax")
    },
    **{f"{kind}-transformer": [{"causal": c} for c in BOTH] for kind in ("alibi", "random-offset")},
    "universal-transformer": [{"causal": c, "positions": p} for c in BOTH for p in ("none", "random-offset")],
    "linear-transformer": [{"causal": c, "positions": p} for c in BOTH for p in ("none", "sinusoidal")],
    "delta-net": [{}, {"products": 2, "gated": False}],
    "state-space": [{}, {"selective": False}],
    "equilibrium": [{"causal": c, "positions": p} for c in BOTH for p in ("none", "rotary")],
    "convolution": [
        {},
        {"causal": False},
        {"causal": False, "depth": 1},
        {"causal": False, "padding": "circular"},
        {"causal": False, "padding": "circular", "kernel": 3, "tokens": 5},
        {"kernel": 1},
        {"kernel": 2, "dilation": 3},
    ],
    "conv-circuit": [{"tokens": 8}, {"tokens": 2}],
    "lstm": [{}, {"depth": 2}],
    "rnn": [{}, {"depth": 3}],
    "gru": [{}, {"depth": 2}],
    "stack-rnn": [{}, {"stack": 2, "activation": "tanh"}],
    "tape-rnn": [{}, {"tape": 9}, {"jump": 3}, {"tape": 5, "jump": 2}],
    "mixer": [{"causal": c} for c in BOTH],
    "graph-network": [
        *({"causal": c, "graph": g} for c in BOTH for g in ("complete", "path")),
        *({"causal": c, "graph": g, "aggregation": "sum"} for c in BOTH for g in ("complete", "path")),
        *({"depth": 1, "aggregation": "sum", "graph": g} for g in ("complete", "path")),
        {"graph": "ring"},
        {"graph": "ring", "aggregation": "sum", "depth": 1},
    ],
    "mlp": [{}, {"outputs": 8}],
    "degree-attention": [{"degree": d} for d in (2, 3, 4)],
}
CASES = [(name, variant) for name in nets for variant in VARIANTS.get(name, [{}])]


@each(("name", "variant"), CASES)
def test_every_declared_symmetry_is_measured_zero_and_every_declared_asymmetry_is_not(name, variant):
    declared = load(name, **variant).module.symmetries()  # pyright: ignore[reportCallIssue]
    assert {"translation", "permutation"} <= set(declared) <= set(GROUPS)
    for group, symmetry in declared.items():
        found = equivariance(name, group, **variant)
        assert found.value <= 1e-9 if symmetry.holds else found.value > 1e-3, (group, found.value)
        assert found.diagnostics["agrees"] is True
        assert found.diagnostics["predicted"] is symmetry.holds
        assert found.diagnostics["reason"] == symmetry.reason


def test_every_built_in_net_declares_and_both_answers_occur_for_every_group():
    answers = {group: set() for group in GROUPS}
    for name, variant in CASES:
        module = load(name, **variant).module
        assert isinstance(module, Symmetrical), name
        for group, symmetry in module.symmetries().items():
            answers[group].add(symmetry.holds)
    assert all(answer == {True, False} for answer in answers.values())


def test_a_group_that_is_not_declared_cannot_act():
    for name, variant in CASES:
        declared = load(name, **variant).module.symmetries()  # pyright: ignore[reportCallIssue]
        if "time-shift" not in declared:
            with pytest.raises(NotApplicable, match=name):
                equivariance(name, "time-shift", **variant)


class Clock(nn.Module):
    """Says the time and looks at nothing: t at token t."""

    def forward(self, x):
        return torch.arange(x.shape[1], dtype=x.dtype).view(1, -1, 1).expand(x.shape[0], -1, 1)


def test_the_error_is_the_closed_one_for_a_clock():
    """‖f(g x) − g f(x)‖ over the standard deviation of 0 … T − 1, which is √((T² − 1)/12)."""
    tokens = 10
    spread = math.sqrt((tokens**2 - 1) / 12)
    shifted = equivariance(Clock(), "time-shift", tokens=tokens)
    assert shifted.diagnostics["by_element"] == pytest.approx({f"by {s}": s / spread for s in (1, 2, tokens)})
    permuted = equivariance(Clock(), "permutation", tokens=tokens).diagnostics["by_element"]
    assert permuted["reversal"] == pytest.approx(2)
    assert permuted["swap of the first two"] == pytest.approx(math.sqrt(2 / tokens) / spread)
    rolled = equivariance(Clock(), "translation", tokens=tokens)
    for steps in (1, 2, 5, 9):
        apart = math.sqrt(((tokens - steps) * steps**2 + steps * (tokens - steps) ** 2) / tokens)
        assert rolled.diagnostics["by_element"][f"by {steps}"] == pytest.approx(apart / spread)
    assert rolled.value == max(rolled.diagnostics["by_element"].values())


class Set(nn.Module):
    """Every entry next to the mean of all: equivariant under permutations; `place` adds a weight to each place."""

    def __init__(self, features: int, tokens: int = 6, place: float = 0.0) -> None:
        super().__init__()
        self.own, self.all = nn.Linear(features, 3), nn.Linear(features, 3)
        self.place = nn.Parameter(place * torch.arange(tokens).double().view(1, -1, 1))

    def forward(self, x):
        return torch.tanh(self.own(x) + self.all(x.mean(dim=1, keepdim=True))) * (1 + self.place)


def test_a_users_net_is_measured_without_a_prediction():
    """Its weights get a little noise, so that a place whose weight starts at 0 is not taken for none."""
    found = equivariance(Set, "permutation", features=4, tokens=6)
    assert found.diagnostics["holds"] is False
    as_it_is = equivariance(Set(4).double(), "permutation", features=4, tokens=6)
    assert as_it_is.value < 1e-14
    assert as_it_is.diagnostics["draws"] == 1
    assert equivariance(Set(4, place=0.1).double(), "permutation", features=4, tokens=6).value > 1e-2
    for one in (found, as_it_is):
        assert one.diagnostics["predicted"] is None
        assert one.diagnostics["agrees"] is None
    assert predicted_symmetry(Set(4), "permutation") is None


def test_a_net_from_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch\nfrom torch import nn\nclass Sum(nn.Module):\n"
        "    def __init__(self, features, tokens):\n        super().__init__()\n"
        "        self.map = nn.Linear(features, 2)\n"
        "    def forward(self, x):\n        return self.map(x).relu().sum(1)\n"
    )
    assert equivariance(f"{path}:Sum", "permutation").diagnostics["holds"] is True
    assert "pools" in str(symmetries(f"{path}:Sum")["time-shift"])


def test_an_output_of_a_vector_moves_only_where_it_has_as_many_entries():
    assert equivariance(lambda x: torch.softmax(x, -1), "permutation", features=5).value < 1e-14
    assert equivariance(lambda x: x.sum(-1), "permutation", features=5).value < 1e-14
    assert equivariance(lambda x: x[:, :2], "permutation", features=5).value > 0.5
    assert equivariance(lambda x: x.roll(1, -1), "translation", features=5).value == 0
    assert equivariance(lambda x: x.roll(1, -1), "permutation", features=5).value > 0.5


class Words(nn.Module):
    def __init__(self, vocab: int, tokens: int, pool: bool = False) -> None:
        super().__init__()
        self.table, self.pool = nn.Embedding(vocab, 4), pool

    def forward(self, ids):
        return self.table(ids).mean(1) if self.pool else self.table(ids).cumsum(1)


def test_nets_that_read_ids():
    assert equivariance(Words, "permutation", vocab=7, tokens=6, pool=True).diagnostics["holds"] is True
    assert equivariance(Words, "permutation", vocab=7, tokens=6).diagnostics["holds"] is False
    assert equivariance(Words, "time-shift", vocab=7, tokens=6).diagnostics["holds"] is True, "by zero vectors"


class InSingle(nn.Module):
    """A cumulative sum in single precision, which weights and inputs of double precision do not change."""

    def __init__(self, features: int, tokens: int) -> None:
        super().__init__()
        self.weight = torch.randn(features, 3, generator=torch.Generator().manual_seed(0))

    def forward(self, x):
        return x.cumsum(1) @ self.weight


class InSingleInside(InSingle):
    def forward(self, x):
        return (x.float().cumsum(1) @ self.weight).to(x.dtype)


@pytest.mark.parametrize(("net", "note"), [(InSingle, "does not run in float64"), (InSingleInside, "inside")])
def test_rounding_of_single_precision_breaks_no_symmetry(net, note):
    found = equivariance(net, "time-shift", tokens=6, features=4)
    assert found.diagnostics["holds"] is True
    assert note in found.diagnostics["precision"]
    assert equivariance(net, "permutation", tokens=6, features=4).diagnostics["holds"] is False


class Recurrent(nn.Module):
    def __init__(self, features: int, tokens: int) -> None:
        super().__init__()
        self.cell, self.read = nn.GRU(features, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        return self.read(self.cell(x)[0])


def test_biases_move_a_recurrence_before_the_signal_begins_and_are_set_to_zero_for_the_time_shift():
    found = equivariance(Recurrent, "time-shift", features=3, tokens=6)
    assert found.value < 1e-14
    assert found.diagnostics["as_built"] > 1e-2
    assert equivariance("lstm", "permutation").diagnostics["as_built"] is None


def test_a_part_of_a_group_can_hold():
    """A circuit over 8 tokens commutes with the exchange of its halves, and with no other shift."""
    found = equivariance("conv-circuit", "translation", tokens=8).diagnostics["by_element"]
    assert found["by 4"] < 1e-14
    assert min(found["by 1"], found["by 2"], found["by 7"]) > 1e-2


class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("only on Sundays")


@each(
    ("net", "options", "error", "message"),
    [
        ("mlp", {"group": "time-shift"}, NotApplicable, "reads a vector"),
        ("polynomial-mixer", {"group": "time-shift"}, NotApplicable, "takes 8 tokens and not 9"),
        ("lstm", {"tokens": 1}, NotApplicable, "give it 2 or more"),
        ("lstm", {"group": "rotation"}, BadInput, "no group is called 'rotation'"),
        ("lstm", {"group": "permutations"}, BadInput, "did you mean 'permutation'"),
        ("lstm", {"draws": 0}, BadInput, "0 draws"),
        ("lstm", {"widht": 3}, BadInput, "did you mean 'width'"),
        ("lstm", {"device": "tpu"}, BadInput, "tpu"),
        (Noisy(), {"tokens": 4}, BadInput, "gives one input different outputs"),
        (Fails(), {"tokens": 4}, BadInput, "only on Sundays"),
        (lambda x: "x", {"tokens": 4}, BadInput, "str"),
        (lambda x: x / 0, {"tokens": 4}, BadInput, "NaN or infinity"),
        (lambda x: x[:, :2], {"tokens": 4}, BadInput, "must return"),
    ],
)
def test_what_cannot_be_measured_is_said_in_a_sentence(net, options, error, message):
    with pytest.raises(error, match=message):
        equivariance(net, **{"group": "permutation", **options})


def test_a_measurement_is_stored_and_repeated_and_nothing_global_is_touched():
    state = torch.random.get_rng_state()
    found = equivariance("transformer", "permutation", causal=False, positions="none", seed=3)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert found.value == equivariance("transformer", "permutation", causal=False, positions="none", seed=3).value
    assert found.value != equivariance("transformer", "permutation", causal=False, positions="none", seed=4).value
    again = Measurement.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False)))
    assert again.diagnostics["by_element"] == found.diagnostics["by_element"]
    assert HOLDS < BROKEN
    assert found.diagnostics["thresholds"] == {"holds": HOLDS, "broken": BROKEN}


def test_the_measure_gives_all_groups_or_the_one_asked_for():
    config = {"net": "mlp", "shape": {"features": 4}}
    row = measure("symmetry", config, 0, "cpu")
    assert list(row) == list(GROUPS)
    assert row["permutation"]["diagnostics"]["holds"] is False
    assert "reads a vector" in row["time-shift"]["not_applicable"]
    one = measure("symmetry", {**config, "group": "translation", "draws": 2}, 0, "cpu")
    assert one["diagnostics"]["draws"] == 2
    json.dumps([row, one], allow_nan=False)
