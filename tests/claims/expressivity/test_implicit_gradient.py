"""The implicit gradient against unrolled ones and finite differences; the solvers against a direct solution."""

from __future__ import annotations

import math

import pytest
import torch

from theodolite.claims.expressivity.implicit_gradient import Solving, implicit, implicit_gradient_error
from theodolite.errors import BadInput
from theodolite.nets.parts.solvers import SOLVERS, solve


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def contraction(size: int, norm: float = 0.9, seed: int = 0) -> torch.Tensor:
    weight = drawn(size, size, seed=seed)
    return weight * norm / torch.linalg.matrix_norm(weight, 2)


def step(z: torch.Tensor, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(z @ weight.T + x)


def test_the_published_setting_is_met():
    """tanh map, d = 64, ‖W‖ = .9, 600 steps; published: exact to 1e-11, one step .29, five steps 2e-3."""
    found = implicit_gradient_error()
    assert found.value < 1e-11
    assert set(found.diagnostics["by_solver"]) == set(SOLVERS)
    assert found.diagnostics["phantom"]["1"] == pytest.approx(0.29, abs=0.15)
    assert found.diagnostics["phantom"]["5"] == pytest.approx(2e-3, abs=4e-3)
    assert found.diagnostics["phantom"]["5"] > 1e-4
    assert all(10 < steps < 40 for steps in found.diagnostics["steps"].values())


@pytest.mark.parametrize("method", list(SOLVERS))
def test_a_linear_fixed_point_is_that_of_a_direct_solution(method):
    """z = W z + x has z* = (1 − W)⁻¹ x, and its gradient is known in closed form."""
    weight, x, form = contraction(12, 0.7), drawn(12, seed=1), drawn(12, seed=2)
    inverse = torch.linalg.inv(torch.eye(12, dtype=torch.float64) - weight)
    given = x.clone().requires_grad_()
    z = implicit(lambda z, x: z @ weight.T + x, torch.zeros(12, dtype=torch.float64), given, solving=Solving(method))
    assert torch.allclose(z, inverse @ x, rtol=1e-10)
    (slope,) = torch.autograd.grad((z * form).sum(), given)
    assert torch.allclose(slope, inverse.T @ form, rtol=1e-10)


@pytest.mark.parametrize("method", list(SOLVERS))
def test_a_batch_gives_what_its_rows_give(method):
    weight, x = contraction(10), drawn(4, 10, seed=3) * torch.tensor([[0.01], [1.0], [3.0], [0.3]])
    start = torch.zeros(4, 10, dtype=torch.float64)
    together = solve(lambda z: step(z, weight, x), start, method, 1e-10)
    assert bool(together.reached.all())
    assert len(set(together.steps.tolist())) > 1  # rows stop at steps of their own
    for row in range(4):
        alone = solve(lambda z, row=row: step(z, weight, x[row]), start[row], method, 1e-10)
        assert torch.allclose(together.z[row], alone.z, rtol=1e-9, atol=1e-10)
        assert int(together.steps[row]) == int(alone.steps)


@pytest.mark.parametrize("method", list(SOLVERS))
def test_vmap_of_the_gradient_equals_a_loop(method):
    """Networks that use it are trained many at a time."""
    weights = torch.stack([contraction(6, 0.8, seed) for seed in range(3)])
    x, form = drawn(3, 6, seed=4), drawn(6, seed=5)
    solving = Solving(method, early=False, steps=60)

    def loss(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (implicit(step, torch.zeros(6, dtype=torch.float64), weight, x, solving=solving) * form).sum()

    slopes = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)))(weights, x)
    for k in range(3):
        leaves = [weights[k].clone().requires_grad_(), x[k].clone().requires_grad_()]
        z = torch.zeros(6, dtype=torch.float64)
        for _ in range(300):
            z = step(z, *leaves)
        for found, truth in zip(slopes, torch.autograd.grad((z * form).sum(), leaves), strict=True):
            assert torch.allclose(found[k], truth, rtol=1e-9, atol=1e-11)


def test_gradients_pass_finite_differences():
    weight, x = contraction(5, 0.6).requires_grad_(), drawn(5, seed=6).requires_grad_()
    start = torch.zeros(5, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda w, x: implicit(step, start, w, x), (weight, x), rtol=1e-5)


def test_picard_needs_no_more_steps_than_banach_allows():
    weight, x = contraction(20, 0.5), drawn(20, seed=7)
    start = torch.zeros(20, dtype=torch.float64)
    found = solve(lambda z: step(z, weight, x), start, "picard", 1e-9)
    first = float(step(start, weight, x).norm())
    # ‖z_k − z*‖ ≤ q^k·‖z_1 − z_0‖/(1 − q)
    assert int(found.steps) <= math.ceil(math.log(1e-9 * (1 - 0.5) / first) / math.log(0.5))


def test_anderson_and_broyden_are_faster_on_a_slow_contraction():
    weight, x = torch.linspace(-0.98, 0.98, 8, dtype=torch.float64).diag(), drawn(8, seed=8)

    def affine(z: torch.Tensor) -> torch.Tensor:
        return z @ weight + x

    steps = {name: int(solve(affine, torch.zeros_like(x), name, 1e-9, 2000).steps) for name in SOLVERS}
    assert steps["broyden"] < steps["picard"] / 10
    assert steps["anderson"] < steps["picard"] / 2


def test_a_solver_that_did_not_arrive_says_so():
    found = solve(lambda z: 2 * z + 1, torch.ones(3, 2, dtype=torch.float64), "picard", 1e-9, 10)
    assert found.reached.tolist() == [False] * 3
    assert found.steps.tolist() == [10] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: solve(lambda z: z, torch.zeros(2), "newton"),
        lambda: solve(lambda z: z, torch.zeros(2), steps=0),
        lambda: implicit(lambda z, i: z, torch.zeros(2), torch.tensor([1])),
        lambda: implicit_gradient_error(norm=1.5),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call):
    with pytest.raises(BadInput) as raised:
        call()
    assert "\n" not in str(raised.value)
