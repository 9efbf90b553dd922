"""Parameter counts against torch's own and closed formulas, and the width a budget buys against all widths."""

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.nets import nets
from theodolite.nets.load import load
from theodolite.nets.size import count_parameters, fit_budget, parse_budget

WITH_WIDTH = [name for name, entry in nets.items() if "width" in entry.arguments]


def test_a_shared_tensor_counts_once_and_a_frozen_one_not_at_all():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    assert count_parameters(nn.Sequential(first, second)) == 9 + 3 + 3
    first.bias.requires_grad_(False)
    assert count_parameters(nn.Sequential(first, second)) == 9 + 3
    assert count_parameters(nn.Flatten()) == 0


@pytest.mark.parametrize(("f", "o", "d", "w"), [(3, 2, 1, 5), (4, 1, 3, 8)])
def test_counts_are_the_closed_formulas(f, o, d, w):
    """Recurrent nets have one bias a layer where torch's have two."""
    lstm, rnn = nn.LSTM(f, w, d), nn.RNN(f, w, d)
    read = w * o + o
    shape = {"features": f, "outputs": o, "depth": d, "width": w}
    assert count_parameters(load("lstm", **shape).module) == sum(map(torch.numel, lstm.parameters())) - 4 * w * d + read
    assert count_parameters(load("rnn", **shape).module) == sum(map(torch.numel, rnn.parameters())) - w * d + read
    inside = (f + 1) * w + 2 * w + read  # embedding, last norm, readout
    block = 12 * w * w + 9 * w  # of a Transformer, without its norms
    serial = load("transformer", heads=1, positions="none", block="serial", **shape).module
    parallel = load("transformer", heads=1, positions="none", block="parallel", **shape).module
    assert count_parameters(serial) == inside + d * (block + 4 * w)
    assert count_parameters(parallel) == inside + d * (block + 2 * w)
    convolution = load("convolution", kernel=3, **shape).module
    assert count_parameters(convolution) == (f + 1) * w + d * (4 * w * w + 2 * w) + read


@each("name", WITH_WIDTH)
@each("budget", [3_000, 64_000])
def test_the_width_is_the_nearest_of_all(name, budget):
    """Against every width around it, built in memory."""
    given = {"features": 5, "outputs": 2}
    chosen = fit_budget(name, budget, **given)
    count = lambda width: count_parameters(load(name, **{**chosen, "width": width}).module)
    step = nets[name].arguments.get("heads", 1)
    assert chosen["width"] % step == 0
    distance = abs(count(chosen["width"]) - budget)
    assert distance <= budget / 2
    for k in (-2, -1, 1, 2):
        other = chosen["width"] + k * step
        if other >= 2 * step:
            assert abs(count(other) - budget) >= distance
    assert {k: v for k, v in chosen.items() if k != "width"} == given


def test_an_exact_count_is_found_again():
    for width in (4, 12, 60):
        count = count_parameters(load("transformer", width=width, positions="none").module)
        assert fit_budget("transformer", count, positions="none") == {"width": width, "positions": "none"}


def test_fitting_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    fit_budget("lstm", 9_000)
    assert torch.equal(torch.random.get_rng_state(), before)


class Mine(nn.Module):
    def __init__(self, features: int, outputs: int, d_model: int = 8) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(features, d_model), nn.Linear(d_model, outputs)
        self.scale = float(self.a.weight.detach().abs().max())  # cannot be built without memory

    def forward(self, x):
        return self.b(self.a(x)) / self.scale


def test_a_users_net_is_fitted_by_its_own_name_for_the_width():
    chosen = fit_budget(Mine, 1001, features=7, outputs=2)
    assert chosen == {"features": 7, "outputs": 2, "d_model": 100}  # 10 parameters per unit and 2 biases
    assert count_parameters(load(Mine, **chosen).module) == 1002


def test_budgets_that_cannot_be_met_are_refused_in_a_sentence():
    smallest = count_parameters(load("transformer", heads=4, width=8, positions="rotary").module)
    with pytest.raises(BadInput, match=rf"budget of 100 .*at least {smallest} parameters at width 8.*smaller depth"):
        fit_budget("transformer", 100, heads=4, positions="rotary")
    with pytest.raises(BadInput, match=r"--params needs a 'width' argument"):
        fit_budget("sum-of-products", 1000)
    with pytest.raises(BadInput, match=r"--params needs a 'width' argument"):
        fit_budget(nn.Linear(4, 1), 1000)
    for name in ("width", "hidden_size"):
        with pytest.raises(BadInput, match="not both"):
            fit_budget("lstm", 1000, **{name: 8})
    with pytest.raises(BadInput, match="do not grow"):
        fit_budget(lambda features, width=3: nn.Linear(features, 1), 1000)
    with pytest.raises(BadInput, match="depth"):
        fit_budget("lstm", 1000, depth=0)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("64k", 64_000),
        ("64K", 64_000),
        ("1.5M", 1_500_000),
        ("64000", 64_000),
        ("1.3e9", 1_300_000_000),
        ("2B", 2 * 10**9),
        ("1T", 10**12),
        ("7,000,000,000", 7 * 10**9),
        ("7_000_000", 7 * 10**6),
    ],
)
def test_budgets_are_read(text, count):
    assert parse_budget(text) == count


@each("text", ["", "k", "0", "-5", "1.5", "64 k b", "64kk", "many", "inf", "nan", "1e999", "0.0001k", "1,00", "1,000k"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(BadInput, match="is not a number of parameters"):
        parse_budget(text)
