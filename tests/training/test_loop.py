"""The one training loop: against `torch.optim` one member at a time, and what may happen between its steps."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.each import each
from theodolite.errors import BadInput
from theodolite.training import loop
from theodolite.training.loop import Best, singly, train
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.schedules import cosine, rise_then_cosine

STEPS = 60
RATES = [Rates(0.03), Rates(0.1, 0.2), Rates(0.03, 0.05)]
SGD = Rule("sgd", clip=None)


def problem() -> tuple[dict[str, Tensor], Callable[[int], tuple[Tensor, Tensor]]]:
    """A small regression of its own for each of three members, and the batches of all steps, drawn in order."""
    generator = torch.Generator().manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)
    weights = {"hidden": normal(3, 4, 5), "out": normal(3, 5)}
    x = normal(STEPS, 3, 8, 4)
    y = x[..., 0] * x[..., 1] + 3 * x[..., 2]
    place = 0

    def batches(count: int) -> tuple[Tensor, Tensor]:
        nonlocal place
        place += count
        return x[place - count : place], y[place - count : place]

    return weights, batches


def loss(weights, batch):
    x, y = batch
    hidden = torch.tanh(torch.einsum("mri,mij->mrj", x, weights["hidden"]))
    return (torch.einsum("mrj,mj->mr", hidden, weights["out"]) - y).square().mean(1)


@each("schedule", [None, cosine(STEPS), cosine(STEPS, 10), rise_then_cosine(STEPS, 7)])
@each("rule", [Rule(), Rule(clip=None), SGD, Rule("sgd", momentum=0.0)])
def test_every_member_is_trained_as_torch_optim_trains_it_alone(rule, schedule):
    weights, batches = problem()
    found = train(weights, loss, batches, steps=STEPS, rule=rule, rates=RATES, schedule=schedule, block=7)
    for member, rates in enumerate(RATES):
        own, again = problem()
        single = {n: w[member : member + 1].clone().requires_grad_() for n, w in own.items()}
        if rule.name == "adamw":
            theirs = torch.optim.AdamW(single.values(), lr=rates.lr, weight_decay=rates.weight_decay)
        else:
            theirs = torch.optim.SGD(
                single.values(), lr=rates.lr, momentum=rule.momentum, weight_decay=rates.weight_decay
            )
        for step in range(1, STEPS + 1):
            x, y = (part[0, member : member + 1] for part in again(1))
            theirs.param_groups[0]["lr"] = rates.lr * (schedule(step) if schedule else 1.0)
            theirs.zero_grad()
            loss(single, (x, y)).sum().backward()
            if rule.clip is not None:
                torch.nn.utils.clip_grad_norm_(single.values(), rule.clip)
            theirs.step()
        for name, tensor in single.items():
            torch.testing.assert_close(found[name][member], tensor.detach()[0], rtol=1e-9, atol=1e-10)
            assert not torch.allclose(tensor[0], weights[name][member], atol=0.01)


def test_the_cosine_is_torchs_and_the_others_rise_first():
    weight = torch.zeros(1, requires_grad=True)
    theirs = torch.optim.SGD([weight], lr=1.0)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(theirs, 20)
    for step in range(1, 21):
        assert cosine(20)(step) == pytest.approx(theirs.param_groups[0]["lr"], abs=1e-12)
        assert cosine(20, 4)(step) == pytest.approx(min(1, step / 4) * cosine(20)(step))
        theirs.step()
        fall.step()
    rising = rise_then_cosine(20, 4)
    assert [rising(step) for step in range(1, 5)] == [0.25, 0.5, 0.75, 1.0]
    assert rising(12) == pytest.approx(0.5)
    assert rising(20) == pytest.approx(0.0)


def test_many_different_rates_are_the_separate_runs():
    """More than there are fused kernels for: the same arithmetic another way."""
    target = torch.arange(12, dtype=torch.float64)[:, None]
    rates = [Rates(0.01 * (k + 1)) for k in range(12)]
    distance = lambda w, batch: (w["w"] - batch[0]).square().sum(1) if batch else (w["w"] - target).square().sum(1)
    together = train({"w": torch.zeros(12, 1).double()}, distance, steps=30, rule=Rule(clip=None), rates=rates)["w"]
    for member in range(12):
        goal = target[member].expand(30, 1, 1)
        alone = train(
            {"w": torch.zeros(1, 1).double()},
            distance,
            lambda count, goal=goal: (goal[:count],),
            steps=30,
            rule=Rule(clip=None),
            rates=rates[member],
        )["w"]
        torch.testing.assert_close(together[member : member + 1], alone, rtol=1e-9, atol=1e-12)


def test_looks_come_at_their_steps_and_blocks_end_there():
    asked, seen = [], []

    def batches(count):
        asked.append(count)
        return (torch.zeros(count, 1, 1),)

    weights = {"w": torch.zeros(1, 1)}
    train(
        weights,
        lambda w, batch: (w["w"] - 1 + batch[0]).sum(1),
        batches,
        steps=9,
        rule=Rule("sgd", momentum=0.0, clip=None),
        rates=Rates(1.0),
        looks=[0, 5, 9],
        look=lambda step, own: seen.append((step, float(own["w"]))),
        block=3,
    )
    assert asked == [3, 2, 3, 1]
    assert seen == [(0, 0.0), (5, -5.0), (9, -9.0)]
    assert float(weights["w"]) == 0.0, "what was passed in is left alone"


def test_a_look_that_says_so_ends_the_training():
    found = train(
        {"w": torch.zeros(1, 1)},
        lambda w, _: w["w"].sum(1),
        steps=100,
        rule=Rule("sgd", momentum=0.0, clip=None),
        rates=Rates(1.0),
        looks=range(1, 101),
        look=lambda step, own: bool(own["w"] <= -4),
    )
    assert float(found["w"]) == -4.0


@pytest.mark.parametrize("steps", [0, 3])
def test_what_surrounds_the_update_sees_gradients_rates_and_step_sizes(steps):
    """Gradients doubled before, weights kept at 0 or more after: by hand with plain SGD."""
    told = []

    def before(weights, gradients, lr):
        told.append(lr)
        return [2 * g for g in gradients]

    def after(weights, size):
        assert size("w") == pytest.approx(told[-1])
        weights["w"].clamp_(min=0)

    found = train(
        {"w": torch.tensor([[1.0, 5.0]])},
        lambda w, _: (w["w"] * torch.tensor([1.0, 0.5])).sum(1),
        steps=steps,
        rule=Rule("sgd", momentum=0.0, clip=None),
        rates=Rates(1.0),
        schedule=lambda step: 1 / step,
        before=before,
        after=after,
    )
    assert told == [1.0, 0.5, pytest.approx(1 / 3)][:steps]
    expected = [[0.0, 5 - (1 + 0.5 + 1 / 3)]] if steps else [[1.0, 5.0]]
    torch.testing.assert_close(found["w"], torch.tensor(expected))


def test_the_best_weights_of_each_member_are_kept_whatever_comes_after():
    best = Best({"w": torch.zeros(3, 2)})
    for step, score in enumerate([[3.0, math.nan, math.inf], [1.0, 5.0, math.inf], [2.0, 4.0, math.nan]], 1):
        best.offer({"w": torch.full((3, 2), float(step))}, torch.tensor(score))
    assert best.weights["w"].tolist() == [[2.0] * 2, [3.0] * 2, [0.0] * 2]
    assert best.score.tolist() == [1.0, 4.0, math.inf]


def test_batches_drawn_singly_are_stacked_in_order():
    numbers = iter(range(10))
    first, second = singly(lambda: (torch.tensor([n := next(numbers)]), torch.tensor(-n)))(4)
    assert first.tolist() == [[0], [1], [2], [3]]
    assert second.tolist() == [0, -1, -2, -3]


def test_a_weight_that_the_loss_does_not_need_stays():
    found = train(
        {"w": torch.ones(1, 2), "idle": torch.ones(1, 2)},
        lambda w, _: w["w"].square().sum(1),
        steps=5,
        rule=Rule(),
        rates=Rates(0.1),
    )
    assert found["idle"].tolist() == [[1.0, 1.0]]
    assert (found["w"] < 1).all()


def test_a_negative_number_of_steps_is_refused():
    with pytest.raises(BadInput, match="-1"):
        train({"w": torch.ones(1, 1)}, lambda w, _: w["w"].sum(1), steps=-1, rule=Rule(), rates=Rates(0.1))


def test_the_example_in_the_docstring_runs():
    assert doctest.testmod(loop) == (0, 3)


def test_training_does_not_wait_for_torchs_compiler():
    code = (
        "import sys, torch\n"
        "from theodolite.training.loop import train\n"
        "from theodolite.training.optimiser import Rates, Rule\n"
        "loss = lambda w, _: w['w'].square().sum(1)\n"
        "train({'w': torch.ones(2, 1)}, loss, steps=3, rule=Rule(), rates=Rates(0.1))\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.gpu
@pytest.mark.parametrize("rates", [Rates(0.03), [Rates(0.01 * (k + 1)) for k in range(3)]], ids=["equal", "own"])
@pytest.mark.parametrize(
    "rule", [Rule(), SGD, Rule(clip=None, early_epsilon=True, epsilon=1e-5)], ids=["adamw", "sgd", "early ε"]
)
def test_captured_steps_are_those_of_the_cpu(rule, rates, caplog):
    weights, batches = problem()
    options = {"steps": STEPS, "rule": rule, "rates": rates, "schedule": cosine(STEPS, 5)}

    def after(weights, size):
        for name, weight in weights.items():
            weight.copy_(weight.sign() * (weight.abs() - 1e-3 * size(name)).clamp(min=0))

    here = train(weights, loss, batches, after=after, **options)
    _, batches = problem()
    moved = {n: w.cuda() for n, w in weights.items()}
    there = train(moved, loss, lambda count: tuple(t.cuda() for t in batches(count)), after=after, **options)
    for name, tensor in here.items():
        torch.testing.assert_close(there[name].cpu(), tensor, rtol=1e-4, atol=1e-5)
    assert not caplog.records


@pytest.mark.gpu
def test_a_step_that_cannot_be_captured_goes_on_without(caplog):
    waits = lambda w, _: w["w"].square().sum(1) * float(w["w"].detach().abs().max().clamp(max=1))
    found = train({"w": torch.ones(1, 2, device="cuda")}, waits, steps=20, rule=SGD, rates=Rates(0.01))
    here = train({"w": torch.ones(1, 2)}, waits, steps=20, rule=SGD, rates=Rates(0.01))
    torch.testing.assert_close(found["w"].cpu(), here["w"])
    assert "cannot be captured" in caplog.text
