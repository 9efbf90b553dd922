"""The classifier keeps scikit-learn's rules, and its probabilities are those of the classes."""

# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import estimator_checks_generator

from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.classifier import CompositionalClassifier

from .test_regressor import TINY, named_checks


@pytest.mark.parametrize(
    ("estimator", "check"),
    named_checks(
        estimator_checks_generator(CompositionalClassifier(effort=TINY, boosting=False, random_state=0)),
        slow=(  # what the regressor is asked too, by the code that they share
            *("check_classifiers_train", "check_classifier_data_not_an_array", "check_positive_only_tag_during_fit"),
            *("check_fit_score_takes_y", "check_dtype_object", "check_estimators_overwrite_params", "check_methods_"),
            *("check_supervised_y_2d", "check_estimators_dtypes", "check_fit_idempotent", "check_n_features_in_after"),
            *("check_f_contiguous_array_estimator", "check_dont_overwrite_parameters", "check_readonly_memmap_input"),
            *("check_fit2d_predict1d", "check_dict_unchanged", "check_pipeline_consistency"),
        ),
    ),
)
def test_scikit_learns_checks_pass(estimator: CompositionalClassifier, check: Callable[..., None]) -> None:
    check(estimator)


def likely(frame: pd.DataFrame) -> np.ndarray:
    """A logit in which two columns interact and a category shifts."""
    shift = frame["kind"].map({"a": -1.5, "b": 0.0, "c": 1.5}).to_numpy(dtype=float)
    return 1 / (1 + np.exp(-3 * frame["u"] * frame["v"] - shift))


def drawn(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(draw.uniform(-2, 2, (rows, 2)), columns=["u", "v"]).assign(kind=draw.choice(list("abc"), rows))
    return frame, np.where(draw.random(rows) < likely(frame), "yes", "no")


def test_two_classes_of_a_table_with_words_get_probabilities_near_the_truth() -> None:
    frame, y = drawn(250, 0)
    new, truth = drawn(2000, 1)
    found = CompositionalClassifier(effort="quick", boosting=False, random_state=0).fit(frame, y)
    chance = found.predict_proba(new)
    assert list(found.classes_) == ["no", "yes"]
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    assert np.mean((chance[:, 1] - likely(new)) ** 2) < 0.03
    assert roc_auc_score(truth, chance[:, 1]) > 0.95 * roc_auc_score(truth, likely(new))
    assert set(found.graphs_) == {"yes"}
    assert found.predictors_["yes"] in ("graph", "dense")
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(new), found.predict(new))


def test_several_classes_have_a_graph_each_and_scikit_learn_can_inspect_them() -> None:
    draw = np.random.default_rng(0)
    x = pd.DataFrame(draw.normal(size=(120, 3)), columns=["a", "b", "c"])
    y = np.digitize(x["a"] + 0.1 * draw.normal(size=120), [-0.5, 0.5])
    known = CompositionalGraph(("a", "b", "c"), (Node("y", ("a", "b", "c"), "sum"),))
    found = CompositionalClassifier(known, effort="quick", random_state=0).fit(x, y)
    assert set(found.graphs_) == {0, 1, 2}
    assert found.score(x, y) > 0.85
    np.testing.assert_allclose(found.predict_proba(x).sum(axis=1), 1)
    told = permutation_importance(found, x, y, n_repeats=2, random_state=0)
    assert np.argmax(told.importances_mean) == 0
    assert partial_dependence(found, x, ["a"], grid_resolution=5)["average"].shape == (3, 5)


def test_weights_are_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="not sample_weight: rows all count the same"):
        CompositionalClassifier().fit([[0.0, 1.0]] * 6, [0, 1] * 3, sample_weight=[1] * 6)
