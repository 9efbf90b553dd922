"""Blocks of mixed degrees, with one matrix less or more: against explicit products, and their order against ranks."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import copy
import itertools
import math

import pytest
import torch

from tests.each import each
from theodolite import separation_rank
from theodolite.errors import BadInput
from theodolite.nets.degree_attention import DegreeAttention
from theodolite.nets.load import load
from theodolite.nets.polynomial_mixer import PolynomialMixer
from theodolite.nets.polynomial_mlp import PolynomialMLP
from theodolite.nets.size import count_parameters
from theodolite.theory.cap import homogeneous_cap
from theodolite.theory.degree import COUNTS, matrices_per_block
from theodolite.theory.gated_cap import gated_attention_cap

NETS = ("polynomial-mlp", "degree-attention", "polynomial-mixer")


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("degrees", [(2,), (3, 2), (2, 5)])
def test_a_fully_connected_layer_by_explicit_products(count, degrees):
    net = PolynomialMLP(features=5, width=3, degrees=degrees, matrices=count).double()
    x = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    hidden = x @ net.embed.weight.T
    for degree, layer in zip(degrees, net.layers, strict=True):
        number = degree - 1 if count == "d-1" else degree
        product = torch.ones_like(hidden) if count != "d-1" else hidden.clone()
        for k in range(number):
            product = product * (hidden @ layer.factors.weight[3 * k : 3 * k + 3].T)
        hidden = product @ layer.combine.weight.T if count == "d+1" else product
    torch.testing.assert_close(net(x), hidden)


@each("count", COUNTS)
@each("degrees", [(2, 2), (3,), (4, 3), (5, 2)])
def test_square_matrices_are_counted_as_asked(count, degrees):
    """At equal budget every degree has the same measured parameters, whatever enters and leaves the blocks."""
    spent = 9 * sum(matrices_per_block(degree, count) for degree in degrees)
    assert count_parameters(load("degree-attention", width=3, degrees=degrees, matrices=count).module) == spent
    assert (
        count_parameters(load("polynomial-mlp", width=3, features=3, degrees=degrees, matrices=count).module) == spent
    )
    wide = load("polynomial-mlp", width=3, features=7, outputs=2, degrees=degrees, matrices=count).module
    assert count_parameters(wide) == spent + 3 * 7 + 2 * 3
    mixer = load("polynomial-mixer", width=3, tokens=3, channel_degree=2, degrees=degrees, matrices=count).module
    assert count_parameters(mixer) == spent + 9 * len(degrees) * matrices_per_block(2, count)


@pytest.mark.parametrize("net", NETS)
def test_equal_degrees_are_the_depth_and_degree_they_stand_for(net):
    listed, plain = load(net, degrees="3,3", width=2), load(net, degree=3, depth=2, width=2)
    again = load(net, degrees=[3, 3], width=2, depth=7, degree=5)
    assert listed.shape == again.shape
    assert (listed.shape["depth"], listed.shape["degrees"]) == (2, [3, 3])
    assert "degree" not in listed.shape
    for one in (listed, again):
        assert all(torch.equal(a, b) for a, b in zip(one.module.parameters(), plain.module.parameters(), strict=True))


@each("net", NETS)
@each(
    ("shape", "told"),
    [
        ({"degrees": "2.5,3"}, "degree 2.5 is not polynomial"),
        ({"degrees": "3,1"}, "degree 1 makes a linear net"),
        ({"degrees": "3,0"}, "at least 1, not 0"),
        ({"degrees": "3,two"}, "numbers with commas"),
        ({"degrees": ""}, "numbers with commas"),
        ({"degrees": [True]}, "numbers with commas"),
        ({"matrices": "2d"}, "must be d-1, d or d\\+1"),
    ],
)
def test_wrong_degrees_and_counts_are_refused_in_a_sentence(net, shape, told):
    with pytest.raises(BadInput, match=told):
        load(net, width=2, **shape)


def test_a_layer_that_multiplies_with_its_input_needs_one_of_its_own_width():
    with pytest.raises(BadInput, match="leave embed on"):
        PolynomialMLP(features=5, width=3, matrices="d-1", embed=False)
    same = PolynomialMLP(features=3, width=3, matrices="d-1", embed=False)
    assert isinstance(same.embed, torch.nn.Identity)


@each("count", COUNTS)
@each(
    ("family", "shape", "degrees"),
    [
        (DegreeAttention, {"width": 2}, (2, 3)),
        (DegreeAttention, {"width": 2}, (4,)),
        (PolynomialMixer, {"width": 2, "tokens": 3, "channel_degree": 2}, (2, 3)),
        (PolynomialMixer, {"width": 2, "tokens": 3}, (3,)),
    ],
)
def test_a_net_is_homogeneous_of_its_total_degree(count, family, shape, degrees):
    net = family(degrees=degrees, matrices=count, **shape).double()
    x = torch.randn(2, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    total = math.prod(degrees) * shape.get("channel_degree", 1) ** len(degrees)
    torch.testing.assert_close(net(2 * x), 2**total * net(x))
    assert float(net(x).detach().abs().max()) > 0


def test_with_one_matrix_less_the_mixer_of_linear_channels_leaves_them_alone():
    block = PolynomialMixer(tokens=3, width=2, degree=2, matrices="d-1").double().blocks[0]
    x = torch.randn(4, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mixed = torch.einsum("st,btc->bsc", block.across_tokens.factors.weight, x)
    torch.testing.assert_close(block(x), x * mixed)
    torch.testing.assert_close(copy.deepcopy(block).across_channels(x), x)


@pytest.mark.parametrize(
    ("degrees", "width", "tokens", "rank"),
    [
        ("2,3", 2, 6, 25),
        ("3,2", 2, 6, 18),
        ("2,4", 2, 6, 50),
        ("4,2", 2, 6, 52),
        ("2,2,2", 2, 4, 27),
        ("4", 3, 6, 13),
        ("2,3", 2, 2, 15),
    ],
)
def test_attention_reaches_the_cap_of_mixed_blocks_in_every_order(degrees, width, tokens, rank):
    """The cap knows the order of the blocks; one draw that reaches it proves the rank of almost all weights."""
    found = separation_rank("degree-attention", degrees=degrees, width=width, tokens=tokens, repeats=1)
    cap = gated_attention_cap([int(d) for d in degrees.split(",")], width, tokens // 2, tokens // 2)
    assert found.rank == found.cap == cap == rank


def test_fully_connected_ranks_do_not_depend_on_the_order_of_blocks():
    for order in set(itertools.permutations((3, 2, 2))):
        found = separation_rank("polynomial-mlp", degrees=order, width=2, features=6, repeats=1)
        assert found.rank == found.cap == homogeneous_cap(12, 2, 2)  # 3 inputs a side enter through 2 numbers
