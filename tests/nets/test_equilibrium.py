"""The equilibrium model against torchdeq, a long unroll and finite differences; its solvers; what it reports."""

from __future__ import annotations

import math

import pytest
import torch
import torchdeq
from torch import Tensor
from torch.nn import functional

from theodolite.errors import BadInput
from theodolite.nets.equilibrium import Equilibrium
from theodolite.nets.load import load
from theodolite.nets.parts.implicit import Solving, implicit
from theodolite.nets.parts.solvers import SOLVERS, eliminated, solve

THEIRS = {"picard": "fixed_point_iter", "anderson": "anderson", "broyden": "broyden"}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def built(**shape) -> Equilibrium:
    precise = {"features": 3, "width": 8, "heads": 2, "tolerance": 1e-12, "steps": 100, **shape}
    net = load("equilibrium", **precise).module.double()
    assert isinstance(net, Equilibrium)
    with torch.no_grad():
        for i, parameter in enumerate(net.parameters()):
            parameter.add_(normal(*parameter.shape, seed=i), alpha=0.05)  # norms and biases too
    return net


def block_by_hand(net: Equilibrium, z: Tensor, x: Tensor) -> Tensor:
    """The block from its modules and torch's own attention, without positions."""
    block = net.block
    mixed = block.project(block.before_attention(z)).unflatten(-1, (3, block.heads, -1)).permute(2, 0, 3, 1, 4)
    found = functional.scaled_dot_product_attention(*mixed, is_causal=net.causal)
    h = x + block.combine(found.transpose(1, 2).flatten(-2))
    return h + block.narrow(functional.gelu(block.widen(block.before_mlp(h))))


def gradients(net: Equilibrium, output: Tensor) -> dict[str, Tensor]:
    loss = (output * normal(*output.shape, seed=99)).sum()
    names, parameters = zip(*net.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


def same(found: dict[str, Tensor], truth: dict[str, Tensor], tolerance: float = 1e-8) -> None:
    for name in truth:
        torch.testing.assert_close(found[name], truth[name], rtol=tolerance, atol=tolerance, msg=name)
    assert max(float(slope.abs().max()) for slope in truth.values()) > 0.1


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("solver", list(SOLVERS))
def test_fixed_point_and_gradients_are_those_of_torchdeq(solver, causal):
    net, x = built(solver=solver, positions="none", causal=causal), normal(4, 6, 3)
    exact = {"f_max_iter": 300, "b_max_iter": 300, "f_tol": 1e-11, "b_tol": 1e-11}
    deq = torchdeq.get_deq(f_solver=THEIRS["broyden"], b_solver=THEIRS["broyden"], ift=True, **exact)
    entering = net.block.before_input(net.embed(x))
    (z,), info = deq(lambda z: block_by_hand(net, z, entering), torch.zeros_like(entering))
    assert float(info["abs_lowest"].max()) < 1e-10
    truth = net.read(z)
    torch.testing.assert_close(net(x), truth, rtol=1e-8, atol=1e-8)
    same(gradients(net, net(x)), gradients(net, truth))


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_the_gradient_is_that_of_a_long_unroll(solver):
    net, x = built(solver=solver, positions="none"), normal(2, 5, 3)
    entering = net.block.before_input(net.embed(x))
    z = torch.zeros_like(entering)
    for _ in range(150):
        z = block_by_hand(net, z, entering)
    same(gradients(net, net(x)), gradients(net, net.read(z)))


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_torchdeq_finds_the_same_fixed_point_of_a_tanh_map_with_the_same_solver(solver):
    """The published setting: d = 64, ‖W‖ = .9."""
    weight, x, form = normal(64, 64), normal(3, 64, seed=1), normal(3, 64, seed=2)
    weight = (weight * 0.9 / torch.linalg.matrix_norm(weight, 2)).requires_grad_()
    step = lambda z, weight: torch.tanh(z @ weight.T + x)
    options = {"f_max_iter": 300, "b_max_iter": 300, "f_tol": 1e-11, "b_tol": 1e-11}
    deq = torchdeq.get_deq(f_solver=THEIRS[solver], b_solver=THEIRS[solver], ift=True, **options)
    (theirs,), _ = deq(lambda z: step(z, weight), torch.zeros_like(x))
    ours = implicit(step, torch.zeros_like(x), weight, solving=Solving(solver, 1e-12, 300))
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8)
    slopes = [torch.autograd.grad((z * form).sum(), weight)[0] for z in (ours, theirs)]
    torch.testing.assert_close(*slopes, rtol=1e-8, atol=1e-8)


