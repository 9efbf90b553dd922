"""The gradient signal against enumeration of every target with plain autograd."""

from __future__ import annotations

import itertools
import json
import math
import re

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite.claims.expressivity.signal_along_training import signal_along
from theodolite.errors import BadInput, NotEnoughMemory
from theodolite.instruments.gradient import example_gradients as examples
from theodolite.instruments.gradient import signal as gradient
from theodolite.instruments.gradient.example_gradients import example_gradients, gradient_power
from theodolite.instruments.gradient.signal import builder, signal
from theodolite.instruments.gradient.subclass import read_subclass
from theodolite.instruments.gradient.walsh import cube
from theodolite.tasks.parity import Parity

CPU = torch.device("cpu")
LOSSES = {
    "square": lambda p, h: ((p - h) ** 2 / 2).mean(),
    "hinge": lambda p, h: torch.clamp(1 - p * h, min=0).mean(),
    "logistic": lambda p, h: torch.log1p(torch.exp(-p * h)).mean(),
}


def every_gradient(module: nn.Module, bits: int, loss: str) -> dict[tuple[int, ...], torch.Tensor]:
    """∇F_S by subset S, in float64, each target by itself."""
    module = module.double()
    inputs = torch.tensor(list(itertools.product([1.0, -1.0], repeat=bits)), dtype=torch.float64)
    found = {}
    for size in range(bits + 1):
        for subset in itertools.combinations(range(bits), size):
            module.zero_grad()
            LOSSES[loss](module(inputs).reshape(-1), inputs[:, list(subset)].prod(dim=1)).backward()
            parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in module.parameters()]
            found[subset] = torch.cat([part.flatten() for part in parts]).clone()
    return found


def variance(rows: list[torch.Tensor]) -> float:
    stacked = torch.stack(rows)
    return float(((stacked - stacked.mean(0)) ** 2).sum(1).mean())


class Loud(nn.Module):
    """Outputs beyond ±1, so that the hinge has slopes of both kinds."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 7), nn.Tanh(), nn.Linear(7, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 4 * self.layers(x)


NETS = [
    ("mlp", {"depth": 2, "width": 6}),
    ("polynomial-mlp", {}),
    ("rnn", {"width": 4}),
    ("transformer", {"width": 4, "depth": 1, "heads": 2}),
    (Loud, {}),
]


@each("loss", list(LOSSES))
@each(("net", "shape"), NETS)
def test_the_transform_equals_enumeration_for_every_subclass(net, shape, loss):
    bits = 5
    _, build = builder(net, Parity(bits, 1), shape)
    truth = every_gradient(build(3), bits, loss)
    found = signal(net, bits=bits, loss=loss, seed=3, dtype="float64", **shape)
    assert found.variance == pytest.approx(variance(list(truth.values())), rel=1e-9)
    assert found.identity_error < 1e-12
    assert found.exact
    assert found.applies
    assert found.members == 32
    # Less the part that all targets share, E[p g] or its like, the spectrum is the mean of squares over each degree.
    shared = torch.stack(list(truth.values())).mean(0) * 32
    inputs = cube(bits, torch.float64, CPU)
    at_ones = example_gradients(build(3).double(), inputs[:1], fast=False)
    slope = gradient.loss_slopes(at_ones.outputs, loss)
    one = torch.cat([block[:, 0] for block in at_ones.blocks()]) * slope
    shared = (shared - one) / 32  # Σ_S E[χ_S s g] = s(1…1) g(1…1)
    for degree, value in enumerate(found.by_degree):
        squares = [float(((g - shared) ** 2).sum()) for s, g in truth.items() if len(s) == degree]
        assert value == pytest.approx(sum(squares) / len(squares), rel=1e-6, abs=1e-18)
    for name, members in (
        ("degree=2", [s for s in truth if len(s) == 2]),
        ("prefixes", [tuple(range(k)) for k in range(1, bits + 1)]),
        ("0,1|2,3,4|1", [(0, 1), (2, 3, 4), (1,)]),
    ):
        part = signal(net, bits=bits, loss=loss, seed=3, dtype="float64", subclass=name, **shape)
        assert part.members == len(members)
        assert part.variance == pytest.approx(variance([truth[s] for s in members]), rel=1e-9, abs=1e-20)
        assert part.bound == pytest.approx(found.bound * 32 / len(members))
        assert part.ratio <= 1


def test_the_hinge_of_a_loud_net_is_not_the_square_loss():
    square, hinge = (signal(Loud, bits=5, loss=loss, dtype="float64").variance for loss in ("square", "hinge"))
    assert 0 < hinge < 0.9 * square
    assert signal(Loud, bits=5, loss="margin", dtype="float64").variance == hinge


def test_the_logistic_loss_has_a_quarter_of_the_variance_of_the_square_loss():
    square, logistic = (signal("mlp", bits=6, loss=loss, dtype="float64").variance for loss in ("square", "logistic"))
    assert logistic == pytest.approx(square / 4)


def test_gradients_of_single_examples_are_those_of_autograd_on_both_ways():
    module = nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3, bias=False), nn.ReLU(), nn.Linear(3, 1)).double()
    inputs = cube(4, torch.float64, CPU)
    truth = []
    for x in inputs:
        each = torch.autograd.grad(module(x[None]).sum(), list(module.parameters()))
        truth.append(torch.cat([g.flatten() for g in each]))
    expected = torch.stack(truth, dim=1)
    fast, general = (example_gradients(module, inputs, fast=fast) for fast in (True, False))
    assert (fast.method, general.method) == ("one backward pass", "batched")
    assert [layer.raw for layer in fast.layers] == [True, False, False]
    assert torch.allclose(torch.cat(list(general.blocks())), expected)
    rows = torch.cat(list(fast.blocks()))
    order = lambda m: m[torch.argsort(m[:, 1] * 1e3 + m[:, 5])]
    assert torch.allclose(order(rows), order(expected))
    for each in (fast, general):
        assert each.parameters == len(expected)
        assert torch.allclose(each.power, expected.square().sum(0))
    assert gradient_power(module, inputs) == pytest.approx(float(expected.square().sum(0).mean()))


def test_parameters_taken_in_several_passes_give_the_same(monkeypatch):
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    inputs = cube(4, torch.float64, CPU)
    whole = torch.cat(list(example_gradients(module, inputs, fast=False).blocks()))
    monkeypatch.setattr(examples, "_fits", lambda *_: 7)
    passes = example_gradients(module, inputs, fast=False)
    blocks = list(passes.blocks())
    assert len(blocks) == math.ceil(31 / 7)
    assert torch.equal(torch.cat(blocks), whole)


class Shared(nn.Module):
    """A layer that sees an example twice: not what one backward pass can tell apart."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.read = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.read(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


