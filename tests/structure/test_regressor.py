"""The estimator keeps scikit-learn's rules, finds a graph that is there and says so when there is none."""

# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.fit.effort import Effort
from theodolite.structure.regressor import CompositionalRegressor
from theodolite.structure.result import Discovery

TINY = Effort(2, 1, 20, 6, 1e9, 4, None)
NAMES = tuple(f"x{place}" for place in range(1, 6))
FRIEDMAN = CompositionalGraph(NAMES, (Node("t", ("x1", "x2")), Node("y", ("t", "x3", "x4", "x5"), "sum")))


def named_checks(checks: Iterable[tuple[Any, Any]], slow: tuple[str, ...]) -> list[Any]:
    """All of scikit-learn's; those whose names begin so are slow, where another does the same with fewer rows."""
    found = []
    for estimator, check in checks:
        options = (f"{key}={value}" for key, value in check.keywords.items() if key != "name")
        label = "-".join([check.func.__name__, *options])
        marks = [pytest.mark.slow] if label.startswith(slow) else []
        found.append(pytest.param(estimator, check, id=label, marks=marks))
    return found


@pytest.mark.parametrize(
    ("estimator", "check"),
    named_checks(
        estimator_checks_generator(CompositionalRegressor(effort=TINY, boosting=False, random_state=0)),
        slow=("check_regressors_train-", "check_regressor_data_not_an_array"),
    ),
)
def test_scikit_learns_checks_pass(estimator: CompositionalRegressor, check: Callable[..., None]) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def friedman() -> tuple[np.ndarray, np.ndarray]:
    """10 sin(π x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅."""
    return make_friedman1(150, 5, random_state=0)


@pytest.fixture(scope="module")
def fitted(friedman: tuple[np.ndarray, np.ndarray]) -> CompositionalRegressor:
    return CompositionalRegressor(random_state=1).fit(*friedman)


def test_it_finds_the_one_interaction_of_friedmans_function(fitted: CompositionalRegressor) -> None:
    new, truth = make_friedman1(500, 5, random_state=1)
    assert not fitted.abstained_
    together = {frozenset(node.inputs) for node in fitted.graph_.nodes if node.kind == "general"}
    assert any({"x1", "x2"} <= group for group in together)
    assert not any({"x3", "x4"} <= group or {"x4", "x5"} <= group for group in together)
    assert fitted.score(new, truth) > 0.98
    prediction = fitted.predict(new)
    assert prediction.dtype == np.float64
    assert prediction.shape == (500,)


def test_what_it_found_is_told_and_survives_a_pickle(fitted: CompositionalRegressor, friedman: tuple) -> None:
    x, _ = friedman
    assert isinstance(fitted.discovery_, Discovery)
    assert fitted.discovery_.graph == fitted.graph_
    assert fitted.discovery_.to_json()["candidates"]
    assert set(fitted.confidence_) == set(fitted.graph_.edges)
    assert all(0 <= value <= 1 for value in fitted.confidence_.values())
    assert fitted.reason_
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(x), fitted.predict(x))
    assert again.graph_ == fitted.graph_


def test_a_known_graph_is_fitted_as_it_is_and_need_not_name_every_column(friedman: tuple) -> None:
    x, y = friedman
    found = CompositionalRegressor(FRIEDMAN, effort=TINY, random_state=0).fit(x, y)
    assert found.graph_ == FRIEDMAN
    assert not found.abstained_
    as_json = CompositionalRegressor(FRIEDMAN.to_json(), effort=TINY, random_state=0).fit(x, y)
    np.testing.assert_array_equal(as_json.predict(x), found.predict(x))
    wider = np.column_stack([x, np.ones(len(x))])
    more = CompositionalRegressor(FRIEDMAN, effort=TINY, random_state=0).fit(wider, y)
    assert more.graph_.variables == (*NAMES, "x6")
    np.testing.assert_array_equal(more.predict(wider), found.predict(x))
    assert clone(found).graph == FRIEDMAN


def test_columns_of_a_data_frame_are_found_by_name_not_by_place(friedman: tuple) -> None:
    pandas = pytest.importorskip("pandas")
    x, y = friedman
    frame = pandas.DataFrame(x, columns=list(NAMES))
    turned = frame[list(reversed(NAMES))]
    found = CompositionalRegressor(FRIEDMAN, effort=TINY, random_state=0).fit(turned, y)
    assert found.graph_.variables == tuple(reversed(NAMES))
    assert list(found.feature_names_in_) == list(reversed(NAMES))
    without = turned.copy()
    without["x1"] = 0.0
    assert not np.allclose(found.predict(without), found.predict(turned))


