"""What both estimators share: their parameters, and that columns may have gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from theodolite.graphs import CompositionalGraph
from theodolite.structure.fit.effort import Effort


class CompositionalEstimator(BaseEstimator):
    def __init__(
        self,
        graph: CompositionalGraph | dict[str, Any] | None = None,
        *,
        effort: str | Effort = "auto",
        seconds: float | None = None,
        boosting: bool = True,
        process: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.graph = graph
        self.effort = effort
        self.seconds = seconds
        self.boosting = boosting
        self.process = process
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
