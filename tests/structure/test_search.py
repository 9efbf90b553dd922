"""The graph found is that of the function: by hand, drawn at random, renamed, and under functions of the output."""

import numpy as np
import pytest

from tests.each import each
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import equivalent
from theodolite.graphs.families import random_tree
from theodolite.structure.data.black_box import CallableSource
from theodolite.structure.search.search import search
from theodolite.structure.surrogate.evidence import gather
from theodolite.tasks.shared.constituents import ComposedFunction


def found_in(function, ranges, variables=None, points=64, seed=0):
    source = CallableSource(function, ranges, variables)
    generator = np.random.default_rng(seed)
    return search(gather(source, generator, points), source, generator)


def graph_of(text, variables):
    """'h=ab y=+hc': node = inputs, + and * for kinds."""
    nodes = []
    for part in text.split():
        name, inputs = part.split("=")
        kind = {"+": "sum", "*": "product"}.get(inputs[0], "general")
        nodes.append(Node(name, tuple(inputs.lstrip("+*")), kind))
    return CompositionalGraph(tuple(variables), tuple(nodes))


def three(a, b, c):
    return np.tanh(a + b * c) + np.sin(a * c + 0.3 * b)


def two(u, v):
    return u * v + np.sin(u + 2 * v) + 0.2 * u * u