class InPlace(nn.Module):
    """Overwrites what the layer gave out, which is then not what came back to it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.read = nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.read(self.layer(x).sigmoid_() * 3.0)


class NotBatched(nn.Module):
    """A branch on a tensor, which `torch.func.vmap` refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) == 1 and x[0, 0].item() > 0:
            return (x * self.scale).sum(dim=1, keepdim=True)
        return (x * self.scale).sum(dim=1, keepdim=True)


@pytest.mark.parametrize("kind", [Shared, InPlace, NotBatched])
def test_nets_that_break_a_shortcut_are_measured_the_general_way(kind):
    module = kind()
    truth = every_gradient(kind() if kind is NotBatched else _copy(module), 4, "square")
    found = signal(module, bits=4, dtype="float64")
    assert found.variance == pytest.approx(variance(list(truth.values())), rel=1e-9)
    assert ("one by one" in found.method) == (kind is NotBatched)


def _copy(module: nn.Module) -> nn.Module:
    import copy

    return copy.deepcopy(module)


def test_a_module_is_measured_at_its_own_weights_and_left_alone():
    module = nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 1))
    before = [p.clone() for p in module.parameters()]
    first = signal(module, bits=5, seed=1).variance
    with torch.no_grad():
        module[2].weight *= 2  # pyright: ignore[reportOperatorIssue]
    assert signal(module, bits=5, seed=1).variance != first
    with torch.no_grad():
        module[2].weight /= 2
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert all(p.grad is None and p.dtype == torch.float32 for p in module.parameters())


def test_a_frozen_parameter_counts_for_nothing():
    module = nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 1))
    module[0].weight.requires_grad_(False)
    found = signal(module, bits=5, dtype="float64")
    assert found.parameters == 3 + 3 + 1
    truth = every_gradient(_copy(module), 5, "square")
    assert found.variance == pytest.approx(variance([g[15:] for g in truth.values()]), rel=1e-9)


