"""Random functions of a known graph: structure, smoothness and scale, measured without knowing how they are made."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from tests.each import each
from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import binary_tree, named_graph, random_dag
from theodolite.tasks import make_task
from theodolite.tasks.composed import Composed
from theodolite.tasks.shared.constituents import FLOOR, ComposedFunction

MIXED = CompositionalGraph(
    ("a", "b", "c", "unused", "d"),
    (
        Node("p", ("a", "b"), "product"),
        Node("g", ("c", "a")),
        Node("s", ("p", "g", "c"), "sum"),
        Node("y", ("g", "s", "d")),
    ),
)
GRAPHS = {
    "tree of 8": binary_tree(8),
    "tree of 32": binary_tree(32),
    "dag": random_dag(9, 3, 3, 4, np.random.default_rng(0)),
    "mixed": MIXED,
    "kolmogorov-arnold": named_graph("kolmogorov-arnold", 3, 2),
    "additive": named_graph("additive", 6, 2),
}


def uniform(count: int, variables: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, variables))


def function(graph: CompositionalGraph, seed: int = 0, smoothness: int | None = None) -> ComposedFunction:
    return ComposedFunction(graph, np.random.default_rng(seed), smoothness)


@each("graph", GRAPHS.values())
@each("smoothness", [None, 1, 3])
def test_every_variable_that_feeds_something_matters_and_no_other(graph, smoothness):
    """On fresh points: the mean squared change of the output when one variable is drawn again, over its variance."""
    f, x, other = function(graph, 1, smoothness), uniform(3000, len(graph.variables)), uniform(3000, 1, seed=8)
    y = f(x)
    assert y.var() == pytest.approx(1, abs=0.25)
    for i, name in enumerate(graph.variables):
        changed = x.copy()
        changed[:, i] = other[:, 0]
        relevance = float(((f(changed) - y) ** 2).mean() / y.var())
        if name in graph.used:
            assert relevance >= FLOOR
            assert relevance == pytest.approx(f.relevance[name], rel=0.35)
        else:
            assert relevance == 0


@pytest.mark.parametrize("smoothness", [None, 2])
def test_numpy_and_torch_agree_and_gradients_are_those_of_finite_differences(smoothness):
    f, x = function(MIXED, 2, smoothness), uniform(40, 5)
    points = torch.from_numpy(x).requires_grad_()
    y = f(points)
    np.testing.assert_allclose(y.detach().numpy(), f(x), atol=1e-12)
    (slope,) = torch.autograd.grad(y.sum(), points)
    steps = 1e-6 * np.eye(5)
    differences = np.stack([(f(x + step) - f(x - step)) / 2e-6 for step in steps], axis=1)
    np.testing.assert_allclose(slope.numpy(), differences, atol=1e-5)
    assert (np.abs(differences[:, [0, 1, 2, 4]]) > 0).all()


def test_a_point_has_the_same_value_in_every_batch_and_shape():
    f, x = function(binary_tree(8)), uniform(60, 8)
    y = f(x)
    assert y.tobytes() == np.concatenate([f(x[i : i + 1]) for i in range(60)]).tobytes()
    assert np.array_equal(f(x.reshape(3, 20, 8)), y.reshape(3, 20))
    assert f(x[0]) == y[0]


def test_a_module_enters_through_one_number():
    """∂f/∂x1 over ∂f/∂x2 does not depend on the variables outside, ∂f/∂x1 over ∂f/∂x3 does."""
    f, x = function(binary_tree(8), 3), torch.from_numpy(uniform(50, 8))
    outside = x.clone()
    outside[:, 2:] = torch.from_numpy(uniform(50, 6, seed=9))

    def slopes(at: torch.Tensor) -> torch.Tensor:
        at = at.clone().requires_grad_()
        return torch.autograd.grad(f(at).sum(), at)[0]

    ratio = lambda at, i, j: slopes(at)[:, i] / slopes(at)[:, j]
    torch.testing.assert_close(ratio(outside, 0, 1), ratio(x, 0, 1), rtol=1e-8, atol=1e-8)
    assert float((ratio(outside, 0, 2) - ratio(x, 0, 2)).abs().median()) > 1e-2


def table(f: ComposedFunction, points: int = 30) -> np.ndarray:
    """The function of two variables over a grid."""
    a, b = np.meshgrid(np.linspace(-1, 1, points), np.linspace(-1, 1, points), indexing="ij")
    return f(np.stack([a, b], axis=-1))


def centred(y: np.ndarray) -> np.ndarray:
    return y - y.mean(0, keepdims=True) - y.mean(1, keepdims=True) + y.mean()


@pytest.mark.parametrize("smoothness", [None, 1])
def test_sums_add_products_multiply_and_general_constituents_do_neither(smoothness):
    of = lambda kind, seed=0: function(CompositionalGraph(("a", "b"), (Node("y", ("a", "b"), kind),)), seed, smoothness)
    assert np.abs(centred(table(of("sum")))).max() < 1e-12
    sizes = np.linalg.svd(table(of("product")), compute_uv=False)
    assert sizes[1] < 1e-12 * sizes[0]
    assert np.abs(centred(table(of("product")))).max() > 0.05
    for seed in range(20):
        y = table(of("general", seed))
        sizes = np.linalg.svd(centred(y), compute_uv=False)
        assert (centred(y) ** 2).mean() > 0.005 * y.var()
        assert sizes[1] > 1e-3 * sizes[0]


@pytest.mark.parametrize("smoothness", [1, 2, 3])
def test_the_derivative_of_the_order_of_the_smoothness_jumps_and_no_lower_one(smoothness):
    """Neighbouring values of the m-th difference quotient: a jump stays when the step is halved, a slope halves."""
    f = function(CompositionalGraph.dense(("x",)), 4, smoothness)

    def largest_change(order: int, step: float) -> float:
        y = f(np.arange(-1, 1, step)[:, None])
        quotient = np.diff(y, order) / step**order
        return float(np.abs(quotient[order + 1 :] - quotient[: -order - 1]).max())

    shrinking = lambda order: largest_change(order, 1e-3) / largest_change(order, 2e-3)
    assert shrinking(smoothness) > 0.8
    assert shrinking(smoothness - 1) == pytest.approx(0.5, abs=0.1)


def test_without_a_smoothness_no_derivative_jumps():
    f = function(CompositionalGraph.dense(("x",)), 4)
    for order in (1, 2, 3):
        change = []
        for step in (4e-3, 2e-3):
            quotient = np.diff(f(np.arange(-1, 1, step)[:, None]), order) / step**order
            change.append(np.abs(np.diff(quotient)).max())
        assert change[1] / change[0] == pytest.approx(0.5, abs=0.1)


def test_functions_come_from_the_generator_alone():
    x = uniform(20, 8)
    assert np.array_equal(function(binary_tree(8), 5)(x), function(binary_tree(8), 5)(x))
    generator = np.random.default_rng(5)
    first, second = (ComposedFunction(binary_tree(8), generator)(x) for _ in range(2))
    assert np.array_equal(first, function(binary_tree(8), 5)(x))
    assert not np.allclose(first, second)


def test_a_function_survives_pickling():
    f, x = function(MIXED, 6, 2), uniform(20, 5)
    f(torch.from_numpy(x))
    assert np.array_equal(pickle.loads(pickle.dumps(f))(x), f(x))


def test_a_deep_chain_still_hears_its_first_variable():
    names = [f"x{i}" for i in range(25)]
    chain = [Node("n1", ("x0", "x1")), *(Node(f"n{i}", (f"n{i - 1}", f"x{i}")) for i in range(2, 25))]
    assert min(function(CompositionalGraph(names, chain)).relevance.values()) >= FLOOR


def test_the_default_task_is_a_binary_tree():
    assert Composed().function.graph == binary_tree(8)
    data = [Composed(draw=d).sample(1, 5, None, torch.Generator().manual_seed(0)).targets for d in (0, 1)]
    assert not torch.allclose(*data)
    task = make_task("composed", {"graph": "kolmogorov-arnold", "variables": 3, "smoothness": 2})
    assert isinstance(task, Composed)
    assert task.function.smoothness == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"graph": "trees"}, "trees"),
        ({"variables": 0}, "variables=0 is too small"),
        ({"variables": 5000}, "variables=5000 are too many"),
        ({"smoothness": -1}, "smoothness=-1 is too small"),
        ({"graph": "dense", "fan_in": 3}, "fan_in=3 is for the graph 'convolutional'"),
    ],
)
def test_what_makes_no_task_is_refused_in_a_sentence(arguments, words):
    with pytest.raises(BadInput, match=words):
        make_task("composed", arguments)


def test_points_of_another_width_and_no_smoothness_are_refused():
    with pytest.raises(BadInput, match="8 variables but the points have 5 columns"):
        function(binary_tree(8))(uniform(3, 5))
    with pytest.raises(BadInput, match="smoothness of 0 is too small"):
        function(binary_tree(8), smoothness=0)
