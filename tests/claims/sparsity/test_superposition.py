"""Functions of one variable in sums: their roughness against what is known, and what a short training gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from theodolite.claims.sparsity.superposition import Series, roughness, univariate_roughness
from theodolite.errors import BadInput
from theodolite.graphs.families import kolmogorov_arnold
from theodolite.measures import measure
from theodolite.nets.compositional_net import CompositionalNet


@pytest.mark.parametrize("waves", [1, 3])
def test_roughness_of_a_cosine_is_known_and_of_a_line_nought(waves):
    t = torch.linspace(0, 1, 4001, dtype=torch.float64)
    values = torch.stack((5 * torch.cos(2 * math.pi * waves * t) + 2, 0 * t + t))
    found = roughness(values)
    assert found[0] == pytest.approx(8 * math.sqrt(2) * math.pi * waves**2, rel=1e-2)
    assert found[1] == pytest.approx(0, abs=1e-6)


def test_roughness_of_the_functions_in_a_network_does_not_know_their_scale():
    torch.manual_seed(0)
    net, x = CompositionalNet(kolmogorov_arnold(2), width=6), torch.rand(500, 2)
    net.requires_grad_(False)
    inner, outer = univariate_roughness(net, x)
    assert inner
    assert outer
    first = net.stages[0].blocks[0]  # pyright: ignore[reportIndexIssue]
    for parameter in (first.combine, first.linear, first.bias):  # pyright: ignore[reportAttributeAccessIssue]
        parameter.mul_(3)
    assert univariate_roughness(net, x)[0] == pytest.approx(inner, rel=1e-3)
    dense = CompositionalNet("binary-tree", features=2)
    assert univariate_roughness(dense, x) == (None, None)


def test_the_targets_have_variance_one_and_are_no_sum_of_two_functions():
    x = 2 * torch.rand(20_000, 2, generator=torch.Generator().manual_seed(0)) - 1
    for name in ("smooth", "rough"):
        function = Series(name, np.random.default_rng(0), torch.device("cpu"))
        assert float(function(x).var()) == pytest.approx(1, abs=0.05)
        a, b = x, x.roll(1, dims=0)
        mixed = (
            function(a)
            + function(b)
            - function(torch.stack((a[:, 0], b[:, 1]), 1))
            - function(torch.stack((b[:, 0], a[:, 1]), 1))
        )
        assert float(mixed.square().mean()) > 0.1


def test_a_short_training_learns_and_repeats():
    config = {"target": "smooth", "shape": "superposition", "width": 6, "depth": 1, "seeds": 2, "steps": 80,
              "batch": 64, "rate": 2e-2}  # fmt: skip
    row = measure("superposition", config, 0, "cpu")
    assert all(m["unexplained"] < 0.6 and m["inner"] > 0 and m["outer"] > 0 for m in row["members"])
    assert measure("superposition", config, 0, "cpu") == row
    general = measure("superposition", {**config, "shape": "general", "steps": 2}, 0, "cpu")
    assert all(m["inner"] is None for m in general["members"])


def test_an_unknown_target_is_refused():
    with pytest.raises(BadInput, match="'wild'"):
        Series("wild", np.random.default_rng(0), torch.device("cpu"))
