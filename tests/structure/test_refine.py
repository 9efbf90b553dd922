"""The best network as the next surrogate, the graphs next to a graph, and the rounds that both make."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import equivalent, recovers
from theodolite.structure.data.source import Array
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.fitting import Fitted, fit
from theodolite.structure.refine import overlaps_widely
from theodolite.structure.search.interactions import look, ranked
from theodolite.structure.search.moves import joins, other_kinds, splits, without
from theodolite.structure.settle import settle
from theodolite.structure.surrogate.networks import better_folds, logarithm, network_source

NAMES = ("a", "b", "c", "d")
SMALL = Effort(folds=3, restarts=4, descent=100, polish=20, products=2e10, width=8, dense_width=None)
Data = tuple[Array, Array]


def graph(*nodes: tuple[str, str, str]) -> CompositionalGraph:
    made = [Node(name, tuple(inputs.split()), kind) for name, inputs, kind in nodes]  # type: ignore[arg-type]
    return CompositionalGraph(NAMES, tuple(made))


def draw(function: Callable[..., Array], rows: int = 150, noise: float = 0.0) -> Data:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (rows, 4))
    return x, function(*x.T) + noise * generator.standard_normal(rows)


@pytest.fixture(scope="module")
def data() -> Data:
    return draw(lambda a, b, c, d: 3 + a * b + c)


@pytest.fixture(scope="module")
def fitted(data: Data) -> Fitted:
    return fit(CompositionalGraph.dense(NAMES), *data, np.random.default_rng(1), effort=SMALL)


def test_a_network_says_of_unseen_rows_what_was_held_out_of_its_fit(data: Data, fitted: Fitted) -> None:
    source = network_source(fitted, *data)
    assert np.allclose(source.held_out(), fitted.held_out, atol=1e-10)
    assert source.r2 == pytest.approx(1 - fitted.validation_error)
    assert source.noise == pytest.approx(np.sqrt(fitted.validation_error) * data[1].std())
    assert np.bincount(source.folds).tolist() == [50, 50, 50]


def test_a_network_s_gradients_are_those_of_its_values(data: Data, fitted: Fitted) -> None:
    source = network_source(fitted, *data)
    points, step = data[0][:5], 1e-5
    for index in range(4):
        moved = points.copy()
        moved[:, index] += step
        slope = (source.values(moved) - source.values(points)) / step
        assert np.allclose(source.gradients(points).value[:, index], slope, atol=1e-3)


def test_a_member_in_a_poor_minimum_lends_no_gradients_but_keeps_its_rows(data: Data, fitted: Fitted) -> None:
    x, y = data
    assert fitted.held_out is not None
    whole = network_source(fitted, x, y)
    poor = fitted.members.copy()
    poor[1] *= 0.0
    held_out = np.where(whole.folds == 1, fitted.offset, fitted.held_out)
    source = network_source(replace(fitted, members=poor, held_out=held_out), x, y)
    assert source.sound == (0, 2)
    assert len(source.member_gradients(x[:3])) == 2
    assert np.array_equal(source.folds == 1, whole.folds == 1)


def test_the_logarithm_of_a_network_predicts_the_logarithm_of_the_target(data: Data, fitted: Fitted) -> None:
    source = logarithm(network_source(fitted, *data))
    assert np.allclose(source.members(data[0]), np.log(network_source(fitted, *data).members(data[0])))
    assert source.r2 > 0.9
    assert np.array_equal(source.targets, np.log(data[1]))


def test_a_network_proposes_as_a_first_surrogate_does(data: Data, fitted: Fitted) -> None:
    found = ranked(look({"sum": network_source(fitted, *data)}, np.random.default_rng(2)))
    truth = graph(("h", "a b", "general"), ("y", "h c", "sum"))
    assert any(equivalent(candidate.graph, truth) for candidate in found)


def test_splits_put_the_inputs_together_that_nothing_turns_apart() -> None:
    turned = np.full((4, 4, 4), 1.0)
    turned[1, 3] = turned[3, 1] = 1e-6  # neither a nor c turns the slopes of b and d
    every = splits(CompositionalGraph.dense(NAMES), turned)
    assert len(every) == 6 + 4
    assert equivalent(every[0], graph(("h", "b d", "general"), ("y", "h a c", "general")))
    assert all(len(one.nodes) == 2 and one.used == NAMES for one in every)


def test_a_join_takes_a_split_back() -> None:
    dense = CompositionalGraph.dense(NAMES)
    for made in splits(dense, np.ones((4, 4, 4))):
        assert [equivalent(joined, dense) for joined in joins(made)] == [True]
    parted = graph(("h", "a b", "sum"), ("y", "h c d", "sum"))
    assert [joined.nodes for joined in joins(parted)] == [(Node("y", ("a", "b", "c", "d"), "sum"),)]


def test_kinds_are_changed_where_they_say_more_than_a_general_node() -> None:
    found = list(other_kinds(graph(("g", "a b", "general"), ("h", "g c", "general"), ("y", "h d", "general"))))
    assert [tuple(node.kind for node in one.nodes) for one in found] == [
        ("general", "general", "product"),
        ("general", "general", "sum"),
    ]
    inner = list(other_kinds(graph(("h", "a b c", "general"), ("y", "h d", "sum"))))
    assert {tuple(node.kind for node in one.nodes) for one in inner} == {
        ("general", "general"),
        ("product", "sum"),
        ("sum", "sum"),
    }


def test_a_variable_that_is_dropped_takes_along_what_it_alone_feeds() -> None:
    given = graph(("g", "a", "general"), ("h", "b c", "product"), ("y", "g h d", "sum"))
    without_a = without(given, {"a"})
    assert without_a is not None
    assert without_a.nodes == (Node("h", ("b", "c"), "product"), Node("y", ("h", "d"), "sum"))
    assert without_a.variables == NAMES
    assert without(given, set(NAMES)) is None


def test_a_product_of_powers_comes_out_as_one_product() -> None:
    x, y = draw(lambda a, b, c, d: (a + 2) ** 2 * (b + 2) / (c + 2), rows=100)
    asked = settle(x, y, NAMES, np.random.default_rng(1), effort=SMALL)
    assert asked.chosen is not None
    assert [(set(node.inputs), node.kind) for node in asked.chosen.graph.nodes] == [({"a", "b", "c"}, "product")]
    assert asked.model.validation_error < 0.2 * asked.dense.validation_error


@pytest.mark.slow
def test_rounds_find_modules_in_modules() -> None:
    x, y = draw(lambda a, b, c, d: np.tanh(2 * a * b + c) * (2 + d), rows=200)
    asked = settle(x, y, NAMES, np.random.default_rng(0), effort=SMALL)
    truth = graph(("g", "a b", "general"), ("h", "g c", "general"), ("y", "h d", "general"))
    assert asked.chosen is not None
    assert recovers(asked.chosen.graph, truth)


@pytest.mark.parametrize("effort", ["quick", SMALL])
def test_noise_has_no_graph(effort: str | Effort) -> None:
    x, y = draw(lambda a, b, c, d: 0 * a, rows=100, noise=1.0)
    asked = settle(x, y, NAMES, np.random.default_rng(0), effort=effort)
    assert asked.chosen is None


def test_of_two_fits_the_better_network_of_every_fold_is_kept(data: Data, fitted: Fitted) -> None:
    x, y = data
    fold = np.arange(len(y)) % 3
    first, second = (
        fit(fitted.graph, x, y, np.random.default_rng(seed), effort=SMALL, fold=fold, width=4) for seed in (4, 5)
    )
    both = better_folds(first, second, y, fold)
    assert both.held_out is not None
    for number in range(3):
        of_fold = [float(np.mean((f.held_out - y)[fold == number] ** 2)) for f in (first, second, both)]  # type: ignore[operator]
        assert of_fold[2] == min(of_fold)
    alone = replace(both, members=both.members[:1], shares=np.ones(1))
    assert np.allclose(alone.predict(x)[fold == 0], both.held_out[fold == 0])
    other = replace(second, width=second.width + 1, validation_error=2.0)
    assert better_folds(first, other, y, fold) is first


def test_variables_left_out_are_in_no_graph(data: Data) -> None:
    x, y = data
    asked = settle(x, y, NAMES, np.random.default_rng(0), leave_out=["d"], effort="quick")
    assert asked.chosen is not None
    assert asked.chosen.graph.variables == NAMES
    assert "d" not in asked.chosen.graph.used


def test_few_rows_are_not_searched() -> None:
    x, y = draw(lambda a, b, c, d: a * b, rows=49)
    assert settle(x, y, NAMES, np.random.default_rng(0)).trials == ()


def test_the_same_generator_settles_on_the_same(data: Data) -> None:
    x, y = (part[:60] for part in data)
    first, second = (settle(x, y, NAMES, np.random.default_rng(3)) for _ in range(2))
    assert first.trials
    assert first.model.graph == second.model.graph
    assert first.model.validation_error == second.model.validation_error


@pytest.mark.parametrize(
    ("terms", "wide"),
    [
        ({"t": "abcde", "s": "efgh"}, True),
        ({"t": "abcd", "s": "defgh"}, True),
        ({"t": "abcd", "s": "de", "r": "fgh"}, False),
        ({"t": "abcde", "s": "fgh"}, False),  # nothing is shared
    ],
)
def test_functions_of_sums_that_share_variables_and_say_next_to_nothing_are_told(
    terms: dict[str, str], wide: bool
) -> None:
    names = tuple("abcdefgh")
    nodes = [Node(name, tuple(inputs)) for name, inputs in terms.items()]
    below = (*nodes, Node("all", tuple(terms), "sum"), Node("y", ("all",)))
    assert overlaps_widely(CompositionalGraph(names, below)) is wide
    assert not overlaps_widely(CompositionalGraph(names, (*nodes, Node("y", tuple(terms), "sum"))))