def test_a_gradient_can_be_differentiated_again():
    weight, x = (0.3 * normal(2, 2)).requires_grad_(), normal(2, seed=1).requires_grad_()
    step = lambda z, weight, x: torch.tanh(z @ weight.T + x)
    find = lambda weight, x: implicit(step, torch.zeros_like(x), weight, x, solving=Solving("anderson"))
    assert torch.autograd.gradgradcheck(find, (weight, x))


def test_constants_reach_the_map_and_get_no_gradient():
    x, scale = normal(3, 5).requires_grad_(), normal(3, 5, seed=1)
    seen = torch.tensor([True, False, True, True, False])
    step = lambda z, x, scale, seen: 0.3 * torch.sin(z) * scale * seen + x
    z = implicit(step, torch.zeros_like(x), x, constants=(scale, seen))
    torch.testing.assert_close(step(z, x, scale, seen), z)
    (slope,) = torch.autograd.grad(z.sum(), x)
    torch.testing.assert_close(slope, 1 / (1 - 0.3 * torch.cos(z) * scale * seen))


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_a_row_that_does_not_arrive_keeps_the_best_it_met(solver):
    """A rotation that grows never arrives by Picard's iteration; a decay beside it does, and is not disturbed."""
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    growth = torch.tensor([[[1.5]], [[0.2]]], dtype=torch.float64)
    g = lambda z: (growth * turn @ z.unsqueeze(-1)).squeeze(-1) + 1
    found = solve(g, torch.zeros(2, 2, dtype=torch.float64), solver, 1e-10, 40)
    truth = torch.linalg.solve(torch.eye(2, dtype=torch.float64) - growth * turn, torch.ones(2, 2, 1).double())
    assert found.reached.tolist() == [solver != "picard", True]
    torch.testing.assert_close(found.z[1], truth[1, :, 0])
    if solver == "picard":
        assert int(found.steps[0]) == 40
        z, met = torch.zeros(2, 2, dtype=torch.float64), []
        for _ in range(40):
            met.append((float((g(z) - z)[0].norm() / (1 + z[0].norm())), g(z)[0]))
            z = g(z)
        assert torch.equal(found.z[0], min(met, key=lambda each: each[0])[1])
        assert found.z[0].norm() < 1e-3 * z[0].norm()
    else:
        torch.testing.assert_close(found.z[0], truth[0, :, 0])
    assert float(found.residual[1]) <= 1e-10


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_a_row_that_overflows_keeps_the_best_it_met(solver):
    """3z² + 1 has no fixed point: steps leave every number behind, and what was met before must remain."""
    g = lambda z: 3 * z * z + 1
    start, met = torch.tensor([[1.0, 0.5]]), []

    def watched(z: Tensor) -> Tensor:
        met.append((float((g(z) - z).norm() / (1 + z.norm())), g(z)))
        return g(z)

    found = solve(watched, start, solver, 1e-9, 200)
    assert not bool(found.reached)
    assert int(found.steps) == 200
    residual, best = min((each for each in met if not math.isnan(each[0])), key=lambda each: each[0])
    assert bool(found.z.isfinite().all())
    assert torch.equal(found.z, best)
    assert float(found.residual) == pytest.approx(residual, rel=1e-6)
    if solver == "picard":
        assert math.isnan(met[-1][0])


