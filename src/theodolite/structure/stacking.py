"""What predicts: the mean of networks, boosted trees and an additive model that rows held out of all of them prefer.

Stacked regressions (Wolpert 1992, Breiman 1996): every row is predicted by models that did not see it, and weights,
none negative and 1 in all with that of the target's mean, are fitted to these predictions. Whether the mean is better
is judged by rows whose weights were fitted to other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from theodolite.structure.additive import fit_additive
from theodolite.structure.boosting import boosted, fold_trees, stopping_error
from theodolite.structure.fit.fitting import Fitted

Array = NDArray[np.float64]
LEAST_ROWS = 50  # fewer tell no weights
FOLDS = 4
LITTLE = 0.1  # a weight that is taken for none
NEAR = 2.0  # times the lowest error: trees and additive models of more do not take part,
MAYBE = 1.5  # and trees whose error while they were fitted is that many times more are not fitted fold by fold
FAR_OFF = 0.005  # of the rows do not choose: those that every model misses most
COUNTED = 0.1  # of the largest share: the network of a fold with less was caught in a poor minimum and hardly predicts
NETWORKS = ("graph", "dense")
_WORDS = {"graph": "the graph's network", "dense": "a dense network", "additive": "an additive model"}


class Model(Protocol):
    @property
    def held_out(self) -> Array | None: ...

    def predict(self, x: ArrayLike) -> Array: ...


@dataclass(frozen=True)
class WeightedMean:
    """`offset` + Σ weight · what a model says, of models named graph, dense, boosting or additive. `held_out` is what
    it says of training rows that neither models nor weights saw; None once read back."""

    models: Mapping[str, Model]
    weights: Mapping[str, float]
    offset: float = 0.0
    held_out: Array | None = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        """The one model that predicts, “mean” of several, or “constant”, the target's mean, where none tells more."""
        return "mean" if len(self.models) > 1 else next(iter(self.models), "constant")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "weights": dict(self.weights), "offset": self.offset}

    def predict(self, x: ArrayLike) -> Array:
        rows = np.asarray(x, dtype=np.float64)
        said = np.full(len(rows), self.offset)
        for name, model in self.models.items():
            said += self.weights[name] * model.predict(rows)
        return said


@dataclass(frozen=True)
class Stack:
    """What predicts, all models that could, by name, their errors on rows held out over the variance of the target, and
    a note where something else than the network alone predicts."""

    returned: WeightedMean
    models: Mapping[str, Model]
    errors: Mapping[str, float]
    notes: tuple[str, ...] = ()
    boosted: Callable[[Array], Array] | None = field(default=None, repr=False)  # trees of all rows


def alone(network: Fitted, name: str = "graph") -> WeightedMean:
    return WeightedMean({name: network}, {name: 1.0}, held_out=network.held_out)


def stacked(
    network: Fitted,
    dense: Fitted,
    x: Array,
    y: Array,
    generator: np.random.Generator,
    *,
    boosting: bool = True,
    report: Callable[[str], None] | None = None,
) -> Stack:
    """What predicts, of the columns that the dense network reads (all, unless some were screened out before).

    The network that was chosen, or a mean of it with the dense one, an additive model and boosted trees, where the
    error of this mean on rows held out is lower. Trees and additive models far behind the best do not take part."""
    tell = report or (lambda label: None)
    name = "dense" if network is dense else "graph"
    models: dict[str, Model] = {name: network, "dense": dense}
    first = alone(network, name)
    if len(y) < LEAST_ROWS or np.ptp(y) == 0:
        return Stack(first, models, {key: _error(model, y) for key, model in models.items()} if np.ptp(y) else {})
    fold = generator.permutation(len(y)) % FOLDS
    tell("additive model")
    read = np.array([place for place, key in enumerate(dense.graph.variables) if key in dense.graph.used])
    models["additive"] = fit_additive(x[:, read], y, fold).widened(read, x.shape[1])
    trees = None
    if boosting:
        tell("gradient boosting")
        seed = int(generator.integers(2**31))
        whole = boosted(x[:, read], y, seed)
        trees = lambda rows: whole.predict(rows[:, read])
        if stopping_error(whole) / y.var() <= MAYBE * NEAR * min(_error(model, y) for model in models.values()):
            models["boosting"] = fold_trees(x[:, read], y, fold, whole, seed).widened(read)
    errors = {key: _error(model, y) for key, model in models.items()}
    near = [key for key in models if key in NETWORKS or errors[key] <= NEAR * min(errors.values())]
    losses = np.stack([(_unseen(models[key]) - y) ** 2 for key in near])
    rows = _counted([network, dense], x) & _told(losses)
    for keys in dict.fromkeys((tuple(key for key in near if key in NETWORKS), tuple(near))):
        first = _better(first, {key: models[key] for key in keys}, y, rows, generator)
    alone_is_best = first.kind == name and first.weights[name] == 1
    return Stack(first, models, errors, () if alone_is_best else (_note(first, name, errors[name], y),), trees)


