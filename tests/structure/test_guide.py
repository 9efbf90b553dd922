"""Guided starts: slices against formulas, modules against brute force, and networks that are no longer caught."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import binary_tree, random_dag
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.fitting import drawn_folds, fit
from theodolite.structure.fit.guide import Guide, modules, slices
from theodolite.training.stacked import Stacked, draw

PLAIN = Effort(2, 1, 60, 20, 1e10, 6, None)
GUIDED = Effort(2, 1, 60, 20, 1e10, 6, None, guided=2)
DEEP = CompositionalGraph(
    tuple("abcde"),
    (
        Node("t", ("a", "b"), "product"),
        Node("u", ("t", "c"), "sum"),
        Node("v", ("d", "e")),
        Node("y", ("u", "v"), "product"),
    ),
)


def deep(x: np.ndarray) -> np.ndarray:
    a, b, c, d, e = x.T
    return np.tanh(a * b + c) * np.exp(d * e)


def test_a_node_is_a_module_where_no_path_from_its_variables_leads_past_it() -> None:
    generator = np.random.default_rng(0)
    seen = set()
    for _ in range(12):
        graph = random_dag(6, 2, 2, 4, generator)
        network = graph.to_networkx()
        output = graph.output.name

        def every_path_leads_through(name: str, network=network, graph=graph, output=output) -> bool:
            without = network.copy()
            without.remove_node(name)
            reach = {output}
            for _ in graph.nodes:
                reach |= {a for a, b in without.edges if b in reach}
            return not (reach & graph.reach[name])

        inner = [n.name for n in graph.nodes if graph.reach[n.name] != graph.reach[output]]
        found = set(modules(graph))
        assert found == {name for name in inner if every_path_leads_through(name)}
        seen |= {name in found for name in inner}
    assert seen == {True, False}


def test_slices_are_the_function_with_everything_else_held_still_and_depend_on_the_module_alone() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (300, 5))
    told = slices(DEEP, "u", Guide((deep,)), 3, x, generator)
    assert told is not None
    inside = np.tanh(x[:, 0] * x[:, 1] + x[:, 2])
    for part in told:
        assert part.shape == (3, 300)
        np.testing.assert_allclose(np.abs(np.corrcoef(part[1], inside)[0, 1]), 1.0, atol=1e-9)
        np.testing.assert_allclose([part[1].mean(), part[1].std()], [0, 1], atol=1e-9)


def test_a_slice_that_is_even_in_the_module_is_not_the_only_one_told() -> None:
    graph = CompositionalGraph(("a", "b", "c"), (Node("t", ("a", "b"), "sum"), Node("y", ("t", "c"))))
    function = lambda x: 3 * (x[:, 0] + x[:, 1]) ** 2 + x[:, 2] * (x[:, 0] + x[:, 1])
    x = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    told = slices(graph, "t", Guide((function,)), 2, x, np.random.default_rng(1))
    assert told is not None
    assert len(told) == 2
    both = np.column_stack([told[0][0], told[1][0], np.ones(200)])
    linear = x[:, 0] + x[:, 1]
    residual = linear - both @ np.linalg.lstsq(both, linear, rcond=None)[0]
    assert residual.var() < 1e-9 * linear.var()  # from both together the module can be read


def test_a_module_on_which_nothing_depends_has_no_slice() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (50, 5))
    flat = Guide((lambda points: points[:, 3],))
    assert slices(DEEP, "u", flat, 2, x, np.random.default_rng(0)) is None
    assert slices(DEEP, "v", flat, 2, x, np.random.default_rng(0)) is not None


def test_what_a_node_says_is_what_the_network_cut_off_above_it_says() -> None:
    net, members = draw(lambda: CompositionalNet(DEEP, width=3), [0, 1], dtype=torch.float64)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(7, 5)))
    for seed in range(2):
        with torch.no_grad():
            for name, value in net.named(members[seed]).items():
                net.module.get_parameter(name).copy_(value)
        assert isinstance(net.module, CompositionalNet)
        said = net.module.double().node_values(x)
        assert said.shape == (7, 4)
        torch.testing.assert_close(said[:, -1:], net.module(x))
        cut = CompositionalGraph(tuple("abc"), DEEP.nodes[:2])
        small = CompositionalNet(cut, width=3).double()
        theirs, whole = small.node_parameters(), net.module.node_parameters()
        vector = Stacked.vector(small)
        for name, places in theirs.items():
            vector[places] = Stacked.vector(net.module)[whole[name]]
        torch.testing.assert_close(Stacked(small).values(vector[None], x[:, :3])[0], said[:, 1])
    with pytest.raises(BadInput, match="channels=1"):
        CompositionalNet(DEEP, channels=2).node_values(x.float())


def test_the_parameters_of_the_nodes_are_all_parameters_once() -> None:
    net = CompositionalNet(DEEP, width=3)
    places = torch.cat(list(net.node_parameters().values()))
    assert sorted(places.tolist()) == list(range(sum(p.numel() for p in net.parameters())))


def test_a_guided_network_of_a_deep_graph_is_not_caught_where_others_are() -> None:
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (160, 5))
    y = deep(x)
    guided, plain = (
        fit(DEEP, x, y, np.random.default_rng(0), effort=effort, guide=Guide((deep,))).validation_error
        for effort in (GUIDED, PLAIN)
    )
    assert guided < plain / 3


def test_a_guide_of_every_fold_sees_no_row_of_this_fold() -> None:
    graph = binary_tree(4)
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (60, 4))
    y = np.tanh(x[:, 0] * x[:, 1]) + x[:, 2] * x[:, 3]
    fold = drawn_folds(60, GUIDED, generator)
    dense = CompositionalGraph.dense(graph.variables)
    guide = fit(dense, x, y, np.random.default_rng(1), effort=PLAIN, fold=fold).guide()
    held_out = fit(dense, x, y, np.random.default_rng(1), effort=PLAIN, fold=fold).held_out
    assert held_out is not None
    for number, function in enumerate(guide.functions):
        np.testing.assert_allclose(function(x[fold == number]), held_out[fold == number])
    asked: list[int] = []

    def spy(number: int):
        def function(points: np.ndarray) -> np.ndarray:
            asked.append(number)
            return guide.functions[number](points)

        return function

    found = fit(graph, x, y, generator, effort=GUIDED, fold=fold, guide=Guide((spy(0), spy(1)), guide.error))
    assert set(asked) == {0, 1}
    assert found.held_out is not None
    for number in range(2):  # the network that is judged by a fold is the one made without it
        alone = found.guide().functions[number]
        np.testing.assert_allclose(alone(x[fold == number]), found.held_out[fold == number])


def test_folds_that_do_not_number_the_rows_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(8, 5))
    for wrong in (np.zeros(8), [0, 1], [0, 2] * 4, [0.5, 1] * 4):
        with pytest.raises(BadInput, match="fold must number"):
            fit(DEEP, x, x[:, 0], np.random.default_rng(0), effort=PLAIN, fold=wrong)


def test_a_time_limit_and_a_graph_without_modules_leave_the_guide_unused() -> None:
    x = np.random.default_rng(0).normal(size=(30, 5))
    refuses = Guide((lambda points: pytest.fail("the guide was asked"),))
    dense = CompositionalGraph.dense(tuple("abcde"))
    for graph, seconds in itertools.product((DEEP, dense), (0.0, None)):
        if graph is dense or seconds is not None:
            found = fit(graph, x, x[:, 0], np.random.default_rng(0), effort=GUIDED, guide=refuses, seconds=seconds)
            assert np.isfinite(found.predict(x)).all()
