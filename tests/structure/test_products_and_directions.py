"""Factors of targets that change their sign, and functions of sums over all variables, seen in a surrogate."""

import numpy as np
import torch

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import structure_key
from theodolite.structure.search.directions import dimensions, hidden_sums, mean_turn, of_sums
from theodolite.structure.search.factors import find_factors
from theodolite.structure.search.interactions import propose
from theodolite.structure.search.nesting import turns
from theodolite.structure.surrogate.surrogate import SurrogateSource

WEIGHTS = np.array([[0.9, -0.5, 0.6, 0.3, -0.7], [0.2, 0.8, -0.4, 0.9, 0.5]])


class Exact:
    """A function as an ensemble whose members agree."""

    members, chunk = 3, 1 << 13

    def __init__(self, function):
        self.function = function

    def everywhere(self, rows):
        return self.function(rows.expand(self.members, *rows.shape))

    def slopes(self, rows):
        points = rows.double().requires_grad_()
        (slopes,) = torch.autograd.grad(self.function(points).sum(), points)
        return slopes.expand(self.members, *slopes.shape)

    def only(self, chosen):
        return self


def source(function, count):
    x = np.random.default_rng(0).uniform(-1, 1, (300, count))
    y = function(torch.from_numpy(x)).numpy()
    plain = (np.zeros(count), np.ones(count), 0.0, 1.0)
    return SurrogateSource(tuple("abcdefgh"[:count]), x, y, np.zeros(300, dtype=np.int64), Exact(function), *plain)


def along(x, place):
    return x @ torch.from_numpy(WEIGHTS[place])


def test_factors_of_a_product_that_changes_its_sign():
    asked = source(lambda x: torch.sin(2 * x[..., 0]) * x[..., 1] * (x[..., 2] + torch.tanh(3 * x[..., 3])), 4)
    found = find_factors(asked, range(4), np.random.default_rng(0))
    assert found[0] == [frozenset((0,)), frozenset((1,)), frozenset((2, 3))]


def test_a_sum_has_no_factors():
    asked = source(lambda x: x[..., 0] * x[..., 1] + torch.tanh(2 * x[..., 2]) + x[..., 3] ** 2, 4)
    assert find_factors(asked, range(4), np.random.default_rng(0)) == []


def test_directions_are_counted():
    draw = np.random.default_rng(0)
    one = source(lambda x: torch.tanh(along(x, 0)), 5)
    two = source(lambda x: torch.tanh(2 * along(x, 0)) + torch.sin(2 * along(x, 1)), 5)
    assert [dimensions(asked, range(5), draw) for asked in (one, two)] == [1, 2]
    assert mean_turn(turns(one, draw), range(5)) < 1e-6 < mean_turn(turns(two, draw), range(5))


def test_graphs_of_sums_where_slopes_speak_for_them():
    draw, names = np.random.default_rng(0), tuple("abcde")
    bent = source(lambda x: torch.exp(x[..., 0] ** 2 + torch.sin(x[..., 1]) + (x[..., 2:] ** 3).sum(-1)), 5)
    two = source(lambda x: torch.tanh(2 * along(x, 0)) + torch.sin(2 * along(x, 1)), 5)
    nested = source(lambda x: torch.sin(3 * x[..., 0] * x[..., 1] + x[..., 2] * x[..., 3] * x[..., 4]), 5)
    assert hidden_sums(bent, turns(bent, draw), range(5), draw) == [of_sums(names, range(5), 1)]
    assert hidden_sums(two, turns(two, draw), range(5), draw) == [of_sums(names, range(5), 2)]
    assert hidden_sums(nested, turns(nested, draw), range(5), draw) == []


def test_rows_show_a_product_that_changes_its_sign():
    x = np.random.default_rng(1).uniform(-1, 1, (150, 3))
    y = np.sin(2 * x[:, 0]) * (x[:, 1] + np.tanh(3 * x[:, 2]))
    found = propose(x, y, tuple("abc"), np.random.default_rng(0), quick=True)
    product = CompositionalGraph(tuple("abc"), (Node("t1", ("b", "c")), Node("y", ("a", "t1"), "product")))
    assert structure_key(product, kinds=True) in [structure_key(one.graph, kinds=True) for one in found]
