"""What `discover` returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.notebook import Shown
from theodolite.statistics.paired import LEVEL

if TYPE_CHECKING:
    from theodolite.structure.data.coding import Coding
    from theodolite.structure.data.tables import Samples
    from theodolite.structure.explain.explanation import Explanation
    from theodolite.structure.fit.fitting import Fitted
    from theodolite.structure.predictions import Predictions, Predictor
    from theodolite.structure.stacking import WeightedMean


@dataclass(frozen=True)
class Found:
    """A graph that a search proposes: `confidence` in each of its edges (input, node), between 0 and 1, and `pairs`,
    the strength of every interaction between two variables (a score to rank them by), and `notes` in sentences."""

    graph: CompositionalGraph
    confidence: Mapping[tuple[str, str], float]
    pairs: Mapping[tuple[str, str], float]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Discovery(Shown):
    """The graph that data or a black box shows, the network fitted to it, and what it is worth on data held out.

    `abstained`: no graph was preferred to a dense network, or the one that was is in doubt; then `graph` is dense, and
    `model` the dense network or, where that predicts better, the network of a graph that is not claimed. For a graph
    whose own network misses next to nothing `model` may be the dense one, where it is better still. `returned` is what
    predicts, apart from what is claimed: this network, or a weighted mean with the dense one, boosted trees and an
    additive model that rows held out prefer; `test_error` is its error. Errors are mean squared errors over the
    variance of the target, on rows that nothing was chosen by; None where there is no such network (a black box that
    was only asked for its graph).
    """

    target: str
    mode: str  # "data" or "black box"
    graph: CompositionalGraph
    abstained: bool
    reason: str  # why it abstained, or why the graph was preferred, in a sentence
    confidence: Mapping[tuple[str, str], float]
    pairs: Mapping[tuple[str, str], float]
    test_error: float | None
    dense_test_error: float | None
    boosting_test_error: float | None
    model: Fitted | None = field(repr=False)
    details: Mapping[str, Any] = field(default_factory=dict)  # rows, noise, seconds, candidates, parameters, seed
    coding: Coding | None = field(default=None, repr=False)  # how the columns of a table became numbers
    rows: tuple[Samples, Samples] | None = field(default=None, repr=False)  # to learn from, and to test on
    explanation: Explanation | None = field(default=None, repr=False)
    residuals: NDArray[np.float64] | None = field(default=None, repr=False)  # of training rows it has not seen
    returned: WeightedMean | None = field(default=None, repr=False)

    def predict(self, data: Any, coverage: float = 0.9) -> Predictions:
        """The predicted value of every row of a table (a path, a data frame, an array of its variables), with an
        interval that holds this share of the targets."""
        return self.predictor().predict(data, coverage=coverage)

    def predictor(self) -> Predictor:
        from theodolite.structure.data.coding import plain_coding
        from theodolite.structure.predictions import Predictor
        from theodolite.structure.stacking import alone

        if self.model is None:
            raise BadInput("no network was fitted (--graph-only, fit=False): fit one to predict")
        coding = self.coding or plain_coding(self.graph.variables, self.model.centre)
        unseen = np.empty(0) if self.residuals is None else self.residuals
        return Predictor(self.returned or alone(self.model), coding, self.target, unseen)

    def rows_enough(self, edge: tuple[str, str]) -> int | None:
        """About how many rows to learn from would make an edge in doubt sure (95 %), were its effect as it seems; None
        where it is sure, nothing speaks for it, or its confidence is not of a table."""
        rows, sure = self.details.get("rows"), self.confidence.get(edge)
        if self.mode != "data" or not isinstance(rows, Mapping) or sure is None or not 0 < sure < 1 - LEVEL:
            return None
        tests = max(1, len(self.pairs))
        seen, needed = (float(stats.norm.isf(level / tests)) for level in (1 - sure, LEVEL))
        return math.ceil(rows["train"] * (needed / seen) ** 2) if seen > 0 else None

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "mode": self.mode,
            "graph": self.graph.to_json(),
            "abstained": self.abstained,
            "reason": self.reason,
            "test_error": self.test_error,
            "dense_test_error": self.dense_test_error,
            "boosting_test_error": self.boosting_test_error,
            "returned": None if self.returned is None else self.returned.to_json(),
            "edges": [
                {"from": a, "to": b, "confidence": self.confidence.get((a, b)), "rows_enough": self.rows_enough((a, b))}
                for a, b in self.graph.edges
            ],
            "pairs": [
                {"variables": [a, b], "score": score}
                for (a, b), score in sorted(self.pairs.items(), key=lambda item: -item[1])
            ],
            **self.details,
            **({} if self.explanation is None else {"explanation": self.explanation.to_json()}),
            **({} if self.coding is None else {"columns": self.coding.to_json()["columns"]}),
        }
