"""The delta rule in chunks against its own sentence, token by token; what its eigenvalues let it do."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.each import each
from theodolite.errors import BadInput
from theodolite.nets.delta_net import DeltaRule, delta_net
from theodolite.nets.load import load
from theodolite.nets.parts.scan import causal_window, delta_rule


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def token_by_token(query, key, value, rate, log_decay=None):
    """S ← α S, then S ← S + β k (v − Sᵀk)ᵀ for every step of the token, then qᵀS."""
    tokens = query.shape[-2]
    steps = key.shape[-2] // tokens
    state, outputs = torch.zeros(*key.shape[:-2], key.shape[-1], value.shape[-1], dtype=key.dtype), []
    for t in range(tokens):
        if log_decay is not None:
            state = state * log_decay[..., t].exp()[..., None, None]
        for j in range(t * steps, (t + 1) * steps):
            k, v, b = key[..., j, :], value[..., j, :], rate[..., j, None, None]
            state = state + b * k[..., :, None] * (v - torch.einsum("...kv,...k->...v", state, k))[..., None, :]
        outputs.append(torch.einsum("...kv,...k->...v", state, query[..., t, :]))
    return torch.stack(outputs, dim=-2)


def problem(tokens: int, steps: int, decay: float | None, most: float = 2.0):
    query, key = normal(2, 3, tokens, 4), normal(2, 3, tokens * steps, 4, seed=1)
    key = key / key.norm(dim=-1, keepdim=True)
    value, rate = normal(2, 3, tokens * steps, 5, seed=2), most * torch.sigmoid(normal(2, 3, tokens * steps, seed=3))
    log_decay = None if decay is None else -decay * normal(2, 3, tokens, seed=4).exp()
    return [x for x in (query, key, value, rate, log_decay) if x is not None]


@each("decay", [None, 0.0, 0.05, 20.0])
@each("steps", [1, 2, 3])
@each(("tokens", "chunk"), [(1, 32), (5, 32), (8, 4), (13, 4), (7, 1), (70, 32)])
def test_chunks_give_the_recurrence_forward_and_backward(tokens, chunk, steps, decay):
    given = [x.requires_grad_() for x in problem(tokens, steps, decay)]
    found, truth = delta_rule(*given, chunk=chunk), token_by_token(*given)
    torch.testing.assert_close(found, truth, rtol=1e-10, atol=1e-10)
    form = normal(*truth.shape, seed=5)
    for ours, theirs in zip(*(torch.autograd.grad((x * form).sum(), given) for x in (found, truth)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_chunks_under_vmap_give_every_member_its_own():
    members = [torch.stack([x, x.flip(0)]) for x in problem(11, 2, 0.1)]
    loss = lambda *given: delta_rule(*given, chunk=4).square().sum()
    slopes = torch.func.vmap(torch.func.grad(loss, argnums=tuple(range(5))))(*members)
    for i in range(2):
        leaves = [x[i].clone().requires_grad_() for x in members]
        for found, truth in zip(slopes, torch.autograd.grad(loss(*leaves), leaves), strict=True):
            torch.testing.assert_close(found[i], truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("decay", [1e-4, 1.0, 300.0])
def test_a_thousand_tokens_in_float32_stay_near_float64(decay):
    """However strong a decay is, nothing overflows; reflections do not add up rounding errors."""
    given = problem(1000, 1, decay)
    truth = token_by_token(*given)
    leaves = [x.float().requires_grad_() for x in given]
    found = delta_rule(*leaves)
    torch.testing.assert_close(found.double(), truth, rtol=1e-3, atol=1e-3)
    for slope in torch.autograd.grad(found.square().sum(), leaves):
        assert torch.isfinite(slope).all()


def test_a_rate_of_two_turns_the_state_around_and_so_counts_parity():
    """One key, nothing written after the first token: S changes its sign at every 1 and stays at every 0."""
    bits = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1] * 40, dtype=torch.float64)
    tokens = len(bits) + 1
    one = torch.ones(1, tokens, 1, dtype=torch.float64)
    rate = torch.cat((torch.ones(1, dtype=torch.float64), 2 * bits)).unsqueeze(0)
    value = torch.zeros_like(one)
    value[0, 0] = 1
    found = delta_rule(one, one, value, rate)[0, 1:, 0]
    torch.testing.assert_close(found, 1 - 2 * (bits.cumsum(0) % 2))


@pytest.mark.parametrize(("negative", "least"), [(True, -1.0), (False, 0.0)])
def test_the_eigenvalues_lie_where_they_are_said_to_lie(negative, least):
    rule = DeltaRule(8, 2, 1, True, negative, 4)
    with torch.no_grad():
        rule.rate.bias.fill_(30.0)  # β at its end
        rate = rule.most * torch.sigmoid(rule.rate(torch.zeros(1, 8)))
    assert torch.allclose(1 - rate, torch.tensor(least))


def test_two_reflections_a_token_rotate_and_one_cannot():
    """A rotation of the plane by 120° is the product of two reflections: order 3, which one reflection never has."""
    angle = math.pi / 3
    keys = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64).repeat(7, 1)[None]
    value = torch.zeros(1, 14, 2, dtype=torch.float64)
    value[0, :2] = torch.eye(2, dtype=torch.float64)
    rate = torch.full((1, 14), 2.0, dtype=torch.float64)
    query = torch.tensor([0.3, -1.1], dtype=torch.float64).expand(1, 7, 2)
    found = delta_rule(query, keys, value, rate)[0]
    torch.testing.assert_close(found[3:], found[:4], rtol=1e-12, atol=1e-12)
    assert (found[1] - found[0]).norm() > 0.5


def test_the_window_is_a_causal_depthwise_convolution():
    x, taps = normal(2, 9, 5), normal(5, 4, seed=1)
    torchs = torch.nn.functional.conv1d(torch.nn.functional.pad(x.transpose(1, 2), (3, 0)), taps[:, None], groups=5)
    torch.testing.assert_close(causal_window(x, taps), torchs.transpose(1, 2))


def test_every_head_starts_with_a_memory_of_its_own():
    rule = DeltaRule(32, 4, 1, True, True, 4)
    kept = torch.nn.functional.softplus(rule.decay.bias.detach())
    torch.testing.assert_close(kept, torch.logspace(-3, -1, 4), rtol=1e-4, atol=0)


@pytest.mark.parametrize("shape", [{"products": 2}, {"gated": False}, {"negative": False}, {"kernel": 1}])
def test_every_argument_changes_the_function_and_every_parameter_counts(shape):
    net, plain = (load("delta-net", width=8, heads=2, **each).module.double() for each in (shape, {}))
    x = normal(3, 9, 4)
    assert not torch.allclose(net(x), plain(x))
    net(x).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad.abs().max() > 0, name


def test_a_prefix_gives_the_same_outputs_over_many_chunks():
    net, x = delta_net(width=16, products=2).double(), normal(1, 150, 4)
    whole = net(x)
    for tokens in (1, 31, 32, 33, 100):
        torch.testing.assert_close(net(x[:, :tokens]), whole[:, :tokens], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 30}, "4 heads do not divide width 30"),
        ({"products": 0}, "products must be"),
        ({"kernel": 0}, "kernel"),
    ],
)
def test_shapes_a_delta_net_refuses(arguments, message):
    with pytest.raises(BadInput, match=message):
        delta_net(**arguments)
