"""Held-out rows choose between graphs and a dense network: the right one, none where there is none, and when."""

from __future__ import annotations

import numpy as np
import pytest

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import binary_tree
from theodolite.structure.boosting import boosted
from theodolite.structure.fit.confirm import _no_worse, complexity, confirm, rows_enough
from theodolite.structure.fit.effort import Effort
from theodolite.structure.result import Found
from theodolite.tasks.shared.constituents import ComposedFunction

SMALL = Effort(3, 2, 80, 20, 1e10, 6, None)


def found(graph: CompositionalGraph) -> Found:
    return Found(graph, dict.fromkeys(graph.edges, 1.0), {})


def shuffled(graph: CompositionalGraph) -> CompositionalGraph:
    """The same tree over variables that are dealt out to its leaves so that no pair stays together."""
    dealt = dict(zip(graph.variables, (*graph.variables[::2], *graph.variables[1::2]), strict=True))
    nodes = (Node(n.name, tuple(dealt.get(name, name) for name in n.inputs), n.kind) for n in graph.nodes)
    return CompositionalGraph(graph.variables, tuple(nodes))


@pytest.fixture(scope="module")
def data() -> tuple[CompositionalGraph, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    graph = binary_tree(8)
    function = ComposedFunction(graph, generator)
    x = generator.uniform(-1, 1, (200, 8))
    return graph, x, np.asarray(function(x)) + 0.01 * generator.normal(size=200)


def test_the_right_graph_is_chosen_among_wrong_ones_and_is_the_model(data: tuple) -> None:
    graph, x, y = data
    candidates = [found(shuffled(graph)), found(graph)]
    told: list[tuple[int, int, str]] = []
    asked = confirm(candidates, x, y, np.random.default_rng(0), effort=SMALL, progress=lambda *step: told.append(step))
    assert asked.chosen is candidates[1]
    assert asked.model is asked.trials[1].fitted
    assert asked.model.validation_error < asked.dense.validation_error
    assert asked.trials[1].interval[0] < asked.trials[1].ratio < asked.trials[1].interval[1] < 1
    assert [step[0] for step in told] == list(range(1, told[0][1] + 1))
    assert "times" in asked.reason
    assert asked.to_json()["candidates"][1]["preferred"]


def test_a_wrong_graph_alone_is_not_preferred_and_the_dense_network_is_the_model(data: tuple) -> None:
    graph, x, y = data
    asked = confirm([found(shuffled(graph))], x, y, np.random.default_rng(0), effort=SMALL)
    assert asked.chosen is None
    assert asked.model is asked.dense
    assert asked.trials[0].ratio > 1
    assert "do not prefer" in asked.reason


def test_a_target_of_noise_has_no_graph_however_simple() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(80, 3)), generator.normal(size=80)
    additive = CompositionalGraph(("a", "b", "c"), (Node("y", ("a", "b", "c"), "sum"),))
    single = CompositionalGraph(("a", "b", "c"), (Node("y", ("b",)),))
    asked = confirm([found(additive), found(single)], x, y, generator, effort=SMALL)
    assert asked.chosen is None


def test_without_candidates_it_abstains_with_a_dense_network_of_the_named_columns() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(30, 2))
    asked = confirm([], x, x[:, 0], generator, variables=["left", "right"], effort="quick")
    assert asked.chosen is None
    assert asked.model.graph == CompositionalGraph.dense(("left", "right"))
    assert "no graph was proposed" in asked.reason


def test_many_candidates_are_screened_by_a_quick_fit_and_a_time_limit_is_kept_to(data: tuple) -> None:
    graph, x, y = data
    names = graph.variables
    others = [
        CompositionalGraph(names, (Node("t", (names[0], names[k])), Node("y", ("t", *names[1:k], *names[k + 1 :]))))
        for k in (2, 3, 4)
    ]
    candidates = [found(g) for g in (*others, graph)]
    asked = confirm(candidates, x[:80], y[:80], np.random.default_rng(0), effort=SMALL, seconds=0.0)
    assert [trial.screened for trial in asked.trials] == [False, False, False, True]
    assert not asked.trials[-1].preferred
    assert np.isfinite(asked.model.predict(x)).all()


def test_no_worse_is_a_matter_of_the_error_and_of_what_is_explained() -> None:
    ones = np.ones(100)
    assert _no_worse(0.104 * ones, 0.1 * ones, ones)  # 4 % of an error of .1
    assert not _no_worse(0.106 * ones, 0.1 * ones, ones)
    assert not _no_worse(0.92 * ones, 0.9 * ones, ones)  # 2 % of the error, but 20 % of what is explained
    assert not _no_worse(1.101 * ones, 1.1 * ones, ones)  # dense explains nothing: no margin
    assert _no_worse(1.1 * ones, 1.1 * ones, ones)


def test_a_graph_is_as_complex_as_its_widest_constituent() -> None:
    tree, dense = binary_tree(8), CompositionalGraph.dense([f"x{i}" for i in range(8)])
    additive = CompositionalGraph(dense.variables, (Node("y", dense.variables, "sum"),))
    assert complexity(additive) < complexity(tree) < complexity(dense)


def test_boosting_explains_a_step_and_no_noise() -> None:
    generator = np.random.default_rng(0)
    x, new = generator.uniform(-1, 1, (300, 2)), generator.uniform(-1, 1, (300, 2))
    step = lambda points: np.where(points[:, 0] > 0, 1.0, -1.0)
    assert np.mean((boosted(x, step(x), 0).predict(new) - step(new)) ** 2) < 0.02
    noise = generator.normal(size=600)
    assert np.mean((boosted(x, noise[:300], 0).predict(new) - noise[300:]) ** 2) > 0.9 * noise[300:].var()


def test_the_rows_that_would_be_enough_are_about_those_that_are() -> None:
    """Gains of 0.1 ± 1: a one-sided test at 5 % needs (1.645 / 0.1)² = 271 of them."""
    gains = np.random.default_rng(0).normal(0.1, 1.0, 40_000)
    enough = rows_enough(gains)
    assert enough is not None
    assert 200 < enough < 360
    assert rows_enough(-gains) is None
