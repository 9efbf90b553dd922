"""What the estimators share: columns read, a graph looked for, and the model that held-out rows prefer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.validation import validate_data

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.statistics.paired import above_zero
from theodolite.structure.boosting import FoldTrees, fold_trees
from theodolite.structure.data.columns import Column, is_frame, of_array, of_frame, row_place
from theodolite.structure.data.faults import check_columns
from theodolite.structure.fit.confirm import Confirmation
from theodolite.structure.fit.effort import EFFORTS, TRIAL, Effort, effort_named
from theodolite.structure.fit.fitting import LEAST_ROWS, Fitted, fit
from theodolite.structure.result import Discovery, Found

Array = NDArray[np.float64]
_GAPS: Any = "allow-nan"
LITTLE = 0.05  # a weight in a mean that is taken for none


class BadData(BadInput, ValueError):
    """What scikit-learn expects to be told of data or parameters that cannot be used."""


@dataclass(frozen=True)
class Settings:
    """What the estimators are told."""

    graph: Any
    effort: str | Effort
    seconds: float | None
    boosting: bool
    generator: np.random.Generator


@dataclass(frozen=True)
class Learnt:
    """What a table says of one target. Where held-out rows prefer it to the network alone, a weighted mean with trees
    predicts: `weights` of the network and of each of `trees`. `held_out` is what predicts, of training rows that the
    networks and trees have not seen."""

    discovery: Discovery
    model: Fitted
    held_out: Array = field(repr=False)
    trees: tuple[FoldTrees, ...] = field(default=(), repr=False)
    weights: tuple[float, ...] = (1.0,)

    @property
    def found(self) -> str:
        """What predicts: “graph”, “dense”, “boosting”, or the “mean” of a network and boosting."""
        if self.trees:
            return "mean" if self.weights[0] > LITTLE else "boosting"
        return "dense" if self.model.graph.is_dense else "graph"

    def predict(self, rows: Array) -> Array:
        parts = [self.model.predict(rows), *(one.predict(rows) for one in self.trees)]
        return np.tensordot(self.weights, np.stack(parts), axes=1)


def training_columns(estimator: Any, X: Any, y: Any, *, y_numeric: bool) -> tuple[list[Column], NDArray[Any]]:
    """The columns of a data frame as they stand, or those of an array, and one target for each row; checked as
    scikit-learn does."""
    least: dict[str, Any] = {"ensure_min_samples": LEAST_ROWS, "ensure_min_features": 2}
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
    return Learnt(found, model, unseen_by(model))


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
    from theodolite.structure.refine import LEAST_ROWS as SEARCH_ROWS
    from theodolite.structure.refine import settle

    kept, notes = _distinct(rows, names)
    asked = settle(
        *(rows, targets, names, settings.generator),
        leave_out=[name for place, name in enumerate(names) if place not in kept],
        effort=settings.effort,
        seconds=settings.seconds,
    )
    reason = asked.reason
    if len(rows) < SEARCH_ROWS:
        reason = f"{len(rows)} rows are too few to tell one graph from another: give at least {SEARCH_ROWS}"
    dense = Found(asked.dense.graph, {}, asked.trials[0].found.pairs if asked.trials else {})
    notes += asked.notes
    details = {"rows": len(rows), **_details(asked), "notes": notes}
    learnt = Learnt(
        _discovery(asked.chosen or dense, asked.model, asked.chosen is None, reason, details, began),
        asked.model,
        unseen_by(asked.model),
    )
    if settings.boosting and len(rows) >= SEARCH_ROWS and np.ptp(targets) > 0:
        learnt = _with_trees(learnt, rows, targets, int(settings.generator.integers(2**31)))
    return learnt


def _with_trees(learnt: Learnt, rows: Array, targets: Array, seed: int) -> Learnt:
    """With boosted trees, of all variables together and of each by itself, where held-out rows prefer the mean."""
    trees = (fold_trees(rows, targets, seed), fold_trees(rows, targets, seed, additive=True))
    unseen = np.stack([learnt.held_out, *(one.held_out for one in trees)], axis=1)
    weights = _mean_weights(unseen, targets)
    mean = unseen @ weights
    errors = np.mean((unseen - targets[:, None]) ** 2, axis=0) / targets.var()
    error = float(np.mean((mean - targets) ** 2) / targets.var())
    better = above_zero((learnt.held_out - targets) ** 2 - (mean - targets) ** 2)
    details: dict[str, Any] = {**learnt.discovery.details, "boosting_held_out_error": float(errors[1:].min())}
    if better:
        what = "a mean with boosting" if weights[0] > LITTLE else "boosting"
        details["weights"] = dict(zip(("network", "boosting", "additive boosting"), weights.tolist(), strict=True))
        details["notes"] = [
            f"{what} is better here: its held-out error is {error:.3g} of the variance, the network's {errors[0]:.3g}; "
            f"it predicts, with a weight of {weights[0]:.2g} for the network, which is model_",
            *details["notes"],
        ]
    told = replace(learnt, discovery=replace(learnt.discovery, details=details))
    return replace(told, held_out=mean, trees=trees, weights=tuple(weights.tolist())) if better else told


def _mean_weights(unseen: Array, targets: Array) -> Array:
    """Weights, none negative and 1 in all, of least squared error; 0 for what hardly counts."""
    firm = 1e3 * float(np.sqrt(np.mean(targets**2) * len(targets)) + 1)
    weights, _ = nnls(np.vstack([unseen, np.full(unseen.shape[1], firm)]), np.append(targets, firm))
    weights[weights < LITTLE * weights.sum()] = 0.0
    return weights / weights.sum()


def unseen_by(model: Fitted) -> Array:
    """The training rows as predicted by networks that did not see them."""
    assert model.held_out is not None
    return model.held_out


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
