"""A scikit-learn classifier: of every class the graph of the function that says how likely it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from theodolite.errors import BadInput
from theodolite.structure.data.coding import encode_training, learn_coding
from theodolite.structure.estimator import CompositionalEstimator
from theodolite.structure.learning import (
    BadData,
    Settings,
    learn,
    new_columns,
    refuse,
    training_columns,
)

Array = NDArray[np.float64]


class CompositionalClassifier(ClassifierMixin, CompositionalEstimator):
    """Learns, for the second of two classes or for each of several, a compositional graph of its probability.

    The probability is fitted by squared error (Brier's score) to 1 in the rows of the class and 0 elsewhere, as
    `CompositionalRegressor` fits a number, whose parameters these are. Several classes are fitted one after another,
    each against the rest, and their probabilities scaled to add up to 1. None is closer to 0 or 1 than the number of
    rows can show.

    After `fit`: `classes_`; for the second of two classes, or for each of several, `predictors_` (what predicts: graph,
    dense, boosting, additive, process, a mean of several, or a constant), `graphs_`, `abstained_`, `reasons_`,
    `models_` and `discoveries_`, all by class; `codings_`, `n_features_in_` and, where columns have names,
    `feature_names_in_`.
    """

    def fit(self, X: Any, y: Any, **refused: Any) -> CompositionalClassifier:
        refuse(refused)
        columns, labels = training_columns(self, X, y, y_numeric=False)
        check_classification_targets(labels)
        self.classes_, place = np.unique(labels, return_inverse=True)
        explained = range(len(self.classes_)) if len(self.classes_) > 2 else [len(self.classes_) - 1]
        settings = Settings.of(self, len(explained))
        self.learnt_, self.codings_ = {}, {}
        try:
            for number in explained:
                name, target = self.classes_[number], (place == number).astype(np.float64)
                self.codings_[name] = coding = learn_coding(columns, target)
                self.learnt_[name] = learn(encode_training(coding, columns, target), target, coding.variables, settings)
        except BadInput as error:
            raise error if isinstance(error, ValueError) else BadData(str(error)) from error
        self.discoveries_ = {name: one.discovery for name, one in self.learnt_.items()}
        self.models_ = {name: one.model for name, one in self.learnt_.items()}
        self.predictors_ = {name: one.returned.kind for name, one in self.learnt_.items()}
        self.graphs_ = {name: found.graph for name, found in self.discoveries_.items()}
        self.abstained_ = {name: found.abstained for name, found in self.discoveries_.items()}
        self.reasons_ = {name: found.reason for name, found in self.discoveries_.items()}
        self._least = 1 / (len(labels) + 2)
        return self

    def predict_proba(self, X: Any) -> Array:
        check_is_fitted(self)
        columns = new_columns(self, X)
        if len(self.classes_) == 1:
            return np.ones((len(columns[0].numbers), 1))
        likely = np.stack(
            [
                np.clip(one.returned.predict(self.codings_[name].encode(columns)), self._least, 1 - self._least)
                for name, one in self.learnt_.items()
            ],
            axis=1,
        )
        if len(self.classes_) == 2:
            return np.concatenate([1 - likely, likely], axis=1)
        return likely / likely.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
