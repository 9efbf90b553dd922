"""The Universal Transformer against adaptive computation time token by token, and a cost against a loss that has it."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.load import load
from theodolite.nets.parts.auxiliary import with_cost
from theodolite.nets.parts.positions import sinusoidal
from theodolite.nets.transformer import hidden_keys
from theodolite.nets.universal_transformer import UniversalTransformer

EPSILON = 0.01


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def build(seed: int = 0, **shape) -> UniversalTransformer:
    """A net whose halting unit is turned up, so that tokens halt at different steps."""
    asked = {"width": 8, "depth": 5, "start": "published", **shape}
    net = load("universal-transformer", seed=seed, **asked).module.double()
    assert isinstance(net, UniversalTransformer)
    if net.halt is not None:
        with torch.no_grad():
            net.halt.weight.mul_(3)
            net.halt.bias.sub_(2)
    return net


def by_hand(net: UniversalTransformer, x: Tensor, present: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Answers, steps and remainders, token by token as Graves (2016), Equations 6 to 13, has them."""
    batch, tokens = x.shape[:2]
    state, bias = net.embed(x), hidden_keys(net.embed(x), present, net.causal)
    at, when = sinusoidal(tokens, net.width, x), sinusoidal(net.depth + 1, net.width, x)
    wishes: list[Tensor] = []
    states: list[Tensor] = []
    halted = torch.zeros(batch, tokens, dtype=torch.bool)
    for step in range(1, net.depth + 1):
        placed = state + at + when[step]
        wishes.append(torch.sigmoid(net.halt(placed))[..., 0])
        new = net.block(placed, bias)
        states.append(new)
        state = torch.where(halted[..., None], state, new)
        halted = sum(w.detach() for w in wishes) >= 1 - EPSILON
    answers, steps, left = torch.empty_like(state), torch.empty(batch, tokens), torch.empty(batch, tokens).double()
    for b in range(batch):
        for t in range(tokens):
            sums = [sum(w[b, t].item() for w in wishes[: n + 1]) for n in range(net.depth)]
            last = next((n for n, total in enumerate(sums) if total >= 1 - EPSILON), net.depth - 1)
            remainder = 1 - sum((w[b, t] for w in wishes[:last]), torch.zeros(()).double())
            weights = [*(w[b, t] for w in wishes[:last]), remainder]
            answers[b, t] = sum((w * s[b, t] for w, s in zip(weights, states, strict=False)), 0 * states[0][b, t])
            steps[b, t], left[b, t] = last + 1, remainder
    return answers, steps, left


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_answers_and_steps_are_those_of_adaptive_computation_time(seed, causal):
    net, x = build(seed, causal=causal), normal(4, 6, 4, seed=seed)
    present = None if causal else torch.arange(6) < torch.tensor([[6], [3], [1], [5]])
    answers, steps, _ = by_hand(net, x, present)
    assert len(steps.unique()) > 2, "tokens halt at different steps"
    assert torch.equal(net.steps_taken(x, present), steps.double())
    torch.testing.assert_close(net(x, present), net.read(answers), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("present", [None, [[6], [3], [1], [5]]])
def test_training_descends_the_loss_plus_the_ponder_cost(present):
    net, x = build(2, ponder=0.7), normal(4, 6, 4, seed=2)
    real = None if present is None else torch.arange(6) < torch.tensor(present)
    answers, steps, left = by_hand(net, x, real)
    asked = steps + left
    explicit = net.read(answers).square().sum() + 0.7 * (asked.mean() if real is None else asked[real].mean())
    truth = torch.autograd.grad(explicit, list(net.parameters()))
    net.train()
    net.places.offset.most = 0
    found = torch.autograd.grad(net(x, real).square().sum(), list(net.parameters()))
    plain = torch.autograd.grad(net.eval()(x, real).square().sum(), list(net.parameters()))
    for name, one, other, third in zip(dict(net.named_parameters()), found, truth, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)
        if name.startswith("halt"):
            assert not torch.allclose(one, third), "where nothing is trained, nothing is paid"


def test_a_row_of_nothing_but_padding_pays_nothing():
    net, x = build(2).train(), normal(2, 3, 4)
    net(x, torch.zeros(2, 3, dtype=torch.bool)).sum().mul(0).backward()
    assert all(p.grad is None or (p.grad == 0).all() for p in net.parameters())


@pytest.mark.parametrize(("ponder", "steps"), [(0.0, 5), (1.0, 1)])
def test_where_nothing_else_counts_the_cost_makes_tokens_halt_at_once(ponder, steps):
    net, x = build(ponder=ponder, positions="sinusoidal").train(), normal(4, 5, 4)
    with torch.no_grad():
        net.halt.weight.zero_()
        net.halt.bias.fill_(-2.0)
    assert (net.steps_taken(x) == 5).all()
    for _ in range(10):
        slopes = torch.autograd.grad(net(x).mul(0).sum(), list(net.halt.parameters()))
        with torch.no_grad():
            for parameter, slope in zip(net.halt.parameters(), slopes, strict=True):
                parameter.sub_(slope, alpha=8.0)
    assert (net.steps_taken(x) == steps).all()


@pytest.mark.parametrize(("bias", "steps"), [(10.0, 1), (1.0, 2), (-0.85, 4), (-10.0, 5)])
def test_a_token_takes_steps_until_its_wishes_to_halt_sum_to_one(bias, steps):
    """σ(10) > .99 at once; 2·σ(1) > .99; σ(−.85) ≈ .3 four times; σ(−10) never, and there are 5."""
    net = build()
    with torch.no_grad():
        net.halt.weight.zero_()
        net.halt.bias.fill_(bias)
    assert (net.steps_taken(normal(2, 4, 4)) == steps).all()


def test_as_published_most_tokens_take_two_steps_at_the_start():
    net = load("universal-transformer", start="published").module
    assert (net.halt.bias == 1).all()
    assert (net.steps_taken(normal(20, 8, 4).float()) == 2).float().mean() > 0.9


def test_at_a_patient_start_all_tokens_take_all_steps_and_nearly_all_weight_is_on_the_last():
    net = load("universal-transformer", depth=5).module.double()
    found = net._think(normal(20, 8, 4), None)
    assert (found.steps == 5).all()
    torch.testing.assert_close(found.left, torch.full_like(found.left, 1 - 4 * 0.018), rtol=0, atol=0.01)


def test_a_patient_unit_is_the_published_one_that_reads_a_mean():
    patient = build(start="patient")
    published = build()
    published.load_state_dict(patient.state_dict())
    with torch.no_grad():
        published.halt.weight.div_(8)
        published.halt.bias.div_(8).sub_(4)
    x = normal(3, 6, 4)
    torch.testing.assert_close(patient(x), published(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("start", ["patient", "published"])
def test_the_halting_unit_has_a_gradient_exactly_where_a_token_takes_a_second_step(start):
    """At the first step the weight is 1 whatever the unit says: who halts there never learns to go on."""
    net, x = build(start=start).train(), normal(4, 5, 4)
    for bias, steps in ((-10.0, 5), (200.0, 1)):
        with torch.no_grad():
            net.halt.weight.zero_()
            net.halt.bias.fill_(bias)
        assert (net.steps_taken(x) == steps).all()
        slopes = torch.autograd.grad(net(x).square().sum(), list(net.halt.parameters()))
        assert all(bool((slope != 0).any()) is (steps > 1) for slope in slopes)


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary", "alibi"])
def test_without_halting_one_block_is_applied_again_and_again(positions):
    net, x = build(halting=False, depth=3, positions=positions), normal(2, 5, 4)
    state = net.embed(x)
    turns, bias = net.places.turns(state), net.places.bias(state, hidden_keys(state, None, True))
    for step in (1, 2, 3):
        state = state + sinusoidal(4, 8, x)[step]
        state = net.block(state + sinusoidal(5, 8, x) if positions == "sinusoidal" else state, bias, turns)
    torch.testing.assert_close(net(x), net.read(state), rtol=1e-12, atol=1e-12)
    assert (net.steps_taken(x) == 3).all()
    assert net.influence().law == ("none" if positions == "alibi" else "power")
    assert build().influence().law == "none"


def test_an_unknown_start_is_refused():
    with pytest.raises(BadInput, match="start must be patient or published"):
        load("universal-transformer", start="eager")


def test_more_steps_cost_no_parameters_and_one_step_has_nothing_to_halt():
    count = lambda **shape: sum(p.numel() for p in load("universal-transformer", **shape).module.parameters())
    assert count(depth=2) == count(depth=9) == count(depth=3, halting=False) + 33
    one = load("universal-transformer", depth=1).module
    assert one.halt is None
    assert (one.steps_taken(normal(2, 3, 4).float()) == 1).all()


def test_positions_start_at_another_place_for_every_row_while_training_only():
    net, x = build(), normal(1, 4, 4).expand(30, -1, -1)
    assert len(net(x)[:, -1].unique()) == 1
    assert len(net.train()(x)[:, -1].unique()) > 25


def test_costs_are_refused_where_they_are_none():
    with pytest.raises(BadInput, match=r"ponder must be a cost of 0 or more for every step, not -1\.0"):
        load("universal-transformer", ponder=-1)
    with pytest.raises(BadInput, match=r"ponder of 'universal-transformer' is a number, such as 0\.01, not 'x'"):
        load("universal-transformer", ponder="x")


class Costly(nn.Module):
    """A linear map that pays for the size of its hidden numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(3, 4).double(), nn.Linear(4, 2).double()

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.tanh(self.into(x))
        return self.out(hidden), hidden.square().mean()

    def forward(self, x: Tensor) -> Tensor:
        return with_cost(*self.parts(x))


def test_with_cost_leaves_the_output_alone_and_adds_the_costs_gradient():
    net, x = Costly(), normal(5, 3)
    output, cost = net.parts(x)
    assert torch.equal(net(x), output)
    truth = torch.autograd.grad(output.square().sum() + cost, list(net.parameters()))
    found = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    without = torch.autograd.grad(net.parts(x)[0].square().sum(), list(net.parameters()))
    for one, other in zip(found, truth, strict=True):
        torch.testing.assert_close(one, other)
    assert not torch.allclose(found[0], without[0])


@pytest.mark.parametrize("way", ["gradient inside", "gradient outside"])
def test_with_cost_gives_every_member_of_an_ensemble_its_own(way):
    members, x = [Costly() for _ in range(3)], normal(3, 5, 3)
    weights, _ = torch.func.stack_module_state(members)
    run = lambda w, x: torch.func.functional_call(members[0], w, (x,)).square().sum()
    if way == "gradient inside":
        found = torch.func.vmap(torch.func.grad(run))(weights, x)
    else:
        total = torch.func.vmap(run)(weights, x).sum()
        found = dict(zip(weights, torch.autograd.grad(total, list(weights.values())), strict=True))
    for i, member in enumerate(members):
        output, cost = member.parts(x[i])
        truth = torch.autograd.grad(output.square().sum() + cost, list(member.parameters()))
        for name, one in zip(weights, truth, strict=True):
            torch.testing.assert_close(found[name][i], one)


def test_an_ensemble_in_training_pays_member_by_member():
    members = [build(seed, ponder=0.5).train() for seed in range(3)]
    for member in members:
        member.places.offset.most = 0
    x = normal(3, 4, 5, 4)
    weights, _ = torch.func.stack_module_state(members)
    run = lambda w, x: torch.func.functional_call(members[0], w, (x,)).square().mean()
    found = torch.func.vmap(torch.func.grad(run), randomness="different")(weights, x)
    for i, member in enumerate(members):
        truth = torch.autograd.grad(member(x[i]).square().mean(), list(member.parameters()))
        for name, one in zip(weights, truth, strict=True):
            torch.testing.assert_close(found[name][i], one, rtol=1e-8, atol=1e-10)