def _better(
    before: WeightedMean, models: Mapping[str, Model], y: Array, rows: NDArray[np.bool_], generator: np.random.Generator
) -> WeightedMean:
    """The mean of these models, if its error on these rows, held out, is lower than before."""
    unseen = np.stack([_unseen(model) for model in models.values()] + [np.full(len(y), y.mean())], axis=1)
    group = generator.permutation(len(y)) % FOLDS
    said = np.empty(len(y))
    for number in range(FOLDS):
        own = group == number
        said[own] = unseen[own] @ _weights(unseen[~own & rows], y[~own & rows])
    if np.mean((said - y)[rows] ** 2) >= np.mean((_unseen(before) - y)[rows] ** 2):
        return before
    *weights, of_mean = _weights(unseen[rows], y[rows])
    kept = {key: float(weight) for key, weight in zip(models, weights, strict=True) if weight > 0}
    return WeightedMean({key: models[key] for key in kept}, kept, float(of_mean * y.mean()), said)


def _weights(unseen: Array, y: Array) -> Array:
    """Weights, none negative and 1 in all, of least squared error, none of them small."""
    centred, firm = unseen - y.mean(), 1e3 * float(np.linalg.norm(y - y.mean()) + 1e-300)
    rows, wanted = np.vstack([centred, np.full(centred.shape[1], firm)]), np.append(y - y.mean(), firm)
    weights, left = np.zeros(centred.shape[1]), np.ones(centred.shape[1], dtype=bool)
    while True:
        weights[left], _ = nnls(rows[:, left], wanted)
        weak = np.flatnonzero((weights > 0) & (weights < LITTLE))
        if not len(weak):
            return weights / weights.sum()
        left &= weights > 0
        left[weak[np.argmin(weights[weak])]] = False
        weights[:] = 0.0


def _counted(networks: list[Fitted], x: Array) -> NDArray[np.bool_]:
    """The rows whose held-out predictions are by networks that count in the mean over folds; all where these are few:
    the network of a fold that was caught in a poor minimum says nothing of the mean."""
    found = np.ones(len(x), dtype=bool)
    for one in networks:
        each = [
            replace(one, members=one.members[[place]], shares=np.ones(1)).predict(x)
            for place in range(len(one.members))
        ]
        by = np.abs(np.stack(each) - _unseen(one)).argmin(0)
        found &= one.shares[by] >= COUNTED * one.shares.max()
    return found if found.mean() > 1 / FOLDS else np.ones(len(x), dtype=bool)


def _told(losses: Array) -> NDArray[np.bool_]:
    """All rows but those that no model comes near to: a few values far off the others would choose by chance."""
    least = losses.min(0)
    return least <= np.quantile(least, 1 - FAR_OFF)


def _note(returned: WeightedMean, name: str, error: float, y: Array) -> str:
    weights = {_WORDS.get(key, key): weight for key, weight in returned.weights.items()}
    weights |= {"the target's mean": 1 - sum(weights.values())} if sum(weights.values()) < 1 - LITTLE / 2 else {}
    parts = [f"{key} ({weight:.2g})" for key, weight in weights.items()]
    what = next(iter(weights)) if len(parts) == 1 else f"a weighted mean of {', '.join(parts[:-1])} and {parts[-1]}"
    return (
        f"{what} is better here and predicts: its error on rows held out is {_error(returned, y):.3g} of the variance, "
        f"that of {_WORDS[name]} alone {error:.3g}"
    )


def _unseen(model: Model) -> Array:
    assert model.held_out is not None
    return model.held_out


def _error(model: Model, y: Array) -> float:
    return float(np.mean((_unseen(model) - y) ** 2) / y.var())
