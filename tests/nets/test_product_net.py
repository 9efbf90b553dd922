"""Blocks of real degree: what they compute, what they cost, and that they train."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from theodolite.errors import BadInput
from theodolite.nets.load import load, seeded
from theodolite.nets.product_net import ProductBlock, ProductNet, signed_power
from theodolite.nets.size import count_parameters


def built(*args, seed=0, **kwargs):
    with seeded(seed):
        return ProductNet(*args, **kwargs).double()


def test_a_net_of_whole_degree_computes_the_formula_of_its_docstring():
    net = built(3, 2, depth=2, width=5, degree=3.0)
    x = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    w = {name: p.detach().numpy() for name, p in net.named_parameters()}
    unit = lambda v: v / np.sqrt((v**2).mean(axis=1, keepdims=True) + 1e-6)
    state = x.numpy() @ w["embed.weight"].T
    for block in range(2):
        read = state if block == 0 else unit(state)
        product = np.ones_like(state)
        for k in range(3):
            rows = slice(5 * k, 5 * k + 5)
            product *= read @ w[f"blocks.{block}.factors.weight"][rows].T + w[f"blocks.{block}.factors.bias"][rows]
        state = state + unit(product) / math.sqrt(2)
    expected = unit(state) @ w["read.weight"].T + w["read.bias"]
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("degree", [2, 2.25, 2.5, 2.75, 3, 4.5])
def test_a_share_block_has_the_weights_of_its_degree_exactly(degree):
    block = ProductBlock(8, degree, "share", "d", bias=False)
    assert count_parameters(block) == degree * 8 * 8
    assert block.degree == degree


@pytest.mark.parametrize(("matrices", "count"), [("d-1", 2), ("d", 3), ("d+1", 4)])
def test_the_count_of_matrices_is_the_one_asked_for(matrices, count):
    assert count_parameters(ProductBlock(6, 3, "share", matrices, bias=False)) == count * 6 * 6


def test_each_unit_of_a_share_block_has_its_own_degree_along_a_line():
    """Q(t·x) of a unit with d factors is t^d Q(x)."""
    with seeded(3):
        block = ProductBlock(4, 2.75, "share", "d", bias=False).double()
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ratio = (block(2 * x) / block(x)).log2()
    expected = torch.tensor([3.0, 3, 3, 2], dtype=torch.float64).expand(5, 4)
    torch.testing.assert_close(ratio, expected)


@pytest.mark.parametrize("power", ["signed", "learnt"])
def test_a_block_of_powers_has_its_degree_far_from_zero(power):
    with seeded(3):
        block = ProductBlock(4, math.e, power, "d", bias=False).double()
    x = 1e4 * torch.randn(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    growth = (block(2 * x) / block(x)).log2()
    torch.testing.assert_close(growth.median(), torch.tensor(math.e, dtype=torch.float64), rtol=1e-6, atol=0)
    assert block.degree == pytest.approx(math.e)


def test_a_signed_power_is_odd_exact_at_exponent_one_and_has_a_finite_slope_at_zero():
    u = torch.linspace(-3, 3, 13, dtype=torch.float64, requires_grad=True)
    assert torch.equal(signed_power(u, 1.0), u * 1.0)
    found = signed_power(u, 0.7)
    torch.testing.assert_close(found, -found.flip(0))
    truth = u.sign() * u.abs() ** 0.7
    torch.testing.assert_close(found[u.abs() > 0.4], truth[u.abs() > 0.4], rtol=2e-3, atol=0)
    (slope,) = torch.autograd.grad(found.sum(), u)
    assert torch.isfinite(slope).all()
    assert (slope > 0).all()


@pytest.mark.parametrize("degree", [2, 3])
def test_without_biases_a_net_sees_only_one_half_of_a_function(degree):
    """Why there are biases: odd degrees make odd functions, even ones even functions."""
    x = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    bare = built(4, 1, degree=degree, bias=False, residual=False)
    torch.testing.assert_close(bare(-x), (-1) ** degree * bare(x))
    whole = built(4, 1, degree=degree, residual=False)
    assert not torch.allclose(whole(-x), whole(x), atol=1e-3)
    assert not torch.allclose(whole(-x), -whole(x), atol=1e-3)


@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("depth", [2, 12])
def test_the_signal_keeps_its_size_at_any_depth_at_first(degree, depth):
    """Outputs and input gradients over many inputs lie within a factor of 10 of 1: neither vanishes nor explodes."""
    net = built(8, 1, depth=depth, width=32, degree=float(degree))
    x = torch.randn(200, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y = net(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    for size in (y.detach().std(), slope.norm(dim=1).median()):
        assert 0.1 < float(size) < 10


_STEPS = 60

# (degrees, power): whole, mixed and real, shallow and deep
TRAINED = [
    ((3,) * 12, "share"),
    ((5,) * 4, "share"),
    ((math.e,) * 2, "share"),
    ((math.e,) * 2, "signed"),
    ((2.5,) * 2, "learnt"),
]


@pytest.mark.parametrize(
    ("degrees", "power"), TRAINED, ids=lambda v: v if isinstance(v, str) else f"{v[0]:.2g}x{len(v)}"
)
def test_nets_of_every_degree_and_depth_train_at_two_rates(degrees, power):
    """The product of two variables plus a wave: a constant leaves 1, the best linear map nearly all of it."""
    with seeded(0):
        members = [ProductNet(3, 1, width=12, degrees=list(degrees), power=power) for _ in range(4)]
    weights, _ = stack_module_state(members)
    weights = {name: w.detach().clone().requires_grad_() for name, w in weights.items()}
    generator = torch.Generator().manual_seed(5)
    rates = torch.tensor([0.005, 0.005, 0.02, 0.02])
    run = vmap(lambda own, x: functional_call(members[0], own, (x,))[:, 0])
    squares = {name: torch.zeros_like(w) for name, w in weights.items()}

    def left(x):
        y = (x[..., 0] * x[..., 1] + torch.sin(2 * x[..., 2])) / math.sqrt(1.5)
        return (run(weights, x) - y).square().mean(dim=1)

    for step in range(_STEPS):
        loss = left(torch.randn(4, 64, 3, generator=generator))
        gradients = torch.autograd.grad(loss.sum(), list(weights.values()))
        with torch.no_grad():
            for (name, w), g in zip(weights.items(), gradients, strict=True):
                squares[name].lerp_(g.square(), 0.05)
                size = rates * (1 - step / _STEPS)
                w -= (
                    size.view(-1, *[1] * (w.dim() - 1))
                    * g
                    / (squares[name] / (1 - 0.95 ** (step + 1))).sqrt().add(1e-8)
                )
    final = left(torch.randn(4, 500, 3, generator=generator)).detach()
    assert torch.isfinite(final).all()
    assert float(final.max()) < 0.35


def test_learnt_exponents_are_trained_and_reported():
    net = built(3, 1, depth=1, width=4, degree=2.5, power="learnt")
    before = net.block_degrees()
    assert before == pytest.approx([2.5])
    x = torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (net(x) - x.prod(dim=1, keepdim=True)).square().mean().backward()
    exponents = net.blocks[0].exponents
    assert (exponents.grad != 0).all()
    with torch.no_grad():
        exponents += 1.0
    assert net.block_degrees()[0] > before[0]


def test_degrees_are_read_from_text_and_replace_depth_and_degree():
    by_text, by_list = (load("product-net", degrees=d).module for d in ("3,2.5", [3, 2.5]))
    assert by_text.block_degrees() == by_list.block_degrees() == [3.0, 2.5]
    assert by_text.depth == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"degree": 0.5}, "a number of at least 1, not 0.5"),
        ({"degree": math.nan}, "at least 1, not nan"),
        ({"degrees": "3,x"}, "degrees must be numbers"),
        ({"degrees": [3, 0]}, "at least 1, not 0"),
        ({"power": "cubed"}, "power must be share, signed or learnt, not 'cubed'"),
        ({"matrices": "2d"}, "matrices must be"),
        ({"matrices": "d-1", "degree": 1.5}, "use a degree of at least 2"),
        ({"width": 0}, "width must be a whole number"),
    ],
)
def test_bad_arguments_are_answered_with_one_sentence(arguments, sentence):
    with pytest.raises(BadInput, match=sentence):
        ProductNet(4, 1, **arguments)
