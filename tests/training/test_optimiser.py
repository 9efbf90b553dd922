"""The stacked AdamW and SGD against `torch.optim`, one optimiser per member."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.training.optimiser import Optimiser, Pace, Rates, Rule, clipped

SHAPES = {"matrix": (3, 5), "vector": (4,), "scalar": (), "cube": (2, 3, 2)}
MIXED = [Rates(1e-2, 0.0), Rates(3e-2, 0.1), Rates(1e-2, 0.1), Rates(3e-2, 0.1), Rates(3e-2, 0.1), Rates(1e-2, 0.0)]
SORTED = sorted(MIXED, key=lambda r: (r.lr, r.weight_decay))
RULES = {
    "adamw": Rule("adamw"),
    "adamw with other betas": Rule("adamw", betas=(0.8, 0.95), epsilon=1e-4, clip=None),
    "sgd": Rule("sgd", momentum=0.0),
    "sgd with momentum": Rule("sgd", momentum=0.9),
    "sgd without clipping": Rule("sgd", momentum=0.9, clip=None),
}


@pytest.fixture(params=["fused", "tensor by tensor"])
def arithmetic(request, monkeypatch):
    """Both ways to compute the same rule, whatever the number of rates."""
    monkeypatch.setattr(Optimiser, "_fuses", lambda *_: request.param == "fused")


def drawn(members: int, generator: torch.Generator, dtype: torch.dtype, scale: float = 1.0) -> dict[str, Tensor]:
    return {
        n: scale * torch.randn(members, *shape, generator=generator, dtype=torch.float64).to(dtype)
        for n, shape in SHAPES.items()
    }


def torch_optimiser(rule: Rule, rates: Rates, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    if rule.name == "adamw":
        return torch.optim.AdamW(
            parameters, rates.lr, betas=rule.betas, eps=rule.epsilon, weight_decay=rates.weight_decay, foreach=False
        )
    return torch.optim.SGD(parameters, rates.lr, momentum=rule.momentum, weight_decay=rates.weight_decay, foreach=False)


@each("dtype", [torch.float32, torch.float64])
@each("rates", [MIXED, SORTED])
@each("borders", [(0, 6), (0, 2, 5, 6)])
@each("rule", RULES.values())
@pytest.mark.usefixtures("arithmetic")
def test_every_member_moves_as_torch_optim_moves_one(rule, borders, rates, dtype):
    generator = torch.Generator().manual_seed(0)
    stacked = drawn(6, generator, dtype)
    singles = [[nn.Parameter(p[k].clone()) for p in stacked.values()] for k in range(6)]
    theirs = [torch_optimiser(rule, r, p) for r, p in zip(rates, singles, strict=True)]
    mine = Optimiser(rule, rates, stacked)
    for step in range(1, 21):
        # Some gradients are longer than the clipping norm and some are not.
        gradients = drawn(6, generator, dtype, scale=0.02 if step % 3 else 1.0)
        for k in range(6):
            for parameter, gradient in zip(singles[k], gradients.values(), strict=True):
                parameter.grad = gradient[k].clone()
            if rule.clip is not None:
                nn.utils.clip_grad_norm_(singles[k], rule.clip)
            theirs[k].step()
        for start, stop in itertools.pairwise(borders):
            own = [g[start:stop] for g in gradients.values()]
            mine.update(start, stop, own, Pace(torch.full((), float(step))))
    tolerance = 2e-6 if dtype == torch.float32 else 1e-13
    for k in range(6):
        for name, single in zip(SHAPES, singles[k], strict=True):
            torch.testing.assert_close(stacked[name][k], single.detach(), rtol=tolerance, atol=tolerance)


LAYOUTS = {
    "in order": lambda t: t.clone(memory_format=torch.contiguous_format),
    "transposed": lambda t: t.transpose(1, 2).clone(memory_format=torch.contiguous_format).transpose(1, 2),
    "members last": lambda t: t.permute(1, 2, 0).clone(memory_format=torch.contiguous_format).permute(2, 0, 1),
}


@each("borders", [(0, 4), (0, 1, 4)])
@each("rule", RULES.values())
@each("parameters", ["in order", "transposed"])
@each("laid", LAYOUTS)
@pytest.mark.usefixtures("arithmetic")
def test_the_order_of_memory_does_not_matter(laid, parameters, rule, borders):
    """The fused kernels read memory as it comes; a wrong order mixes up entries, silently."""
    generator = torch.Generator().manual_seed(1)
    start, kept = torch.randn(4, 3, 5, generator=generator), torch.tensor([3, 1])
    gradients = [torch.randn(4, 3, 5, generator=generator) for _ in range(4)]
    rates = [Rates(1e-2, 0.1)] * 2 + [Rates(3e-2, 0.0)] * 2
    results = []
    for own_layout, layout in (("in order", "in order"), (parameters, laid)):
        own = {"weight": LAYOUTS[own_layout](start)}
        optimiser = Optimiser(rule, rates, own)
        for step, gradient in enumerate(gradients[:2], 1):
            for first, last in itertools.pairwise(borders):
                optimiser.update(
                    first, last, [LAYOUTS[layout](gradient)[first:last]], Pace(torch.full((), float(step)))
                )
        # Indexing may give another order than before; the moments have to follow.
        own = {"weight": LAYOUTS[own_layout](own["weight"][kept])}
        optimiser.keep(kept, own)
        for step, gradient in enumerate(gradients[2:], 3):
            optimiser.update(0, 2, [LAYOUTS[layout](gradient[kept])], Pace(torch.full((), float(step))))
        results.append(own["weight"])
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7)
    assert not torch.allclose(results[0], start[kept], atol=1e-3)


@pytest.mark.usefixtures("arithmetic")
def test_expanded_gradients_do_not_matter_either():
    own = {"weight": torch.zeros(2, 3)}
    optimiser = Optimiser(Rule("sgd", momentum=0.0, clip=None), [Rates(1.0, 0.0)] * 2, own)
    optimiser.update(0, 2, [torch.tensor([[1.0], [2.0]]).expand(2, 3)], Pace(torch.ones(())))
    assert own["weight"].tolist() == [[-1.0] * 3, [-2.0] * 3]


def test_clipping_is_that_of_each_member_alone():
    generator = torch.Generator().manual_seed(2)
    gradients = list(drawn(5, generator, torch.float32).values())
    for g in gradients:
        g.mul_(torch.tensor([1e-3, 0.1, 1.0, 10.0, 1e4]).view(5, *[1] * (g.dim() - 1)))
    found = clipped(gradients, 1.0)
    for k in range(5):
        singles = [nn.Parameter(torch.zeros_like(g[k])) for g in gradients]
        for p, g in zip(singles, gradients, strict=True):
            p.grad = g[k].clone()
        nn.utils.clip_grad_norm_(singles, 1.0)
        for p, f in zip(singles, found, strict=True):
            torch.testing.assert_close(f[k], p.grad, rtol=1e-6, atol=1e-9)
    norms = torch.stack([g.reshape(5, -1).square().sum(1) for g in found]).sum(0).sqrt()
    assert norms[0] < 0.1
    assert norms[3:].tolist() == pytest.approx([1.0, 1.0], rel=1e-5)


def test_early_epsilon_joins_the_root_before_the_bias_correction():
    """The first step by hand: lr·√(1−β₂)/(1−β₁) · (1−β₁)·g / (√(1−β₂)·|g| + ε)."""
    gradient = torch.tensor([[2.3, -39.7]], dtype=torch.float64)
    own = {"weight": torch.tensor([[1.0, -2.0]], dtype=torch.float64)}
    expected = own["weight"] - 0.05 * math.sqrt(0.01) * gradient / (math.sqrt(0.01) * gradient.abs() + 0.5)
    rule = Rule(betas=(0.9, 0.99), epsilon=0.5, clip=None, early_epsilon=True)
    Optimiser(rule, [Rates(0.05)], own).update(0, 1, [gradient], Pace(torch.ones(())))
    torch.testing.assert_close(own["weight"], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("early", [True, False])
def test_a_factor_of_the_rate_is_the_rate_times_it(early):
    rule = Rule(clip=None, early_epsilon=early, epsilon=1e-3)
    gradients = [torch.randn(2, 3, generator=torch.Generator().manual_seed(n)) for n in range(4)]
    found = []
    for rates, factors in (
        ([Rates(0.1, 0.01), Rates(0.2)], [0.5, torch.tensor(0.5), 0.5, 0.5]),
        ([Rates(0.05, 0.02), Rates(0.1)], [1.0] * 4),
    ):
        own = {"weight": torch.ones(2, 3)}
        optimiser = Optimiser(rule, rates, own)
        for step, (gradient, factor) in enumerate(zip(gradients, factors, strict=True), 1):
            optimiser.update(0, 2, [gradient], Pace(torch.full((), float(step)), factor))
        found.append(own["weight"])
    torch.testing.assert_close(found[0][1], found[1][1])  # without decay, which the rate would scale too
    assert not torch.equal(found[0][0], torch.ones(3))


@pytest.mark.parametrize("rule", [Rule(clip=None), Rule(clip=None, early_epsilon=True, epsilon=0.1)], ids=str)
def test_the_step_size_times_the_mean_gradient_is_how_far_an_entry_moved(rule):
    own = {"weight": torch.ones(3, 4, dtype=torch.float64)}
    optimiser = Optimiser(rule, [Rates(0.1), Rates(0.3), Rates(0.1)], own)
    for step in range(1, 6):
        before = own["weight"].clone()
        gradient = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        pace = Pace(torch.full((), float(step)))
        optimiser.update(0, 3, [gradient], pace)
        mean = optimiser.moments[0]["weight"] / (1 - 0.9**step)
        torch.testing.assert_close(before - own["weight"], optimiser.step_size("weight", 0, 3, pace) * mean)


@pytest.mark.parametrize(
    ("rule", "rates", "entries", "fused"),
    [
        (Rule(), 1, 1, True),
        (Rule(early_epsilon=True), 1, 10_000, False),
        (Rule(), 12, 1, False),
        (Rule(), 12, 5_000, True),
        (Rule("sgd"), 12, 1, False),
    ],
)
def test_kernels_are_used_where_they_know_the_rule_and_pay(rule, rates, entries, fused, monkeypatch):
    own = {"weight": torch.ones(12, entries)}
    called = []
    for name in ("_move", "_move_fused"):
        monkeypatch.setattr(Optimiser, name, lambda *_, name=name: called.append(name))
    optimiser = Optimiser(rule, [Rates(0.1 + k % rates) for k in range(12)], own)
    optimiser.update(0, 12, [torch.ones(12, entries)], Pace(torch.ones(())))
    assert called == ["_move_fused" if fused else "_move"]


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_members_that_are_kept_go_on_with_their_own_rates_and_moments(rule):
    generator = torch.Generator().manual_seed(3)
    before = [list(drawn(6, generator, torch.float32).values()) for _ in range(4)]
    after = [list(drawn(6, generator, torch.float32).values()) for _ in range(4)]
    kept = torch.tensor([4, 0, 1])

    def run(regroup: bool) -> dict[str, Tensor]:
        own = drawn(6, torch.Generator().manual_seed(4), torch.float32)
        optimiser = Optimiser(rule, MIXED, own)
        for step, gradients in enumerate(before, 1):
            optimiser.update(0, 6, gradients, Pace(torch.full((), float(step))))
        if regroup:
            own = {n: p[kept] for n, p in own.items()}
            optimiser.keep(kept, own)
        for step, gradients in enumerate(after, 5):
            chosen = [g[kept] for g in gradients] if regroup else gradients
            optimiser.update(0, 3 if regroup else 6, chosen, Pace(torch.full((), float(step))))
        return own if regroup else {n: p[kept] for n, p in own.items()}

    whole, regrouped = run(False), run(True)
    for name in SHAPES:
        torch.testing.assert_close(regrouped[name], whole[name], rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("arithmetic")
def test_the_memory_of_the_parameters_is_updated_in_place():
    own = {"weight": torch.ones(2, 3)}
    place = own["weight"].data_ptr()
    Optimiser(Rule("adamw"), [Rates(0.1, 0.0)] * 2, own).update(0, 1, [torch.ones(1, 3)], Pace(torch.ones(())))
    assert own["weight"].data_ptr() == place
    assert own["weight"][1].tolist() == [1.0] * 3
    assert (own["weight"][0] < 1).all()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Rule("adam"), "adam"),  # pyright: ignore[reportArgumentType]
        (lambda: Rule(clip=0.0), "0.0"),
        (lambda: Rule(clip=math.nan), "nan"),
        (lambda: Rule(momentum=1.0), "1.0"),
        (lambda: Rule(momentum=-0.1), "-0.1"),
        (lambda: Rates(0.0, 0.0), "0.0"),
        (lambda: Rates(math.inf, 0.0), "inf"),
        (lambda: Rates(math.nan, 0.0), "nan"),
        (lambda: Rates(1e-3, -1.0), "-1.0"),
        (lambda: Rates(1e-3, math.nan), "nan"),
    ],
)
def test_what_cannot_be_a_rate_is_refused_by_its_value(make, named):
    with pytest.raises(BadInput, match=named):
        make()