CASES = {
    "product": ("abc", "y=*abc", lambda a, b, c: a * b * c),
    "sum": ("abc", "y=+abc", lambda a, b, c: a + np.sin(b) + c**3),
    "sum of products": ("abcd", "g=*ab h=*cd y=+gh", lambda a, b, c, d: a * b + c * d),
    "product of sums": ("abcd", "g=+ab h=+cd y=*gh", lambda a, b, c, d: (a + b) * (c + d)),
    "function of a sum": ("abc", "g=+abc y=g", lambda a, b, c: np.sin(a + b + c)),
    "function of a product": ("abcd", "g=*abc h=g y=+hd", lambda a, b, c, d: np.sin(2 * a * b * c) + d),
    "exponential of a sum": ("abc", "y=*abc", lambda a, b, c: np.exp(a + b + c)),
    "ratio": ("abcd", "g=*bc h=+ga y=*hd", lambda a, b, c, d: (a + b * c) / (d + 2)),
    "maximum": ("abcd", "g=ab h=cd y=gh", lambda a, b, c, d: np.maximum(a * b, c - d)),
    "maximum of three": ("abc", "y=abc", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "absolute values": ("abcd", "g=ab h=cd y=+gh", lambda a, b, c, d: np.abs(a * b) + np.abs(c - d)),
    "unused": ("abcd", "g=ac y=gd", lambda a, b, c, d: two(two(a, c), d)),
    "shared variable": ("abcde", "g=abc h=cde y=gh", lambda a, b, c, d, e: two(three(a, b, c), three(c + 0.1, d, e))),
    "shared in a sum": ("abcde", "g=abc h=cde y=+gh", lambda a, b, c, d, e: three(a, b, c) + three(c + 0.1, d, e)),
    "shared, and direct": (
        "abcde",
        "g=abc h=cde y=ghc",
        lambda a, b, c, d, e: two(three(a, b, c), three(c + 0.1, d, e)) + c * three(a, b, c),
    ),
    "shared by two small nodes": ("abc", "g=ab h=bc y=gh", lambda a, b, c: two(two(a, b), two(b, c))),
    "shared node": (
        "abcdef",
        "g=ab h=gcd k=gef y=hk",
        lambda a, b, c, d, e, f: two(three(two(a, b), c, d), three(two(a, b), e, f)),
    ),
    "two shared together": (
        "abcst",
        "g=ast h=bs k=ct y=ghk",
        lambda a, b, c, s, t: three(three(a, s, t), two(b, s), two(c, t)),
    ),
    "two shared one above the other": (
        "abcst",
        "e=as g=et h=bs k=ct y=ghk",
        lambda a, b, c, s, t: three(two(two(a, s), t), two(b, s), two(c, t)),
    ),
    "a node of shared variables": (
        "abcdst",
        "g=st h=abs k=cdt y=ghk",
        lambda a, b, c, d, s, t: three(two(s, t), three(a, b, s), three(c, d, t)),
    ),
    "shared again above": (
        "abcds",
        "g=abs h=gc y=hds",
        lambda a, b, c, d, s: three(two(three(a, b, s), c), d, s),
    ),
    "shared far below and at the top": (
        "abcs",
        "g=as h=gbc y=hs",
        lambda a, b, c, s: two(three(two(a, s), b, c), s),
    ),
    "cycle of pairs": ("abc", "g=ab h=bc k=ac y=+ghk", lambda a, b, c: np.sin(a * b) + np.exp(b * c) + a * c),
    "chain of pairs": (
        "abcd",
        "g=ab h=bc k=cd y=+ghk",
        lambda a, b, c, d: np.sin(a * b) + np.exp(b * c) + np.cos(c + d),
    ),
    "dense": ("abcd", "y=abcd", lambda a, b, c, d: np.sin(a * b + c) * three(b, c, d) + three(a, c * c, d)),
}


@each("name", CASES)
def test_the_graph_is_that_of_the_formula(name):
    variables, text, function = CASES[name]
    found = found_in(lambda x: function(*x.T), [(-1.0, 1.0)] * len(variables), tuple(variables))
    truth = graph_of(text, variables)
    kinds = "+" in text or "*" in text
    if name != "absolute values":  # |c − d| is general, |ab| may be called a product
        assert equivalent(found.graph, truth, kinds=kinds), (found.graph.nodes, truth.nodes)
    assert equivalent(found.graph, truth)
    assert set(found.confidence) == set(found.graph.edges)
    assert all(0 <= sure <= 1 for sure in found.confidence.values())


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_come_out_exactly(seed):
    generator = np.random.default_rng(seed)
    graph = random_tree(8 + seed, 3 + seed % 2, generator)
    function = ComposedFunction(graph, generator)
    found = found_in(function, [(-1.0, 1.0)] * len(graph.variables), seed=seed)
    assert equivalent(found.graph, graph)
    assert min(found.confidence.values()) > 0.5


def test_a_tree_is_found_in_single_precision():
    generator = np.random.default_rng(3)
    graph = random_tree(7, 3, generator)
    function = ComposedFunction(graph, generator)
    found = found_in(lambda x: function(x).astype(np.float32), [(-1.0, 1.0)] * 7)
    assert equivalent(found.graph, graph)


def tangled(x):
    a, b, c, d, e = x.T
    return two(three(a, b, c), three(c + 0.1, d, e))


def test_variables_in_another_order_give_the_same_graph():
    names = ("a", "b", "c", "d", "e")
    plain = found_in(tangled, [(-1.0, 1.0)] * 5, names).graph
    order = [3, 0, 4, 2, 1]
    back = np.argsort(order)
    moved = found_in(lambda x: tangled(x[:, back]), [(-1.0, 1.0)] * 5, tuple(names[i] for i in order)).graph
    assert equivalent(plain, moved)
    assert not plain.is_dense


@pytest.mark.parametrize("bend", [np.exp, lambda v: v**3 + v, lambda v: -np.arctan(v)], ids=["exp", "cube", "arctan"])
def test_monotone_functions_of_the_output_give_the_same_graph(bend):
    plain = found_in(tangled, [(-1.0, 1.0)] * 5).graph
    assert equivalent(plain, found_in(lambda x: bend(tangled(x)), [(-1.0, 1.0)] * 5).graph)


def test_a_constant_and_a_function_of_one_variable_are_named_as_such():
    constant = found_in(lambda x: 0 * x[:, 0] + 3, [(-1.0, 1.0)] * 2)
    assert "constant" in constant.notes[0]
    assert set(constant.confidence.values()) == {0.0}
    single = found_in(lambda x: np.sin(x[:, 1]), [(-1.0, 1.0)] * 3)
    assert single.graph.used == ("x2",)
    assert single.notes == ("the function does not depend on x1, x3",)


def test_pair_scores_rank_the_pairs_that_interact():
    found = found_in(lambda x: x[:, 0] * x[:, 1] + np.sin(x[:, 2] + x[:, 3]) + x[:, 4], [(-1.0, 1.0)] * 5)
    best = sorted(found.pairs, key=lambda pair: -found.pairs[pair])[:2]
    assert set(best) == {("x1", "x2"), ("x3", "x4")}
    assert sum(score > 1e-6 for score in found.pairs.values()) == 2


def test_a_function_of_a_few_ridges_is_called_dense_and_not_given_a_wrong_graph():
    def ridges(x):
        first, second = x @ np.linspace(-1, 1, 6), x @ np.linspace(1, 0.3, 6)
        return np.sin(first) * np.cos(second) + np.tanh((x**2).sum(axis=1) * np.exp(x[:, 0]) / 2)

    assert found_in(ridges, [(-1.0, 1.0)] * 6).graph.is_dense


def test_the_same_seed_gives_the_same_answer():
    first, second = (found_in(tangled, [(-1.0, 1.0)] * 5, seed=4) for _ in range(2))
    assert first == second