def test_few_rows_are_fitted_densely_and_said_to_be_few() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(20, 3))
    found = CompositionalRegressor(random_state=0).fit(x, x[:, 0])
    assert found.abstained_
    assert found.graph_.is_dense
    assert "20 rows are too few" in found.reason_


def test_a_constant_target_is_predicted_and_abstained_from() -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    found = CompositionalRegressor(random_state=0).fit(x, np.full(60, 2.5))
    assert found.abstained_
    np.testing.assert_array_equal(found.predict(x), np.full(60, 2.5))


def test_copies_and_constants_are_left_out_of_the_search_and_noted(friedman: tuple) -> None:
    x, y = friedman
    wider = np.column_stack([x[:60], x[:60, 0], np.ones(60)])
    found = CompositionalRegressor(effort=TINY, random_state=0).fit(wider, y[:60])
    notes = found.discovery_.details["notes"]
    assert any("'x6' is a copy of 'x1'" in note for note in notes)
    assert any("'x7' is constant" in note for note in notes)
    assert found.graph_.variables == tuple(f"x{place}" for place in range(1, 8))


def test_what_cannot_be_used_is_refused_as_scikit_learn_and_as_the_package_would() -> None:
    x, y = make_friedman1(50, 5, random_state=0)
    for regressor, rows, targets, words in (
        (CompositionalRegressor(), x[:10, :1], y[:10], "1 feature(s)"),
        (CompositionalRegressor(), x[:4], y[:4], "minimum of 6 is required"),
        (CompositionalRegressor(effort="much"), x, y, "effort must be"),
        (CompositionalRegressor("binary-tree"), x, y, "must be a CompositionalGraph"),
        (CompositionalRegressor(CompositionalGraph.dense(("a", "b"))), x, y, "'a', which is no column"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            regressor.fit(rows, targets)
        assert "effort" not in words or isinstance(caught.value, BadInput)


def test_numpys_global_state_is_left_alone_and_random_states_repeat(friedman: tuple) -> None:
    x, y = friedman
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    states = [3, np.random.RandomState(3), np.random.RandomState(3), None]
    found = [CompositionalRegressor(FRIEDMAN, effort=TINY, random_state=state).fit(x, y).predict(x) for state in states]
    np.testing.assert_array_equal(found[1], found[2])
    assert not np.array_equal(found[0], found[3])
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_it_works_inside_cross_validation(friedman: tuple) -> None:
    scores = cross_val_score(CompositionalRegressor(FRIEDMAN, effort="quick", random_state=0), *friedman, cv=2)
    assert scores.min() > 0.9


def test_a_graph_that_is_given_is_fitted_closely_from_few_rows() -> None:
    draw = np.random.default_rng(2)
    rows = draw.uniform(-1, 1, (200, 4))
    known = CompositionalGraph(("x1", "x2", "x3", "x4"), (Node("u", ("x1", "x2")), Node("y", ("u", "x3"))))
    model = CompositionalRegressor(graph=known, random_state=0).fit(rows, rows[:, 0] * rows[:, 1] + rows[:, 2])
    fresh = draw.uniform(-1, 1, (500, 4))
    assert model.graph_.edges == known.edges
    assert not model.abstained_
    assert model.score(fresh, fresh[:, 0] * fresh[:, 1] + fresh[:, 2]) > 0.9999


def test_trees_predict_where_held_out_rows_prefer_them_and_this_is_said() -> None:
    def decided(x: np.ndarray, draw: np.random.Generator, depth: int = 6) -> np.ndarray:
        """A tree of decisions, each about a variable of its own: no sum of few variables, which steps would follow."""
        if not depth:
            return np.full(len(x), draw.standard_normal())
        beyond = x[:, draw.integers(5)] > draw.uniform(-0.5, 0.5)
        return np.where(beyond, decided(x, draw, depth - 1), decided(x, draw, depth - 1))

    def nested(x: np.ndarray) -> np.ndarray:
        return decided(x, np.random.default_rng(1))

    draw = np.random.default_rng(1)
    x = draw.uniform(-1, 1, (300, 5))
    found = CompositionalRegressor(effort=TINY, random_state=0).fit(x, nested(x))
    assert found.predictor_ in ("boosting", "mean")
    assert any("boosting" in note and "is better here" in note for note in found.discovery_.details["notes"])
    new = draw.uniform(-1, 1, (1000, 5))
    assert found.score(new, nested(new)) > 0.5
    assert np.mean((found.model_.predict(new) - nested(new)) ** 2) > np.mean((found.predict(new) - nested(new)) ** 2)


def test_words_gaps_and_dates_of_a_frame_are_learnt_and_predicted_from(friedman: tuple) -> None:
    pandas = pytest.importorskip("pandas")
    x, y = friedman
    frame = pandas.DataFrame(x[:, :3], columns=["a", "b", "c"])
    frame["kind"] = np.where(x[:, 3] > 0.5, "tall", "short")
    frame["day"] = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(np.arange(len(x)), unit="D")
    frame.loc[::7, "a"] = np.nan
    found = CompositionalRegressor(effort=TINY, boosting=False, random_state=0).fit(frame, y)
    assert list(found.feature_names_in_) == ["a", "b", "c", "kind", "day"]
    assert found.graph_.variables == ("a", "a missing", "b", "c", "kind", "day")
    other = found.predict(frame.assign(kind="unheard of"))
    assert np.isfinite(other).all()
    with pytest.raises(ValueError, match="'b' has text such as 'x' in row 0"):
        found.predict(frame.astype({"b": object}).assign(b=["x", *frame["b"][1:]]))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame.rename(columns={"c": "d"}))


def test_intervals_cover_new_rows_as_often_as_they_say() -> None:
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (900, 2))
    y = x[:, 0] + x[:, 1] ** 2 + 0.3 * draw.normal(size=900)
    known = CompositionalGraph(("x1", "x2"), (Node("y", ("x1", "x2"), "sum"),))
    found = CompositionalRegressor(known, effort=TINY, random_state=0).fit(x[:300], y[:300])
    low, high = found.predict_interval(x[300:], coverage=0.8).T
    assert np.mean((low <= y[300:]) & (y[300:] <= high)) == pytest.approx(0.8, abs=0.06)
    assert np.isinf(found.predict_interval(x[:1], coverage=0.999)).all(), "300 rows do not show 1 in 1,000"
    with pytest.raises(BadInput, match=r"coverage of 1\.5"):
        found.predict_interval(x[:1], coverage=1.5)


