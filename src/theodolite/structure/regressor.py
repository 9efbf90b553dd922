"""A scikit-learn regressor that finds the graph of a function in data, and abstains where the data do not show one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.structure.fit.confirm import Confirmation
from theodolite.structure.fit.effort import EFFORTS, TRIAL, Effort, effort_named
from theodolite.structure.fit.fitting import LEAST_ROWS, Fitted, fit
from theodolite.structure.result import Discovery, Found

Array = NDArray[np.float64]


class BadData(BadInput, ValueError):
    """What scikit-learn expects to be told of data or parameters that cannot be used."""


class CompositionalRegressor(RegressorMixin, BaseEstimator):
    """Learns a compositional graph and a network of it, or, where held-out rows do not prefer one, a dense network.

    Parameters: `graph`, a CompositionalGraph (or its JSON) to fit instead of looking for one; `effort`, one of auto,
    quick, standard, thorough, where auto is quick below 500 rows; `seconds`, a limit on the time that fitting takes,
    which makes the result depend on the machine; `random_state`, as everywhere in scikit-learn.

    After `fit`: `graph_`, `abstained_`, `reason_`, `confidence_` (of every edge of the graph), `model_` (a Fitted),
    `discovery_` (a Discovery; its test errors are None, because no rows are set aside), `n_features_in_` and, where
    columns have names, `feature_names_in_`. Needs at least 6 rows and 2 columns; below 50 rows it always abstains.
    """

    def __init__(
        self,
        graph: CompositionalGraph | dict[str, Any] | None = None,
        *,
        effort: str | Effort = "auto",
        seconds: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.graph = graph
        self.effort = effort
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> CompositionalRegressor:
        began = time.monotonic()
        checked = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=LEAST_ROWS, ensure_min_features=2
        )
        rows, targets = (np.asarray(part, dtype=np.float64) for part in checked)
        try:
            names = self._names(rows.shape[1])
            generator = _generator(self.random_state)
            if self.graph is None:
                self._search(rows, targets, names, generator, began)
            else:
                graph = _widened(_graph(self.graph, names), names)
                work = effort_named(self.effort, len(rows))
                if self.effort == "auto" and work == EFFORTS["quick"]:
                    work = TRIAL  # nothing is looked for, so there is time for more starts
                model = fit(graph, rows, targets, generator, effort=work, seconds=self.seconds)
                sure = dict.fromkeys(graph.edges, 1.0)
                self._take(Found(graph, sure, {}), model, False, "the graph was given", {}, began)
        except BadInput as error:
            raise error if isinstance(error, ValueError) else BadData(str(error)) from error
        return self

    def predict(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, dtype=np.float64, reset=False))

    def _names(self, columns: int) -> tuple[str, ...]:
        given = getattr(self, "feature_names_in_", None)
        if given is not None:
            return tuple(str(name) for name in given)
        if isinstance(self.graph, CompositionalGraph | dict):
            variables = _parsed(self.graph).variables
            if len(variables) == columns:
                return variables
        return tuple(f"x{place + 1}" for place in range(columns))

    def _search(
        self, rows: Array, targets: Array, names: Sequence[str], generator: np.random.Generator, began: float
    ) -> None:
        from theodolite.structure.refine import LEAST_ROWS as SEARCH_ROWS
        from theodolite.structure.refine import settle

        kept, notes = _distinct(rows, names)
        asked = settle(
            *(rows, targets, names, generator),
            leave_out=[name for place, name in enumerate(names) if place not in kept],
            effort=self.effort,
            seconds=_left(self.seconds, began),
        )
        reason = asked.reason
        if len(rows) < SEARCH_ROWS:
            reason = f"{len(rows)} rows are too few to tell one graph from another: give at least {SEARCH_ROWS}"
        dense = Found(asked.dense.graph, {}, asked.trials[0].found.pairs if asked.trials else {})
        details = {"rows": len(rows), **_details(asked), "notes": notes}
        self._take(asked.chosen or dense, asked.model, asked.chosen is None, reason, details, began)

    def _take(
        self, found: Found, model: Fitted, abstained: bool, reason: str, details: dict[str, Any], began: float
    ) -> None:
        self.model_, self.graph_, self.abstained_, self.reason_ = model, found.graph, abstained, reason
        self.confidence_ = dict(found.confidence)
        self.discovery_ = Discovery(
            target="y",
            mode="data",
            graph=found.graph,
            abstained=abstained,
            reason=reason,
            confidence=self.confidence_,
            pairs=dict(found.pairs),
            test_error=None,
            dense_test_error=None,
            boosting_test_error=None,
            model=model,
            details={**details, "seconds": round(time.monotonic() - began, 3)},
        )


def _details(asked: Confirmation) -> dict[str, Any]:
    document = asked.to_json()
    return {name: document[name] for name in ("dense_held_out_error", "dense_kind", "parameters", "candidates")}


def _generator(random_state: Any) -> np.random.Generator:
    """Numpy's global state is neither read nor moved: None draws fresh entropy."""
    if random_state is None or isinstance(random_state, int | np.integer | np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def _left(seconds: float | None, began: float) -> float | None:
    return None if seconds is None else max(0.1, seconds - (time.monotonic() - began))


def _distinct(rows: Array, names: Sequence[str]) -> tuple[list[int], list[str]]:
    """Columns that vary and are no copy of an earlier one, and a note on each of the others."""
    kept: list[int] = []
    notes: list[str] = []
    for place, name in enumerate(names):
        column = rows[:, place]
        twin = next((other for other in kept if np.array_equal(rows[:, other], column)), None)
        if np.ptp(column) == 0:
            notes.append(f"the column '{name}' is constant and was left out of the search")
        elif twin is not None:
            notes.append(f"the column '{name}' is a copy of '{names[twin]}' and was left out of the search")
        else:
            kept.append(place)
    return kept, notes


def _parsed(graph: CompositionalGraph | dict[str, Any]) -> CompositionalGraph:
    return graph if isinstance(graph, CompositionalGraph) else CompositionalGraph.from_json(graph)


def _graph(given: Any, names: Sequence[str]) -> CompositionalGraph:
    if not isinstance(given, CompositionalGraph | dict):
        raise BadData(f"graph must be a CompositionalGraph or its JSON, not {type(given).__name__}")
    graph = _parsed(given)
    strange = [name for name in graph.used if name not in names]
    if strange:
        raise BadData(f"the graph reads '{strange[0]}', which is no column: the columns are {', '.join(names[:12])}")
    return graph


def _widened(graph: CompositionalGraph, names: Sequence[str]) -> CompositionalGraph:
    """The same function of all columns, in their order; those it does not read feed nothing."""
    return CompositionalGraph(tuple(names), graph.nodes)
