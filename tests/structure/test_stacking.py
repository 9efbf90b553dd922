"""What predicts is no worse than any of the models, and the additive model is a sum of the functions it should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.additive import fit_additive
from theodolite.structure.boosting import boosted, fold_trees
from theodolite.structure.fit.effort import EFFORTS
from theodolite.structure.fit.fitting import Fitted, fit
from theodolite.structure.fold_errors import error_products
from theodolite.structure.stacking import Others, others_ahead, stacked

DENSE = CompositionalGraph.dense(("a", "b", "c"))
WRONG = CompositionalGraph(("a", "b", "c"), (Node("y", ("c",)),))
PAIR = CompositionalGraph(("a", "b", "c"), (Node("y", ("a", "b")),))
BOTH = {"boosting": True, "process": True, "seconds": None}


def rows(seed: int, count: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3))


def network(graph: CompositionalGraph, x: np.ndarray, y: np.ndarray) -> Fitted:
    effort = replace(EFFORTS["quick"], descent=30, polish=8, width=4)
    return fit(graph, x, y, np.random.default_rng(0), effort=effort)


def error(model: object, truth: object) -> float:
    new = rows(9, 2000)
    return float(np.mean((model.predict(new) - truth(new)) ** 2) / np.var(truth(new)))  # type: ignore[attr-defined, operator]


def steps(x: np.ndarray) -> np.ndarray:
    return np.floor(4 * x[:, 0]) % 2 + np.floor(3 * x[:, 1]) % 2


def additive(x: np.ndarray) -> np.ndarray:
    return np.abs(x[:, 0]) + np.sin(3 * x[:, 1])


def smooth(x: np.ndarray) -> np.ndarray:
    return np.tanh(2 * x[:, 0] * x[:, 1]) + x[:, 2]


@pytest.mark.parametrize(("truth", "wins"), [(steps, "boosting"), (additive, "additive"), (smooth, "process")])
def test_the_model_that_is_right_predicts_whatever_graph_was_chosen(truth: object, wins: str) -> None:
    x = rows(0)
    y = truth(x) + 0.02 * np.random.default_rng(1).normal(size=len(x))  # type: ignore[operator]
    wrong, dense = network(WRONG, x, y), network(DENSE, x, y)
    found = stacked(wrong, dense, x, y, np.random.default_rng(0))
    assert max(found.returned.weights, key=found.returned.weights.__getitem__) == wins
    noise = 0.02**2 / y.var()
    assert error(found.returned, truth) < noise + 1.1 * min(error(model, truth) for model in found.models.values())
    assert "is better here and predicts" in found.notes[0]
    assert found.returned.held_out is not None
    held_out = np.mean((found.returned.held_out - y) ** 2) / y.var()
    assert held_out < found.errors["graph"]


def test_the_error_of_a_mean_over_folds_is_that_on_new_rows() -> None:
    """By the rows held out alone, which judge the network of one fold, it would seem larger."""
    told, seemed = [], []
    for seed in range(4):
        x = rows(seed, 400)
        y = smooth(x)
        dense = network(DENSE, x, y)
        new = error(dense, smooth) * smooth(rows(9, 2000)).var()
        told.append(error_products({"dense": dense}, x, y)[:, 0, 0].mean() / new)
        seemed.append(dense.validation_error * y.var() / new)
    assert np.mean(seemed) > 1.25
    assert np.mean(told) == pytest.approx(1.0, abs=0.2)


def test_what_was_begun_ahead_is_what_would_be_fitted_now() -> None:
    x = rows(0)
    y = additive(x) + steps(x)
    dense = network(DENSE, x, y)
    own = stacked(dense, dense, x, y, np.random.default_rng(0))
    others = Others.of(x, y, np.random.default_rng(0), boosting=True, process=True)
    given = stacked(dense, dense, x, y, np.random.default_rng(1), others=others)
    for name in ("additive", "boosting", "process"):
        assert given.errors[name] == pytest.approx(own.errors[name], rel=1e-9)
        np.testing.assert_allclose(given.models[name].predict(x), own.models[name].predict(x), rtol=1e-7, atol=1e-9)


def test_what_was_begun_of_more_columns_than_the_network_reads_is_not_used() -> None:
    x = rows(0)
    y = additive(x)
    dense = network(PAIR, x, y)
    others = Others.of(x, y, np.random.default_rng(0), boosting=False, process=True)
    found = stacked(dense, dense, x, y, np.random.default_rng(0), boosting=False, others=others)
    assert others.additive.state == others.process.state == "waiting"  # pyright: ignore[reportOptionalMemberAccess]
    assert not found.models["process"].rates[2:].any()  # type: ignore[attr-defined]


def test_nothing_is_begun_where_columns_will_be_screened_out_or_time_is_short() -> None:
    draw = np.random.default_rng(0)
    for columns, seconds, begun in ((4, None, True), (40, None, False), (4, 10.0, False)):
        given = {**BOTH, "seconds": seconds}
        with others_ahead(draw.normal(size=(60, columns)), draw.normal(size=60), draw, **given) as others:
            assert (others is not None) is begun
    before = draw.bit_generator.state
    with others_ahead(draw.normal(size=(0, 4)), np.zeros(0), draw, **BOTH) as others:
        assert others is None
    with others_ahead(np.zeros((60, 4)), np.arange(60.0), draw, **BOTH):
        pass
    assert draw.bit_generator.state == before  # what is found does not depend on what is begun ahead


def test_where_nothing_predicts_the_mean_of_the_target_does() -> None:
    x, y = rows(0), 5 + np.random.default_rng(3).normal(size=200)
    dense = network(DENSE, x, y)
    found = stacked(dense, dense, x, y, np.random.default_rng(0), boosting=False)
    said, before = (np.mean((model.predict(rows(4)) - y.mean()) ** 2) for model in (found.returned, dense))
    assert said < before / 1.5


def test_no_weight_is_fitted_to_the_row_that_it_judges() -> None:
    """Of two models, one right in the odd rows' targets by chance: the held-out mean of a row ignores its target."""
    x = rows(0)
    y = additive(x)
    dense = network(DENSE, x, y)
    found = stacked(dense, dense, x, y, np.random.default_rng(0), boosting=False)
    y[7] += 100.0
    other = stacked(dense, dense, x, y, np.random.default_rng(0), boosting=False)
    assert found.returned.held_out is not None
    assert other.returned.held_out is not None
    assert other.returned.held_out[7] == pytest.approx(found.returned.held_out[7], abs=0.2)