def test_weights_of_rows_are_refused(friedman: tuple) -> None:
    x, y = friedman
    with pytest.raises(ValueError, match="fit takes X and y, not sample_weight"):
        CompositionalRegressor().fit(x, y, sample_weight=np.ones(len(y)))


def test_several_targets_are_learnt_one_by_one() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    both = np.stack([x[:, 0] + x[:, 1], 3 * x[:, 0]], axis=1)
    several = CompositionalRegressor(effort=TINY, boosting=False, random_state=0).fit(x, both)
    alone = CompositionalRegressor(effort=TINY, boosting=False, random_state=0).fit(x, both[:, 0])
    np.testing.assert_array_equal(several.predict(x)[:, 0], alone.predict(x))
    assert several.predict(x).shape == (80, 2)
    assert several.predict_interval(x).shape == (80, 2, 2)
    assert several.score(x, both) > 0.99
    assert several.graph_[0] == alone.graph_
    assert len(several.reason_) == len(several.discovery_) == 2


def test_names_come_through_a_pipeline_that_passes_data_frames_on(friedman: tuple) -> None:
    pandas = pytest.importorskip("pandas")
    x, y = friedman
    frame = pandas.DataFrame(x, columns=list(NAMES))
    line = make_pipeline(
        StandardScaler().set_output(transform="pandas"), CompositionalRegressor(FRIEDMAN, effort=TINY, random_state=0)
    ).fit(frame, y)
    assert list(line[-1].feature_names_in_) == list(NAMES)
    told = permutation_importance(line, frame, y, n_repeats=1, random_state=0)
    assert told.importances_mean.min() > 0
    assert partial_dependence(line, frame, ["x3"], grid_resolution=5)["average"].shape == (1, 5)