def test_draws_are_averaged_and_give_an_interval():
    single = [signal("mlp", bits=6, seed=seed, width=8).variance for seed in (5, 6, 7)]
    found = signal("mlp", bits=6, seed=5, width=8, draws=3)
    assert found.variance == pytest.approx(sum(single) / 3)
    assert found.interval[0] < found.variance < found.interval[1]
    assert len(set(single)) == 3


def test_the_document_is_plain_json():
    row = json.loads(json.dumps(signal("mlp", bits=4).to_json(), allow_nan=False))
    assert {"variance", "bound", "ratio", "exact", "by_degree", "identity_error"} <= set(row)
    assert len(row["by_degree"]) == 5
    assert sum(row["share_by_degree"]) == pytest.approx(1)


class Infinite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fine, self.broken = nn.Linear(4, 1), nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fine(x) + torch.sqrt(self.broken.abs())


@each(
    ("net", "options", "message"),
    [
        (Infinite(), {"bits": 4}, "'broken' is not finite"),
        (nn.Sequential(nn.Linear(4, 2)), {"bits": 4}, "one number an input"),
        (nn.ReLU(), {"bits": 4}, "no parameters"),
        (nn.Linear(3, 1), {"bits": 4}, "reads 3 numbers and the inputs have 4 bits: use 3 bits"),
        ("mlp", {"bits": 4, "loss": "huber"}, "huber"),
        ("mlp", {"bits": 4, "dtype": "float16"}, "float16"),
        ("mlp", {"bits": 4, "subclass": "degree=7"}, "degree '7'"),
        ("mlp", {"bits": 4, "subclass": "odd"}, "'odd' is unknown"),
        ("mlp", {"bits": 4, "subclass": "0,9"}, "bit 9"),
        ("mlp", {"bits": 4, "subclass": "0,1|1,0"}, "twice"),
        ("mlp", {"bits": 4, "family": "primes"}, "primes"),
        ("mlp", {"bits": 4, "family": "nowhere.py:Name"}, "nowhere.py"),
        ("mlp", {"bits": 5, "family": "graph"}, "even number of bits"),
        ("mlp", {"bits": 4, "family": "linear-periodic", "loss": "hinge"}, "±1"),
        ("mlp", {"bits": 4, "family": "random", "subclass": "degree=2"}, "parities"),
        ("mlp", {"bits": 4, "wdith": 3}, "wdith"),
        ("mlp", {"bits": 0}, "bits"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(net, options, message):
    with pytest.raises(BadInput, match=message):
        signal(net, **options)


def test_bits_beyond_memory_are_refused_with_the_most_that_fit():
    with pytest.raises(NotEnoughMemory, match=r"40 bits .* GiB.*use at most \d\d bits"):
        signal("mlp", bits=40)
    with pytest.raises(NotEnoughMemory, match="use at most"):
        signal("mlp", bits=10_000)


def test_a_net_too_large_for_memory_is_refused_with_the_most_bits_that_fit(monkeypatch):
    monkeypatch.setattr(gradient, "free_bytes", lambda _: 8 << 20)
    with pytest.raises(NotEnoughMemory, match="use at most") as refused:
        signal("mlp", bits=14, depth=1, width=100)
    most = int(re.search(r"at most (\d+) bits", str(refused.value))[1])
    assert signal("mlp", bits=most, depth=1, width=100).bits == most  # the advice works
    assert most >= 7


def test_training_raises_the_signal_of_the_parity_it_is_trained_on():
    found = signal_along("mlp", 8, 2, 200, checkpoints=4, depth=1, width=60, learning_rate=0.1)
    start, end = found.checkpoints[0], found.checkpoints[-1]
    assert [c.step for c in found.checkpoints] == [0, 50, 100, 150, 200]
    assert end.accuracy > 0.95 > start.accuracy
    assert max(c.target for c in found.checkpoints) > 3 * start.target
    assert all(c.ratio <= 1 and c.identity_error < 1e-5 for c in found.checkpoints)
    assert start.variance == pytest.approx(signal("mlp", bits=8, loss="hinge", depth=1, width=60).variance)
    assert json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(("activation", "seen"), [(nn.ReLU(), 0), (nn.Tanh(), 1)], ids=["relu", "tanh"])
def test_a_bias_is_one_more_bit_so_that_odd_and_even_parities_pair(activation, seen):
    """Without biases ReLU has signal at even degrees (and 1) only, tanh at odd ones; a bias is the weight of a bit that
    is always +1, so a parity of the other kind is learnt as that of one bit more."""
    bits, hidden = 6, 12
    with_bias, wider = nn.Linear(bits, hidden).double(), nn.Linear(bits + 1, hidden, bias=False).double()
    read = nn.Linear(hidden, 1, bias=False).double()
    with torch.no_grad():
        wider.weight.copy_(torch.cat([with_bias.weight, with_bias.bias[:, None]], dim=1))
    power = {}
    for name, layer, count in (("bias", with_bias, bits), ("bit", wider, bits + 1)):
        gradients = example_gradients(nn.Sequential(layer, activation, read), cube(count, torch.float64, CPU))
        power[name] = gradient.parity_spectrum(gradients, "square", read_subclass("all", count)).power
    checked = 0
    for number in range(2**bits):
        degree = bin(number).count("1")
        if degree >= 2:
            paired = number if degree % 2 == seen else number | 1 << bits
            assert power["bias"][number] == pytest.approx(float(power["bit"][paired]), rel=1e-9)
            assert power["bit"][number if paired != number else number | 1 << bits] < 1e-20
            checked += 1
    assert checked == 2**bits - bits - 1


# Classes other than parity


def walsh_class(inputs: torch.Tensor) -> torch.Tensor:
    """All parities of at most two bits, as a user would write them."""
    pairs = itertools.combinations(range(inputs.shape[1]), 2)
    return torch.stack([inputs[:, a] * inputs[:, b] for a, b in pairs])


def test_a_class_of_ones_own_gives_what_the_subclass_gives():
    own = signal("mlp", family=walsh_class, bits=6, dtype="float64")
    builtin = signal("mlp", subclass="degree=2", bits=6, dtype="float64")
    assert own.applies
    assert own.exact
    assert (own.members, own.bound) == (15, pytest.approx(builtin.bound))
    assert own.variance == pytest.approx(builtin.variance)


def test_a_class_in_a_file_is_read_and_may_draw(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\ndef signs(inputs, generator):\n"
        "    return 2.0 * torch.randint(2, (6, len(inputs)), generator=generator) - 1\n"
    )
    found = signal("mlp", family=f"{file}:signs", bits=6, loss="hinge")
    assert (found.family, found.members, found.applies) == ("mine.py:signs", 6, False)
    assert 0 < found.ratio <= 1
    with pytest.raises(BadInput, match="sings"):
        signal("mlp", family=f"{file}:sings", bits=6)
    (tmp_path / "flat.py").write_text("def flat(inputs):\n    return inputs[:, 0]\n")
    with pytest.raises(BadInput, match="members"):
        signal("mlp", family=f"{tmp_path / 'flat.py'}:flat", bits=6)


@pytest.mark.parametrize(
    ("size", "words"), [(1e200, "up to 1e\\+200, too large"), (1e30, "too large"), (math.inf, "not finite")]
)
def test_targets_that_cannot_be_squared_are_refused(size, words):
    def huge(inputs):
        return torch.full((3, len(inputs)), size, dtype=torch.float64)

    with pytest.raises(BadInput, match=f"'huge' has targets .*{words}"):
        signal("mlp", family=huge, bits=4)


@pytest.mark.parametrize(("family", "margin"), [("random", 0.1), ("graph", 0.25)])
def test_the_mean_over_drawn_functions_tends_to_the_closed_form(family, margin):
    found = signal("mlp", family=family, bits=8, members=1500, width=8, loss="hinge")
    assert found.variance == pytest.approx(found.details["whole_family"], rel=margin)
    assert found.ratio <= 1
    assert not found.applies
    assert found.details["largest_eigenvalue"] > 1


def test_scrambled_parities_are_orthogonal_and_all_of_them_have_the_variance_of_all_parities():
    scrambled = signal("mlp", family="scrambled", bits=6, members=64, dtype="float64")
    parities = signal("mlp", bits=6, dtype="float64")
    assert scrambled.applies
    # Both are orthonormal bases: the same total power, and the mean differs only in which input it reads.
    total = lambda found: found.variance + found.mean_norm**2
    assert total(scrambled) == pytest.approx(total(parities))
    some = signal("mlp", family="scrambled", bits=6, members=20)
    assert some.members == 20
    assert some.ratio <= 1
    with pytest.raises(BadInput, match="at most 64"):
        signal("mlp", family="scrambled", bits=6, members=65)