def test_an_additive_model_follows_lines_bends_and_steps_and_leaves_out_what_tells_nothing() -> None:
    x = rows(0, 600)
    truth = lambda x: 2 * x[:, 0] + np.maximum(x[:, 1], 0)
    y = truth(x) + 0.1 * np.random.default_rng(1).normal(size=600)
    found = fit_additive(x, y, np.arange(600) % 4)
    assert error(found, truth) < 0.001
    assert np.ptp(found.heights[2]) < 0.02
    slopes = np.diff(found.heights[0]) / np.diff(found.knots[0])
    np.testing.assert_allclose(slopes, 2.0, atol=0.1)
    leap = lambda x: 1.0 * (x[:, 0] > 0.1)
    assert error(fit_additive(x, leap(x), np.arange(600) % 4), leap) < 0.1
    far = found.predict([[50.0, 50.0, 0.0]])
    assert far == pytest.approx(found.predict([[1.0, 1.0, 0.0]]), abs=0.02), "constant outside of what was seen"


def test_trees_of_the_folds_predict_as_scikit_learn_does() -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    x, fold = rows(0), np.arange(200) % 4
    y = steps(x)
    whole = boosted(x, y, 0)
    found = fold_trees(x, y, fold, whole, 0)
    settings = {
        **{"learning_rate": whole.learning_rate, "max_leaf_nodes": whole.max_leaf_nodes, "max_iter": whole.n_iter_},
        **{"min_samples_leaf": 3, "early_stopping": False, "random_state": 0},
    }
    each = [HistGradientBoostingRegressor(**settings).fit(x[fold != k], y[fold != k]) for k in range(4)]
    new = rows(5)
    np.testing.assert_allclose(found.predict(new), np.mean([one.predict(new) for one in each], axis=0))
    assert found.held_out is not None
    np.testing.assert_allclose(found.held_out[fold == 2], each[2].predict(x[fold == 2]))


def test_models_of_some_columns_read_them_among_all() -> None:
    x, fold = rows(0), np.arange(200) % 4
    y, places = steps(x), np.array([4, 0, 2])
    wide = np.full((200, 6), np.nan)
    wide[:, places] = x
    curves, trees = fit_additive(x, y, fold), fold_trees(x, y, fold, boosted(x, y, 0), 0)
    known = np.nan_to_num(wide)
    np.testing.assert_allclose(curves.widened(places, 6).predict(known), curves.predict(x))
    np.testing.assert_array_equal(trees.widened(places).predict(wide), trees.predict(x))
