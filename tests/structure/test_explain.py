"""What is told of a network that was found: effects, importance, formulas and stability agree with known functions."""

from __future__ import annotations

import numpy as np
import pytest

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.data.tables import Samples
from theodolite.structure.explain.effects import effects, shown_groups
from theodolite.structure.explain.explanation import explain
from theodolite.structure.explain.formulas import short_formula
from theodolite.structure.explain.stability import edge_stability
from theodolite.structure.fit.fitting import Fitted, fit
from theodolite.structure.result import Discovery

NAMES = ("a", "b", "c", "d")
GRAPH = CompositionalGraph(NAMES, (Node("h", ("a", "b")), Node("y", ("h", "c"), "sum")))
ROWS = np.random.default_rng(0).uniform(-1, 1, (300, 4))


def truth(x: np.ndarray) -> np.ndarray:
    return 3 * x[:, 0] * x[:, 1] + x[:, 2] ** 2


@pytest.fixture(scope="module")
def model() -> Fitted:
    return fit(GRAPH, ROWS[:200], truth(ROWS[:200]), np.random.default_rng(0), effort="quick")


@pytest.fixture(scope="module")
def found(model: Fitted) -> Discovery:
    train, test = (Samples(part, truth(part), NAMES, "y") for part in (ROWS[:200], ROWS[200:]))
    sure = dict.fromkeys(GRAPH.edges, 1.0)
    return Discovery("y", "data", GRAPH, False, "", sure, {}, 0.0, 0.1, None, model, {"seed": 0}, rows=(train, test))


def test_groups_are_constituents_of_one_or_two_variables_and_single_variables_else() -> None:
    assert shown_groups(GRAPH) == [(("c",), "y"), (("a", "b"), "h")]
    assert shown_groups(CompositionalGraph.dense(NAMES)) == [((name,), None) for name in NAMES]
    deep = CompositionalGraph(NAMES, (Node("h", ("a", "b")), Node("k", ("h", "c")), Node("y", ("k", "d"))))
    assert shown_groups(deep) == [(("c",), None), (("d",), None), (("a", "b"), "h")]


def test_effects_are_those_of_the_function_with_the_refits_around_them(model: Fitted) -> None:
    of_c, of_ab = effects(model, ROWS[:200], np.random.default_rng(1))
    (grid,) = of_c.values
    np.testing.assert_allclose(of_c.mean, grid**2 - np.mean(grid**2), atol=0.05)
    a, b = of_ab.values
    np.testing.assert_allclose(of_ab.mean, 3 * np.outer(a, b), atol=0.2)
    assert np.all(of_c.low <= of_c.high)
    assert of_ab.doubt < 0.01


def test_an_explanation_ranks_what_matters_and_finds_short_formulas(found: Discovery) -> None:
    told = explain(found)
    first, second = told.effects
    assert first.effect.variables == ("a", "b")
    assert first.formula is not None
    assert first.formula.code.endswith("*a*b")
    assert second.formula is not None
    assert "(c" in second.formula.text
    by_name = {one.name: one for one in told.variables}
    assert by_name["d"].value == 0
    assert by_name["a"].value > by_name["c"].value > 0.05
    low, high = by_name["a"].interval
    assert low < by_name["a"].value < high
    (constituent,) = told.constituents
    assert constituent.variables == ("a", "b")
    expected = 2 * np.var(3 * ROWS[200:, 0] * ROWS[200:, 1]) / np.var(truth(ROWS[200:]))  # E(f(u) − f(u'))² = 2 var f
    assert constituent.value == pytest.approx(expected, rel=0.2)
    assert explain(found).to_json() == told.to_json(), "deterministic"
    with pytest.raises(BadInput, match="nothing to explain"):
        explain(Discovery("y", "data", GRAPH, False, "", {}, {}, None, None, None, None))


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: 2 * x + 1, "1 + 2*x"),
        (lambda x: 3 * (x - 2) ** 2, "3*(x - 2)**2"),
        (lambda x: np.exp(-x), "np.exp(-x)"),
        (lambda x: np.log(x), "np.log(x)"),
        (lambda x: 5 / x, "5*1/(x)"),
        (lambda x: np.sin(3 * x), "np.sin("),
    ],
)
def test_functions_of_one_variable_get_their_formula(function, code: str) -> None:
    x = np.linspace(0.5, 4, 41)
    found = short_formula(["x"], x[:, None], function(x), 0.0)
    assert found is not None
    assert code in found.code
    assert found.error < 1e-3
    said = eval(found.code, {"np": np, "x": x})
    assert np.mean((said - function(x)) ** 2) <= 1.01 * found.error * np.var(function(x)) + 1e-20


def test_what_no_short_formula_fits_or_the_refits_doubt_gets_none() -> None:
    x = np.linspace(-3, 3, 41)
    rough = np.sin(3 * x) + np.abs(x) + np.tanh(4 * x - 2)
    assert short_formula(["x"], x[:, None], rough, 0.0) is None
    assert short_formula(["x"], x[:, None], x, doubt=0.2) is None
    p, q = np.meshgrid(x[::4], x[::4] + 4, indexing="ij")
    points = np.stack([p.ravel(), q.ravel()], axis=1)
    ratio = short_formula(["p", "q"], points, points[:, 0] / points[:, 1], 0.0)
    assert ratio is not None
    assert ratio.code == "p/q"
    assert ratio.latex == "\\frac{p}{q}"


def test_an_edge_that_is_there_comes_back_in_half_of_the_rows() -> None:
    graph = CompositionalGraph(NAMES, (Node("h", ("a", "b")), Node("y", ("h", "c", "d"), "sum")))
    told = edge_stability(graph, ROWS[:160], truth(ROWS[:160]), np.random.default_rng(0), 2)
    assert told["a", "h"] == told["b", "h"] == 1.0
    assert told["d", "y"] < 1.0, "nothing depends on d"