def test_a_row_that_starts_at_no_number_takes_the_first_number_it_meets():
    g = lambda z: torch.where(z.isnan(), 0.25, 0.5 * z + 1)
    found = solve(g, torch.tensor([[float("nan")]]), "picard", 1e-6, 60)
    assert bool(found.reached)
    torch.testing.assert_close(found.z, torch.tensor([[2.0]]), rtol=0, atol=1e-5)


SCALES = [10.0**k for k in range(-8, 9, 4)]


def scaled_gradients(net: Equilibrium, x: Tensor, form: Tensor, scale: float, path: str) -> Tensor:
    """Of scale · ⟨form, net(x)⟩ by all weights in one row, divided by the scale; batched: by two members at once."""
    weights = {name: weight.detach() for name, weight in net.named_parameters()}
    loss = lambda weights: scale * (torch.func.functional_call(net, weights, (x,)) * form).sum()
    if path == "vmap":
        members = {name: torch.stack((weight, weight)) for name, weight in weights.items()}
        slopes = {name: slope[1] for name, slope in torch.func.vmap(torch.func.grad(loss))(members).items()}
    else:
        leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
        found = torch.autograd.grad(loss(leaves), list(leaves.values()), create_graph=path == "twice")
        slopes = dict(zip(leaves, found, strict=True))
    return torch.cat([slope.detach().flatten() for slope in slopes.values()]) / scale


@pytest.mark.parametrize("path", ["once", "twice", "vmap"])
@pytest.mark.parametrize("solver", list(SOLVERS))
def test_the_gradient_does_not_depend_on_the_scale_of_the_loss(solver, path):
    """At a tolerance anyone trains with: the same number of steps, hence the same gradient but for rounding."""
    net = built(solver=solver, tolerance=1e-4, steps=30)
    x, form = normal(3, 5, 3), normal(3, 5, 1, seed=1) * torch.tensor([1.0, 1e-6, 0.0]).double().view(3, 1, 1)
    truth = scaled_gradients(net, x, form, 1.0, path)
    assert truth.norm() > 0.1
    for scale in SCALES:
        assert (scaled_gradients(net, x, form, scale, path) - truth).norm() < 1e-9 * truth.norm()
    assert torch.equal(scaled_gradients(net, x, form, 2.0**-40, path), truth)
    single = net.float(), x.float(), form.float()
    truth = scaled_gradients(*single, 1.0, path)
    for scale in SCALES:
        assert (scaled_gradients(*single, scale, path) - truth).norm() < 1e-6 * truth.norm()


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e8])
def test_the_gradient_of_a_gradient_does_not_depend_on_the_scale_of_the_loss_and_rows_without_one_have_none(scale):
    weight, x = (0.3 * normal(4, 4)).requires_grad_(), normal(3, 4, seed=1).requires_grad_()
    step = lambda z, weight, x: torch.tanh(z @ weight.T + x)
    form, other = normal(3, 4, seed=2) * torch.tensor([[1.0], [0.0], [1e-9]]), normal(3, 4, seed=3)

    def slopes(scale: float) -> tuple[Tensor, Tensor]:
        z = implicit(step, torch.zeros_like(x), weight, x, solving=Solving("anderson", 1e-6))
        (first,) = torch.autograd.grad((scale * z * form).sum(), x, create_graph=True)
        return first / scale, torch.autograd.grad((first * other).sum(), weight)[0] / scale

    for found, truth in zip(slopes(scale), slopes(1.0), strict=True):
        torch.testing.assert_close(found, truth, rtol=1e-9, atol=1e-14)
        assert truth.norm() > 0.01
    assert bool((slopes(scale)[0][1] == 0).all())


def test_a_sequence_that_arrives_hides_later_tokens_within_the_tolerance_and_one_that_does_not_may_show_them():
    x = normal(6, 8, 3)
    other = torch.cat((x[:, :5], 3 * normal(6, 3, 3, seed=1)), dim=1)
    seen = {}
    for steps in (3, 60):
        net = built(solver="anderson", tolerance=1e-10, steps=steps)
        assert {net.convergence(each).share for each in (x, other)} == {float(steps == 60)}
        seen[steps] = float((net(x) - net(other)).detach()[:, :5].abs().max())
    assert seen[60] < 1e-8
    assert seen[3] > 1e-5


