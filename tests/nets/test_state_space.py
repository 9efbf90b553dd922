"""State-space layers in chunks against their recurrences, token by token and in complex numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from torch import Tensor

from tests.each import each
from theodolite.errors import BadInput
from theodolite.nets.load import load
from theodolite.nets.parts.scan import decaying_sum, diagonal_system
from theodolite.nets.state_space import FixedSystem, state_space

SHAPES = [(1, 32), (5, 32), (8, 4), (13, 4), (7, 1), (70, 32)]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sum_by_token(query, key, value, log_decay):
    state, outputs = torch.zeros(*key.shape[:-2], key.shape[-1], value.shape[-1], dtype=key.dtype), []
    for t in range(query.shape[-2]):
        state = log_decay[..., t, None, None].exp() * state + key[..., t, :, None] * value[..., t, None, :]
        outputs.append(torch.einsum("...kv,...k->...v", state, query[..., t, :]))
    return torch.stack(outputs, dim=-2)


def modes_by_token(x, log_size, turn, real, imaginary):
    factor, weight = torch.exp(torch.complex(log_size, turn)), torch.complex(real, imaginary)
    state, outputs = torch.zeros(x.shape[0], *factor.shape, dtype=torch.complex128), []
    for t in range(x.shape[1]):
        state = factor * state + x[:, t, :, None]
        outputs.append((weight * state).sum(-1).real)
    return torch.stack(outputs, dim=1)


def sums(tokens: int, decay: float) -> list[Tensor]:
    sizes = ((2, 3, tokens, 4), (2, 3, tokens, 4), (2, 3, tokens, 5))
    return [*(normal(*size, seed=i) for i, size in enumerate(sizes)), -decay * normal(2, 3, tokens, seed=4).exp()]


def modes(tokens: int, decay: float = 0.1) -> list[Tensor]:
    rest = [normal(3, 4, seed=i) for i in (2, 3, 4)]
    return [normal(2, tokens, 3), -decay * normal(3, 4, seed=1).exp(), 3 * rest[0], rest[1], rest[2]]


def same_both_ways(found, truth, given):
    torch.testing.assert_close(found, truth, rtol=1e-10, atol=1e-10)
    form = normal(*truth.shape, seed=9)
    for ours, theirs in zip(*(torch.autograd.grad((x * form).sum(), given) for x in (found, truth)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@each("decay", [0.0, 0.05, 30.0])
@each(("tokens", "chunk"), SHAPES)
def test_a_decaying_sum_in_chunks_is_the_recurrence(tokens, chunk, decay):
    given = [x.requires_grad_() for x in sums(tokens, decay)]
    same_both_ways(decaying_sum(*given, chunk=chunk), sum_by_token(*given), given)


@each("decay", [0.0, 0.1, 30.0])
@each(("tokens", "chunk"), SHAPES)
def test_a_diagonal_system_in_chunks_is_the_complex_recurrence(tokens, chunk, decay):
    given = [x.requires_grad_() for x in modes(tokens, decay)]
    same_both_ways(diagonal_system(*given, chunk=chunk), modes_by_token(*given), given)


@pytest.mark.parametrize("decay", [1e-4, 1.0, 300.0])
def test_a_thousand_tokens_in_float32_stay_near_float64(decay):
    for given, compute, truth in (
        (sums(1000, decay), decaying_sum, sum_by_token),
        (modes(1000, decay), diagonal_system, modes_by_token),
    ):
        exact = truth(*given)
        leaves = [x.float().requires_grad_() for x in given]
        found = compute(*leaves)
        assert float((found.detach() - exact).norm() / exact.norm()) < 1e-3
        assert all(torch.isfinite(s).all() for s in torch.autograd.grad(found.square().sum(), leaves))


@pytest.mark.parametrize("compute", [decaying_sum, diagonal_system])
def test_chunks_under_vmap_give_every_member_its_own(compute):
    given = sums(11, 0.1) if compute is decaying_sum else modes(11)
    members = [torch.stack([x, x.flip(0)]) for x in given]
    loss = lambda *given: compute(*given, chunk=4).square().sum()
    slopes = torch.func.vmap(torch.func.grad(loss, argnums=tuple(range(len(given)))))(*members)
    for i in range(2):
        leaves = [x[i].clone().requires_grad_() for x in members]
        for found, truth in zip(slopes, torch.autograd.grad(loss(*leaves), leaves), strict=True):
            torch.testing.assert_close(found[i], truth, rtol=1e-10, atol=1e-12)


def test_a_fixed_system_is_the_exact_solution_of_its_differential_equation():
    """h' = λ h + x with x constant over each step, by matrix exponentials of the system with its input appended."""
    layer = FixedSystem(3, 4).double()
    x = normal(1, 12, 3)
    truth = torch.zeros(1, 12, 3, dtype=torch.float64)
    with torch.no_grad():
        for channel in range(3):
            for mode in range(4):
                rate = complex(-layer.log_rate[channel, mode].exp(), layer.frequency[channel, mode])
                weight = complex(layer.weight[0, channel, mode], layer.weight[1, channel, mode])
                system = np.array([[rate, 1], [0, 0]])
                hold = expm(system * float(layer.log_step[channel].exp()))  # torch's own is off by 1e-11
                state = 0j
                for t in range(12):
                    state = hold[0, 0] * state + hold[0, 1] * float(x[0, t, channel])
                    truth[0, t, channel] += 2 * (weight * state).real
        truth = layer.combine(torch.nn.functional.gelu(truth + layer.direct * x))
        torch.testing.assert_close(layer(x), truth, rtol=1e-12, atol=1e-13)


def test_modes_and_steps_start_as_described():
    layer = FixedSystem(5, 3)
    torch.testing.assert_close(layer.frequency[2].detach(), torch.tensor([0.0, math.pi, 2 * math.pi]))
    torch.testing.assert_close(layer.log_rate.exp().detach(), torch.full((5, 3), 0.5))
    torch.testing.assert_close(layer.log_step.exp().detach().squeeze(), torch.logspace(-3, -1, 5))


@pytest.mark.parametrize("shape", [{"selective": False}, {"state": 5}, {"kernel": 1}, {"heads": 2}])
def test_every_argument_changes_the_function_and_every_parameter_counts(shape):
    net, plain = (load("state-space", width=8, **each).module.double() for each in (shape, {}))
    x = normal(3, 9, 4)
    assert not torch.allclose(net(x), plain(x))
    net(x).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("selective", [True, False])
def test_a_prefix_gives_the_same_outputs_over_many_chunks(selective):
    net, x = state_space(width=16, selective=selective).double(), normal(1, 150, 4)
    whole = net(x)
    for tokens in (1, 31, 32, 33, 100):
        torch.testing.assert_close(net(x[:, :tokens]), whole[:, :tokens], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"width": 30}, "4 heads do not divide width 30"), ({"state": 0}, "state must be"), ({"kernel": 0}, "kernel")],
)
def test_shapes_a_state_space_net_refuses(arguments, message):
    with pytest.raises(BadInput, match=message):
        state_space(**arguments)


def test_heads_are_asked_of_selective_layers_alone():
    assert load("state-space", width=5, selective=False).shape["width"] == 5
    with pytest.raises(BadInput, match="4 heads do not divide width 5"):
        load("state-space", width=5)
