"""A scikit-learn regressor that finds the graph of a function in data, and abstains where the data do not show one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from theodolite.errors import BadInput
from theodolite.structure.conformal import half_width
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


class CompositionalRegressor(RegressorMixin, CompositionalEstimator):
    """Learns a compositional graph and a network of it, or, where held-out rows do not prefer one, a dense network.

    Parameters: `graph`, a CompositionalGraph (or its JSON) to fit instead of looking for one; `effort`, one of auto,
    quick, standard, thorough, where auto is quick below 250 rows; `seconds`, a limit on the time that fitting takes,
    which makes the result depend on the machine; `boosting` and `process`, whether boosted trees and a Gaussian process
    (which keeps the training rows) may take part in the mean that predicts; `random_state`, as everywhere in
    scikit-learn.

    After `fit`: `predictor_` (what predicts: graph, dense, boosting, additive, process, a mean of several, or a
    constant), `graph_`, `abstained_`, `reason_`, `confidence_` (of every edge of the graph), `model_` (a Fitted),
    `discovery_` (a Discovery; its test errors are None, because no rows are set aside), `coding_` (how columns became
    numbers), `n_features_in_` and, where columns have names, `feature_names_in_`. Needs at least 6 rows and 2
    columns; below 50 rows it always abstains. Columns of a data frame may be words, dates and categories, and may have
    gaps. Several targets, columns of y, are learnt one after another: `predict` gives a column for each, and attributes
    are lists.
    """

    def fit(self, X: Any, y: Any, **refused: Any) -> CompositionalRegressor:
        refuse(refused)
        columns, targets = training_columns(self, X, y, y_numeric=True, multi_output=True)
        targets = targets.astype(np.float64)
        each = [targets] if targets.ndim == 1 else list(targets.T)
        settings = Settings.of(self, len(each))
        self.codings_ = [learn_coding(columns, target) for target in each]
        try:
            self.learnt_ = [
                learn(encode_training(coding, columns, target), target, coding.variables, settings)
                for coding, target in zip(self.codings_, each, strict=True)
            ]
        except BadInput as error:
            raise error if isinstance(error, ValueError) else BadData(str(error)) from error
        both = zip(self.learnt_, self.codings_, strict=True)
        found = [replace(learnt.discovery, coding=coding) for learnt, coding in both]
        told = (lambda several: several[0]) if targets.ndim == 1 else list
        self.discovery_, self.coding_ = told(found), told(self.codings_)
        self.model_ = told([learnt.model for learnt in self.learnt_])
        self.predictor_ = told([learnt.returned.kind for learnt in self.learnt_])
        self.graph_, self.abstained_ = told([one.graph for one in found]), told([one.abstained for one in found])
        self.reason_ = told([one.reason for one in found])
        self.confidence_ = told([dict(one.confidence) for one in found])
        self._several = targets.ndim == 2
        return self

    def predict(self, X: Any) -> Array:
        """(row,), or (row, target) where there were several."""
        check_is_fitted(self)
        columns = new_columns(self, X)
        both = zip(self.learnt_, self.codings_, strict=True)
        said = [learnt.returned.predict(coding.encode(columns)) for learnt, coding in both]
        return np.stack(said, axis=1) if self._several else said[0]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """(row, 2), or (row, target, 2): between these the target of a new row lies, in this share of rows like the
        training rows."""
        middle = self.predict(X)
        residuals = [learnt.discovery.residuals for learnt in self.learnt_]
        widths = np.array([half_width(one, coverage) for one in residuals if one is not None])
        width = widths if self._several else widths[0]
        return np.stack([middle - width, middle + width], axis=-1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
