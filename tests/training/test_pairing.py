"""What fits, what does not and in which words; whether padding can be trusted."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor, nn

from theodolite.errors import BadInput, NotApplicable
from theodolite.nets import nets
from theodolite.nets.load import blueprint, seeded
from theodolite.tasks import tasks
from theodolite.tasks.contract import make_task
from theodolite.training.pairing import pair, task_sizes

from . import user_nets

CHECK = make_task("parity-check", {"longest": 6})
RECALL = make_task("recall", {})
PARITY = make_task("parity", {"bits": 6, "relevant": 2})


class Linear(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs)


class WrongShape(Linear):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[:, :-1]


class TooManyOutputs(Linear):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).repeat_interleave(2, dim=-1)


class Raising(Linear):
    def forward(self, x: Tensor) -> Tensor:
        raise ValueError("no such thing\nsecond line")


class RaisingNothing(Linear):
    def forward(self, x: Tensor) -> Tensor:
        raise ValueError


class Complex(Linear):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * (1 + 1j)


class NotANumber(Linear):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) / 0


class TwoThings(Linear):
    def forward(self, x: Tensor):
        return "two", None


class NotBuilt(Linear):
    def __init__(self, features: int, outputs: int) -> None:
        raise KeyError("width")


class NothingToTrain(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def constant(x: Tensor) -> Tensor:
    return x[..., :2] * 0


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (
            WrongShape,
            r"'WrongShape' returned the shape \(3, 1, 2\) on 'parity-check' at length 1 \(2 tokens\), and \(3, 2, 2\)",
        ),
        (TooManyOutputs, r"returned the shape \(3, 2, 4\) .* and \(3, 2, 2\) is needed"),
        (Raising, r"'Raising' cannot run on 'parity-check' at length 1 \(2 tokens\): ValueError: no such thing$"),
        (RaisingNothing, r"cannot run .*: ValueError"),
        (NotANumber, r"'NotANumber' returned numbers that are not finite .*: check its init"),
        (Complex, r"'Complex' returns complex numbers: return real ones"),
        (TwoThings, r"'TwoThings' returned a tuple .*: return one tensor"),
        (NotBuilt, r"'NotBuilt' could not be built: KeyError: 'width'"),
        (NothingToTrain, r"'NothingToTrain' has no parameters that could be trained"),
        (constant, r"'constant' has no parameters that could be trained"),
        (Linear(3, 2), r"a Linear that is built already has one set of weights: pass its class instead"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_net_of_a_user_that_breaks_the_contract_is_told_how(net, words):
    with pytest.raises(BadInput, match=words) as told:
        pair(net, CHECK)
    assert not isinstance(told.value, NotApplicable)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("net", "features"), [(WrongShape, 6), (TooManyOutputs, 6)])
def test_vectors_are_held_to_the_contract_too(net, features):
    with pytest.raises(BadInput, match=r"returned the shape .* on 'parity', and \(3, 1\) is needed"):
        pair(net, PARITY)


def test_the_longest_evaluated_length_is_tried():
    shape = {"table": 9}
    assert pair(user_nets.Positions, CHECK, shape, longest=8).name == "Positions"
    with pytest.raises(
        BadInput, match=r"'Positions' cannot run on 'parity-check' at length 9 \(10 tokens\): IndexError"
    ):
        pair(user_nets.Positions, CHECK, shape, longest=9)
    with pytest.raises(BadInput, match=r"at length 6 \(7 tokens\)"):
        pair(user_nets.Positions, CHECK, {"table": 5})


def test_a_net_is_told_as_many_tokens_as_it_will_meet():
    assert pair(user_nets.Positions, CHECK, longest=50).build(0).places.shape == (51, 6)
    assert pair(user_nets.Positions, CHECK).build(0).places.shape == (7, 6)
    assert pair(user_nets.Positions, RECALL, longest=20).build(0).places.shape == (60, 6)


def test_naming_the_vocabulary_asks_for_ids():
    pairing = pair(user_nets.Ids, CHECK)
    ids = torch.tensor([[0, 2, 1]])
    assert pairing.reads_ids
    assert pairing.one_hot(torch.device("cpu")) is None
    assert pairing.feed(ids, None) is ids
    features = pair(user_nets.Recurrent, CHECK)
    fed = features.feed(ids, features.one_hot(torch.device("cpu")))
    assert torch.equal(fed, nn.functional.one_hot(ids, 3).float())


def test_vectors_are_read_as_they_are():
    pairing = pair("mlp", PARITY)
    numbers = torch.randn(2, 6)
    assert pairing.feed(numbers, pairing.one_hot(torch.device("cpu"))) is numbers


def fits_or_tells(net: str, task: str) -> None:
    """A built-in pair ends in no other error, and the reason names both."""
    built, reason = make_task(task, {}), None
    try:
        assert pair(net, built).registered, (net, task)
    except NotApplicable as told:
        reason = str(told)
    if reason is None:
        assert nets[net].kind == "sequence" or built.spec.kind == "vector", (net, task)
    else:
        assert f"'{net}'" in reason
        assert f"'{task}'" in reason
        assert "\n" not in reason


# A net sees of a task how many features, outputs and tokens there are: every net on a task of each kind, every task
# with a net of each kind.
@pytest.mark.parametrize("net", list(nets))
def test_every_built_in_net_fits_or_the_reason_is_given(net):
    for task in ("parity-check", "fuzzy-recall", "cycle-navigation", "parity", "linear-periodic", "sawtooth"):
        fits_or_tells(net, task)


@pytest.mark.parametrize("task", list(tasks))
def test_every_task_is_fitted_or_the_reason_is_given(task):
    for net in ("mlp", "rnn", "transformer", "convolution", "conv-circuit", "sum-of-products", "self-attention"):
        fits_or_tells(net, task)


@pytest.mark.parametrize(
    ("net", "task", "words"),
    [
        ("mlp", CHECK, "'mlp' reads a vector and 'parity-check' gives tokens"),
        ("sum-of-products", CHECK, "cannot run on 'parity-check' at length 1"),
        ("conv-circuit", RECALL, "48 is not a power of two.*the sizes are those of 'recall'"),
    ],
)
def test_the_reason_why_a_built_in_net_does_not_fit(net, task, words):
    with pytest.raises(NotApplicable, match=words):
        pair(net, task)


@pytest.mark.parametrize("net", ["lstm", "transformer", "convolution", user_nets.Positions])
def test_a_net_of_tokens_reads_a_vector_entry_by_entry_and_answers_at_the_last(net):
    pairing = pair(net, PARITY)
    module = pairing.build(3).eval()
    with seeded(3):
        alone = blueprint(net, features=1, outputs=1, tokens=6).build().eval()
    x = torch.randn(5, 6)
    assert torch.equal(module(x), alone(x.unsqueeze(-1))[:, -1])
    assert not pairing.pads


def test_one_output_where_more_are_asked_for_does_not_fit(monkeypatch):
    entry = nets["rnn"]
    monkeypatch.setattr(type(entry), "arguments", property(lambda self: {"features": 4, "width": 8}))
    with pytest.raises(NotApplicable, match="'rnn' has one output and 'parity-check' asks for 2"):
        task_sizes("rnn", CHECK)


@pytest.mark.parametrize("shape", [{"width": 6, "heads": 4}, {"width": 0}, {"depht": 2}])
def test_a_shape_that_no_task_could_fit_is_the_users_mistake(shape):
    with pytest.raises(BadInput) as told:
        pair("transformer", CHECK, shape)
    assert not isinstance(told.value, NotApplicable)


def test_a_net_of_a_user_on_the_wrong_kind_of_task_is_the_users_mistake():
    with pytest.raises(BadInput, match="'Ids' reads ids, and 'sawtooth' gives numbers that are none"):
        pair(user_nets.Ids, make_task("sawtooth", {}))


def test_a_net_of_ids_reads_bits_one_by_one():
    found = pair(user_nets.Ids, PARITY)
    module, bits = found.build(0).eval(), 1.0 - 2.0 * torch.randint(2, (5, PARITY.spec.features))
    assert not found.reads_ids
    assert torch.equal(module(bits), module.get_submodule("net")((bits > 0).long())[:, -1])


ATTENTIVE = [("transformer", {"causal": True, "positions": p}, True) for p in ("none", "sinusoidal", "rotary")] + [
    ("transformer", {"causal": False, "positions": p}, True) for p in ("none", "sinusoidal", "rotary")
]


@pytest.mark.parametrize("task", [CHECK, RECALL], ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("net", "shape", "pads"),
    [
        *ATTENTIVE,
        ("lstm", {}, True),
        ("rnn", {}, True),
        ("convolution", {"causal": True}, True),
        ("convolution", {"causal": False}, True),
        ("recurrent-circuit", {}, True),
        ("self-attention", {}, False),
        ("degree-attention", {}, False),
        (user_nets.Recurrent, {}, True),
        (user_nets.Ids, {}, True),
        (user_nets.Mean, {}, False),
        (user_nets.MeanOfPresent, {}, True),
        (user_nets.NoNumberAtPadding, {}, True),
        (user_nets.MeanOfAll, {}, False),
        (user_nets.SilentMean, {}, False),
    ],
    ids=str,
)
def test_padding_is_trusted_only_where_it_changes_nothing(net, shape, pads, task):
    assert pair(net, task, shape).pads is pads


def test_vectors_are_not_padded():
    assert not pair("mlp", PARITY).pads


def test_the_verdict_on_padding_holds_for_other_weights():
    """Brute force: stirred weights, many lengths, garbage after the end."""
    for net in (user_nets.MeanOfPresent, "transformer", "convolution"):
        pairing = pair(net, RECALL, {} if callable(net) else {"causal": False})
        module = pairing.build(11).eval()
        for parameter in module.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
        one_hot = pairing.one_hot(torch.device("cpu"))
        ids = torch.randint(128, (4, 20), generator=torch.Generator().manual_seed(2))
        for tokens in (1, 3, 7, 19):
            present = (torch.arange(20) < tokens).expand(4, -1)
            with torch.no_grad():
                padded = module(pairing.feed(ids, one_hot), present)[:, :tokens]
                alone = module(pairing.feed(ids[:, :tokens], one_hot))
            torch.testing.assert_close(padded, alone, rtol=1e-4, atol=1e-4)


def test_pairing_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    pair(user_nets.Recurrent, CHECK)
    pair("lstm", CHECK)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_seed_means_the_same_weights_and_another_seed_means_others():
    pairing = pair("lstm", CHECK)
    first, again, other = (pairing.build(s).state_dict() for s in (4, 4, 5))
    assert all(torch.equal(first[n], again[n]) for n in first)
    assert not all(torch.equal(first[n], other[n]) for n in first)


def test_the_shape_of_a_pairing_is_what_the_user_can_set():
    shape = pair("transformer", CHECK, {"width": 16, "heads": 2}).shape
    assert shape["width"] == 16
    assert shape["heads"] == 2
    assert not {"features", "outputs", "tokens", "vocab"} & set(shape)
    assert re.fullmatch(r"[a-z_]+", "".join(shape))