def test_elimination_solves_positive_definite_systems_of_any_size():
    for n in (1, 2, 4, 7):
        factor, right = normal(3, 5, n, n + 2, seed=n), normal(3, 5, n, 2, seed=n + 1)
        matrix = factor @ factor.mT
        torch.testing.assert_close(eliminated(matrix, right), torch.linalg.solve(matrix, right), rtol=1e-8, atol=1e-9)


def test_anderson_survives_a_history_of_parallel_and_vanishing_differences():
    """One direction only, and an exact answer after few steps: nothing is divided by zero."""
    direction = normal(6)
    found = solve(
        lambda z: 0.5 * z + direction, torch.zeros(2, 6, dtype=torch.float64), "anderson", 1e-14, 30, early=False
    )
    torch.testing.assert_close(found.z, (2 * direction).expand(2, 6))
    assert int(found.steps.max()) < 8
    float32 = solve(lambda z: 0.5 * z + direction.float(), torch.zeros(6), "anderson", 1e-7, 100, early=False)
    torch.testing.assert_close(float32.z, 2 * direction.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_stopping_early_changes_no_result(solver):
    weight, x = normal(20, 20) / 12, normal(5, 20, seed=1) * torch.tensor([[0.01], [1.0], [3.0], [0.1], [5.0]])
    g = lambda z: torch.tanh(z @ weight.T + x)
    early, late = (solve(g, torch.zeros_like(x), solver, 1e-9, 80, early=each) for each in (True, False))
    assert torch.equal(early.z, late.z)
    assert torch.equal(early.steps, late.steps)
    assert len(set(early.steps.tolist())) > 1


def test_convergence_is_reported_for_every_sequence():
    net, x = built(tolerance=1e-8, solver="picard"), normal(5, 7, 3) * torch.tensor([0.1, 1, 3, 10, 30]).view(5, 1, 1)
    found = net.convergence(x)
    assert found.share == 1.0
    assert bool((found.residual <= 1e-8).all())
    assert bool((found.steps > 3).all())
    for i in range(5):
        assert int(net.convergence(x[i : i + 1]).steps) == int(found.steps[i])
    hurried = built(tolerance=1e-8, steps=3, solver="picard").convergence(x)
    assert hurried.share == 0.0
    assert hurried.steps.tolist() == [3] * 5
    assert bool((hurried.residual > found.residual).all())


@pytest.mark.parametrize("causal", [True, False])
def test_padding_has_no_part_in_convergence(causal):
    net, lengths = built(tolerance=1e-6, solver="anderson", causal=causal), torch.tensor([7, 1, 4, 6])
    present = torch.arange(7) < lengths[:, None]
    x = torch.where(present[..., None], normal(4, 7, 3), 1e3 * normal(4, 7, 3, seed=1))
    together = net.convergence(x, present)
    for i, length in enumerate(lengths.tolist()):
        alone = net.convergence(x[i : i + 1, :length])
        assert int(alone.steps) == int(together.steps[i])
        torch.testing.assert_close(alone.residual[0], together.residual[i], rtol=1e-6, atol=1e-12)


def test_the_gradient_of_frozen_weights_is_not_asked_for():
    net = built()
    net.block.project.requires_grad_(False)
    net(normal(2, 4, 3)).sum().backward()
    assert net.block.project.weight.grad is None
    assert net.block.combine.weight.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 30}, "4 heads do not divide width 30"),
        ({"solver": "newton"}, "solver must be picard, anderson or broyden, not 'newton'"),
        ({"tolerance": 0.0}, "tolerance of 0.0 is never reached"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"positions": "learnt"}, "positions must be none, sinusoidal or rotary"),
        ({"width": 4}, "rotary positions turn pairs"),
    ],
)
def test_shapes_an_equilibrium_refuses(arguments, message):
    with pytest.raises(BadInput, match=message):
        Equilibrium(**arguments)
