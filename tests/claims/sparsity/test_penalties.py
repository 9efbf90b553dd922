"""Penalised descent against torch's optimisers, against scikit-learn's lasso, and β-lasso against its definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso, Ridge

from theodolite.claims.sparsity.penalties import Penalty, soft_threshold
from theodolite.claims.sparsity.sparse_training import Examples, Plan, train_sparsely
from theodolite.errors import BadInput
from theodolite.training.optimiser import ADAM, Rule
from theodolite.training.schedules import cosine

W = frozenset({"w"})


def regression(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Two members of a linear problem of 8 inputs, of which 3 matter."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 60, 8, generator=generator, dtype=torch.float64)
    truth = torch.tensor([2.0, 0, 0, -1.0, 0, 0, 0.5, 0], dtype=torch.float64)
    return x, x @ truth + 0.3 * torch.randn(2, 60, generator=generator, dtype=torch.float64)


def squares(weights, batch):
    x, y = batch
    return ((x @ weights["w"].unsqueeze(-1)).squeeze(-1) - y).square().mean(-1) / 2


def fitted(penalty: Penalty, rule: Rule = ADAM, steps: int = 700) -> np.ndarray:
    x, y = regression()
    start = {"w": torch.ones(2, 8, dtype=torch.float64)}
    return train_sparsely(start, squares, Examples(x, y), Plan(steps, 0.05, rule), penalty, W)["w"].numpy()


@pytest.mark.parametrize("rule", [ADAM, Rule("sgd", clip=None)], ids=["adam", "sgd"])
def test_the_proximal_step_finds_the_lasso_of_every_member_with_its_exact_zeros(rule):
    strengths = (0.1, 0.4)
    found = fitted(Penalty("l1", strengths), rule)
    x, y = (part.numpy() for part in regression())
    for member, strength in enumerate(strengths):
        lasso = Lasso(alpha=strength, fit_intercept=False, tol=1e-10).fit(x[member], y[member]).coef_
        np.testing.assert_allclose(found[member], lasso, atol=2e-4)
        assert ((found[member] == 0) == (lasso == 0)).all()
        assert (lasso == 0).sum() >= 3


def test_l2_finds_ridge_and_no_weight_is_zero():
    found = fitted(Penalty("l2", 0.3))
    x, y = (part.numpy() for part in regression())
    for member in range(2):
        ridge = Ridge(alpha=0.3 * 60, fit_intercept=False).fit(x[member], y[member]).coef_
        np.testing.assert_allclose(found[member], ridge, atol=1e-4)
        assert (found[member] != 0).all()


@pytest.mark.parametrize("kind", ["none", "l2", "decay"])
def test_a_member_moves_as_torch_moves_it_alone(kind):
    x, y = regression()
    strength = 0.0 if kind == "none" else 0.05
    plan = Plan(50, 0.03)
    start = torch.linspace(-1, 1, 16, dtype=torch.float64).view(2, 8)
    found = train_sparsely({"w": start}, squares, Examples(x, y), plan, Penalty(kind, strength), W)["w"]
    for member in range(2):
        w = start[member].clone().requires_grad_()
        make = torch.optim.AdamW if kind == "decay" else torch.optim.Adam
        optimiser = make([w], lr=1.0, weight_decay=strength)
        for step in range(50):
            optimiser.param_groups[0]["lr"] = 0.03 * cosine(50)(step + 1)
            optimiser.zero_grad()
            ((x[member] @ w - y[member]).square().mean() / 2).backward()
            optimiser.step()
        torch.testing.assert_close(found[member], w.detach(), atol=1e-10, rtol=0)


def test_beta_lasso_follows_its_published_steps():
    x, y = regression()
    plan, strength, beta = Plan(40, 0.05, Rule("sgd", momentum=0.0, clip=None)), 0.02, 10.0
    start = torch.linspace(-1, 1, 16, dtype=torch.float64).view(2, 8)
    found = train_sparsely({"w": start}, squares, Examples(x, y), plan, Penalty("beta-lasso", strength, beta), W)["w"]
    w = start.clone()
    for step in range(40):
        gradient = torch.einsum("mei,me->mi", x, torch.einsum("mei,mi->me", x, w) - y) / 60
        w = w - 0.05 * cosine(40)(step + 1) * (gradient + strength * torch.sign(w))
        w = torch.where(w.abs() < beta * strength, 0.0, w)
    torch.testing.assert_close(found, w, atol=1e-12, rtol=0)
    assert (found == 0).any()
    assert (found[found != 0].abs() >= beta * strength).all()


def test_soft_thresholding_solves_its_own_problem():
    grid = torch.linspace(-3, 3, 60001, dtype=torch.float64)
    for value in (-1.7, -0.2, 0.0, 0.3, 2.1):
        objective = (grid - value).square() / 2 + 0.5 * grid.abs()
        best = soft_threshold(torch.tensor([value], dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64))
        assert float(best) == pytest.approx(float(grid[objective.argmin()]), abs=1e-4)


def test_a_masked_weight_stays_zero_and_what_was_passed_in_is_left_alone():
    x, y = regression()
    start = torch.ones(2, 8, dtype=torch.float64)
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[0, 0] = mask[1, 3] = False
    found = train_sparsely({"w": start}, squares, Examples(x, y), Plan(30, 0.05), masks={"w": mask})["w"]
    assert ((found == 0) == ~mask).all()
    assert (start == 1).all()


def test_a_schedule_in_two_parts_is_one_schedule_for_plain_descent():
    x, y = regression()
    start, plan = {"w": torch.ones(2, 8, dtype=torch.float64)}, Plan(20, 0.05, Rule("sgd", momentum=0.0, clip=None))
    once = train_sparsely(start, squares, Examples(x, y), plan)
    half = train_sparsely(start, squares, Examples(x, y), plan, end=8)
    torch.testing.assert_close(train_sparsely(half, squares, Examples(x, y), plan, begin=8), once)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Penalty("l3"), "l3"),  # pyright: ignore[reportArgumentType]
        (lambda: Penalty("l1", -1.0), "-1.0"),
        (lambda: Penalty("l1", (0.1, float("nan"))), "nan"),
        (lambda: Plan(0, 0.1), "0"),
        (lambda: Plan(10, -0.1), "-0.1"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(make, named):
    with pytest.raises(BadInput, match=named):
        make()
