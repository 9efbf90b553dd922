"""What the estimators share: columns read, a graph looked for, and the model that held-out rows prefer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.validation import validate_data

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.structure.data.columns import Column, is_frame, of_array, of_frame, row_place
from theodolite.structure.data.faults import check_columns
from theodolite.structure.estimator import CompositionalEstimator
from theodolite.structure.fit.confirm import Confirmation
from theodolite.structure.fit.effort import EFFORTS, TRIAL, Effort, effort_named
from theodolite.structure.fit.fitting import LEAST_ROWS, Fitted, fit
from theodolite.structure.result import Discovery, Found
from theodolite.structure.search.pairs import pairs_of
from theodolite.structure.stacking import WeightedMean, alone, others_ahead, stacked

Array = NDArray[np.float64]
_GAPS: Any = "allow-nan"


class BadData(BadInput, ValueError):
    """What scikit-learn expects to be told of data or parameters that cannot be used."""


@dataclass(frozen=True)
class Settings:
    """What the estimators are told."""

    graph: Any
    effort: str | Effort
    seconds: float | None
    boosting: bool
    process: bool
    generator: np.random.Generator

    @classmethod
    def of(cls, estimator: CompositionalEstimator, count: int) -> Settings:
        """For each of so many targets, which share the time."""
        seconds = None if estimator.seconds is None else estimator.seconds / count
        parts = estimator.boosting, estimator.process
        return cls(estimator.graph, estimator.effort, seconds, *parts, generator_of(estimator.random_state))


@dataclass(frozen=True)
class Learnt:
    """What a table says of one target: its graph and network, and `returned`, which predicts."""

    discovery: Discovery
    model: Fitted
    returned: WeightedMean


def training_columns(
    estimator: Any, X: Any, y: Any, *, y_numeric: bool, multi_output: bool = False
) -> tuple[list[Column], NDArray[Any]]:
    """The columns of a data frame as they stand, or those of an array, and one target (or several) for each row;
    checked as scikit-learn does."""
    least: dict[str, Any] = {"ensure_min_samples": LEAST_ROWS, "ensure_min_features": 2, "multi_output": multi_output}
    if _has_words(X):
        validate_data(estimator, X, skip_check_array=True)
        blank = np.zeros((len(X), len(X.columns)))
        _, targets = check_X_y(blank, y, y_numeric=y_numeric, **least)
        return _checked(of_frame(X)), targets
    rows, targets = validate_data(
        estimator, X, y, dtype=np.float64, y_numeric=y_numeric, ensure_all_finite=_GAPS, **least
    )
    return _checked(of_array(rows, _names(estimator))), np.asarray(targets)


def new_columns(estimator: Any, X: Any) -> list[Column]:
    """The columns of rows to predict, as many as were learnt from."""
    if _has_words(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return _checked(of_frame(X))
    rows = validate_data(estimator, X, dtype=np.float64, reset=False, ensure_all_finite=_GAPS)
    return _checked(of_array(rows, _names(estimator)))


def learn(rows: Array, targets: Array, names: Sequence[str], settings: Settings) -> Learnt:
    """A graph that is given is fitted as it is; otherwise one is looked for, and the best of graph, dense network and
    boosted trees on held-out rows is kept."""
    began = time.monotonic()
    if settings.graph is None:
        return _searched(rows, targets, names, settings, began)
    graph = _widened(_graph(settings.graph, names), names)
    work = effort_named(settings.effort, len(rows))
    if settings.effort == "auto" and work == EFFORTS["quick"]:
        work = TRIAL  # nothing is looked for, so there is time for more starts
    model = fit(graph, rows, targets, settings.generator, effort=work, seconds=settings.seconds)
    sure = dict.fromkeys(graph.edges, 1.0)
    found = _discovery(Found(graph, sure, {}), model, False, "the graph was given", {}, began)
    return _learnt(found, model, alone(model), targets)


def generator_of(random_state: Any) -> np.random.Generator:
    """Numpy's global state is neither read nor moved: None draws fresh entropy."""
    if random_state is None or isinstance(random_state, int | np.integer | np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def refuse(options: Mapping[str, Any]) -> None:
    """Whatever `fit` is given beside X and y."""
    if options:
        name = next(iter(options))
        raise BadData(f"fit takes X and y, not {name}: rows all count the same")


def _has_words(X: Any) -> bool:
    """Whether a data frame holds anything but numbers, which scikit-learn would not let pass."""
    return is_frame(X) and any(column.kind != "number" or column.text is not None for column in of_frame(X))


def _names(estimator: Any) -> list[str] | None:
    given = getattr(estimator, "feature_names_in_", None)
    if given is not None:
        return [str(name) for name in given]
    graph = estimator.graph
    if isinstance(graph, CompositionalGraph | dict):
        variables = _parsed(graph).variables
        if len(variables) == estimator.n_features_in_:
            return list(variables)
    return None


def _checked(columns: list[Column]) -> list[Column]:
    try:
        check_columns(columns, row_place)
    except BadInput as error:
        raise BadData(str(error)) from error
    return columns


def _searched(rows: Array, targets: Array, names: Sequence[str], settings: Settings, began: float) -> Learnt:
    from theodolite.structure.settle import LEAST_ROWS as SEARCH_ROWS
    from theodolite.structure.settle import settle

    kept, notes = _distinct(rows, names)
    boosting, process, seconds = settings.boosting, settings.process, settings.seconds
    with others_ahead(
        *(rows, targets, settings.generator), boosting=boosting, process=process, seconds=seconds
    ) as others:
        asked = settle(
            *(rows, targets, names, settings.generator),
            leave_out=[name for place, name in enumerate(names) if place not in kept],
            effort=settings.effort,
            seconds=seconds,
        )
        late = seconds is not None and time.monotonic() - began > seconds
        stack = stacked(
            *(asked.model, asked.dense, rows, targets, settings.generator),
            boosting=boosting and not late,
            process=process and not late,
            others=others,
        )
    reason = asked.reason
    if len(rows) < SEARCH_ROWS:
        reason = f"{len(rows)} rows are too few to tell one graph from another: give at least {SEARCH_ROWS}"
    dense = Found(asked.dense.graph, {}, asked.trials[0].found.pairs if asked.trials else {})
    notes += asked.notes
    details = {"rows": len(rows), **_details(asked)}
    found = asked.chosen or dense
    found = replace(found, pairs=pairs_of(found, asked, rows, targets))
    details |= {"held_out_errors": dict(stack.errors), "notes": [*stack.notes, *notes]}
    told = _discovery(found, asked.model, asked.chosen is None, reason, details, began)
    return _learnt(told, asked.model, stack.returned, targets)


def _learnt(discovery: Discovery, model: Fitted, returned: WeightedMean, targets: Array) -> Learnt:
    assert returned.held_out is not None
    told = replace(discovery, returned=returned, residuals=np.abs(targets - returned.held_out))
    return Learnt(told, model, returned)


def _discovery(
    found: Found, model: Fitted, abstained: bool, reason: str, details: dict[str, Any], began: float
) -> Discovery:
    return Discovery(
        target="y",
        mode="data",
        graph=found.graph,
        abstained=abstained,
        reason=reason,
        confidence=dict(found.confidence),
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
