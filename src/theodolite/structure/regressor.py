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
    generator_of,
    learn,
    new_columns,
    refuse,
    training_columns,
    unseen_by,
)

Array = NDArray[np.float64]


class CompositionalRegressor(RegressorMixin, CompositionalEstimator):
    """Learns a compositional graph and a network of it, or, where held-out rows do not prefer one, a dense network.

    Parameters: `graph`, a CompositionalGraph (or its JSON) to fit instead of looking for one; `effort`, one of auto,
    quick, standard, thorough, where auto is quick below 250 rows; `seconds`, a limit on the time that fitting takes,
    which makes the result depend on the machine; `boosting`, whether boosted trees take part where held-out rows prefer
    a mean with them to the network alone; `random_state`, as everywhere in scikit-learn.

    After `fit`: `predictor_` (graph, dense, boosting or mean: what predicts), `graph_`, `abstained_`, `reason_`,
    `confidence_` (of every edge of the graph), `model_` (a Fitted), `discovery_` (a Discovery; its test errors are
    None, because no rows are set aside), `coding_` (how columns became numbers), `n_features_in_` and, where columns
    have names, `feature_names_in_`. Needs at least 6 rows and 2 columns; below 50 rows it always abstains. Columns of
    a data frame may be words, dates and categories, and may have gaps.
    """

    def fit(self, X: Any, y: Any, **refused: Any) -> CompositionalRegressor:
        refuse(refused)
        columns, targets = training_columns(self, X, y, y_numeric=True)
        targets = targets.astype(np.float64)
        coding = learn_coding(columns, targets)
        settings = Settings(self.graph, self.effort, self.seconds, self.boosting, generator_of(self.random_state))
        try:
            learnt = learn(encode_training(coding, columns, targets), targets, coding.variables, settings)
        except BadInput as error:
            raise error if isinstance(error, ValueError) else BadData(str(error)) from error
        self.learnt_, self.coding_ = learnt, coding
        found = replace(learnt.discovery, coding=coding, residuals=np.abs(targets - unseen_by(learnt.model)))
        self.discovery_, self.model_, self.predictor_ = found, learnt.model, learnt.found
        self.graph_, self.abstained_, self.reason_ = found.graph, found.abstained, found.reason
        self.confidence_ = dict(found.confidence)
        self._residuals = np.abs(targets - learnt.held_out)
        return self

    def predict(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.learnt_.predict(self.coding_.encode(new_columns(self, X)))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """(row, 2): between these the target of a new row lies, in this share of rows like the training rows."""
        middle = self.predict(X)
        width = half_width(self._residuals, coverage)
        return np.stack([middle - width, middle + width], axis=1)
