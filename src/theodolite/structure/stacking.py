"""What predicts: the mean of networks, boosted trees and an additive model that rows held out of all of them prefer.

Stacked regressions (Wolpert 1992, Breiman 1996): every row is predicted by models that did not see it, and weights,
none negative and 1 in all with that of the target's mean, are fitted to these predictions. Whether the mean is better
is judged by rows whose weights were fitted to other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from theodolite.structure.additive import Additive, fit_additive
from theodolite.structure.boosting import Forest, boosted, fold_trees, stopping_error
from theodolite.structure.fit.fitting import Fitted

Array = NDArray[np.float64]
LEAST_ROWS = 50  # fewer tell no weights
FOLDS = 4
LITTLE = 0.1  # a weight that is taken for none
NEAR = 2.0  # times the lowest error: trees and additive models of more do not take part,
MAYBE = 1.5  # and trees whose error while they were fitted is that many times more are not fitted fold by fold
FAR_OFF = 0.005  # of the rows do not choose: those that every model misses most
TREES = 0.5  # of how far trees of two folds differ on rows that one has learnt, which they follow, is on new ones
RESAMPLES = 50
COUNTED = 0.1  # of the largest share: the network of a fold with less was caught in a poor minimum
QUIET = 0.01  # of the variance: where a network misses more, noise is large
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
    taken = {key: models[key] for key in near}
    quiet = min(errors[key] for key in (name, "dense")) <= QUIET
    products, told = _products(taken, x, y, quiet), _told(losses)
    lowest = of_network = float(products[told][:, near.index(name), near.index(name)].mean())
    for keys in dict.fromkeys((tuple(key for key in near if key in NETWORKS), tuple(near))):
        places = [*(near.index(key) for key in keys), len(near)]
        own = {key: taken[key] for key in keys}
        mean, error = _mean(own, products[:, places][:, :, places], told, y, generator)
        if error < lowest:
            first, lowest = mean, error
    alone_is_best = first.kind == name and first.weights[name] == 1
    note = _note(first, name, lowest / y.var(), of_network / y.var())
    return Stack(first, models, errors, () if alone_is_best else (note,), trees)


def _mean(
    models: Mapping[str, Model], products: Array, told: NDArray[np.bool_], y: Array, generator: np.random.Generator
) -> tuple[WeightedMean, float]:
    """The mean of these models, and its squared error on rows that its weights were not fitted to."""
    unseen = np.stack([*map(_unseen, models.values()), np.full(len(y), y.mean())], axis=1)
    group = generator.permutation(len(y)) % FOLDS
    said, errors = np.empty(len(y)), []
    for number in range(FOLDS):
        own = group == number
        weights = _hedged(products[told & ~own], generator)
        said[own] = unseen[own] @ weights
        errors.append(float(weights @ products[told & own].mean(0) @ weights))
    *weights, of_mean = _hedged(products[told], generator)
    kept = {key: float(weight) for key, weight in zip(models, weights, strict=True) if weight > 0}
    mean = WeightedMean({key: models[key] for key in kept}, kept, float(of_mean * y.mean()), said)
    return mean, float(np.mean(errors))


def _hedged(products: Array, generator: np.random.Generator) -> Array:
    """The mean of the weights that resampled rows give: where rows tell little, no model gets all."""
    count = len(products)
    drawn = generator.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    means = np.einsum("sr,rab->sab", drawn, products, optimize=True)
    found = np.mean([_weights(mean) for mean in means], axis=0)
    found = np.where(found < LITTLE, 0.0, found)
    return found / found.sum()


def _weights(products: Array) -> Array:
    """Weights, none negative and 1 in all, of the least squared error."""
    values, vectors = np.linalg.eigh(products)
    root = np.sqrt(np.maximum(values, 1e-12 * values[-1]))[:, None] * vectors.T
    firm = 1e3 * float(np.sqrt(values[-1]) + 1e-300)
    weights, _ = nnls(np.vstack([root, np.full(len(values), firm)]), np.append(np.zeros(len(values)), firm))
    return weights / weights.sum()


def _products(models: Mapping[str, Model], x: Array, y: Array, quiet: bool) -> Array:
    """(row, model, model), the last the target's mean: products of errors, whose mean over rows is that on new rows.

    On a row held out, the network of one fold errs by e_k; what predicts is the mean over folds, Σ s_j e_j. As
    2 e_j e_k = e_j² + e_k² − (e_j − e_k)², its square is Σ s_j e_j² less Σ_{j<k} s_j s_k (e_j − e_k)², and how far two
    networks differ needs no target. A dense network's folds differ more than a graph's, and by its error on rows held
    out alone it would seem worse than it is. Where noise is large, though, so is what a network gains on these rows
    because they stop its training, by about as much, and nothing is taken off."""
    errors = np.stack([*(_unseen(model) - y for model in models.values()), y.mean() - y], axis=1)
    found = errors[:, :, None] * errors[:, None, :]
    if not quiet:
        return found * _counted(models, x)[:, None, None]
    folds = [_Folds.of(model, x) for model in models.values()]
    weights = [*(np.ones(len(y)) if one is None else one.weight for one in folds), np.ones(len(y))]
    for i, j in product(range(errors.shape[1]), repeat=2):
        a, b = (folds[place] if place < len(folds) else None for place in (i, j))
        if a is not None and b is not None and np.array_equal(a.fold, b.fold):
            found[:, i, j] = (weights[i] + weights[j]) / 2 * found[:, i, j] - a.differ(b)
        else:
            found[:, i, j] *= weights[i] * weights[j]
    return found


def _counted(models: Mapping[str, Model], x: Array) -> Array:
    """A weight of every row, 1 on the average, 0 of those whose held-out predictions are by networks that hardly count
    in the mean over folds; of all alike where there are few others."""
    folds = [_Folds.of(model, x) for model in models.values() if isinstance(model, Fitted)]
    kept = np.logical_and.reduce([one.shares[one.fold] >= COUNTED * one.shares.max() for one in folds if one])
    return kept / kept.mean() if kept.mean() > 1 / FOLDS else np.ones(len(x))


@dataclass(frozen=True)
class _Folds:
    """What the network of every fold says of every row, its share of the mean, and the fold of every row."""

    said: Array
    shares: Array
    fold: NDArray[np.int64]
    counts: float = 1.0  # of how far they differ

    @staticmethod
    def of(model: Model, x: Array) -> _Folds | None:
        """None where nothing is known of folds."""
        if isinstance(model, Fitted):
            each, shares, counts = np.stack([one(x) for one in model.guide().functions]), model.shares, 1.0
        elif isinstance(model, Forest | Additive) and model.of_folds is not None:
            each, counts = model.of_folds, TREES if isinstance(model, Forest) else 1.0
            shares = np.full(len(each), 1 / len(each))
        else:
            return None
        # the one that has not seen a row is the one that said what was held out
        return _Folds(each, shares, np.abs(each - _unseen(model)).argmin(0), counts)

    @cached_property
    def weight(self) -> Array:
        """Of every row, 1 on the average: a fold's rows count as much as its network does in the mean."""
        count = np.bincount(self.fold, minlength=len(self.shares))
        return (self.shares * len(self.fold) / np.maximum(count, 1))[self.fold]

    def differ(self, other: _Folds) -> Array:
        """Σ_{j<k} s_j s_k (e_j − e_k)² of two models, its mean over rows that one of j and k has not seen: on those
        that both have learnt from they differ less than on new ones."""
        found = np.zeros(len(self.fold))
        for j, k in combinations(range(len(self.said)), 2):
            some = (self.fold == j) | (self.fold == k)
            share = (self.shares[j] * other.shares[k] + self.shares[k] * other.shares[j]) / 2
            apart = (self.said[j] - self.said[k]) * (other.said[j] - other.said[k])
            found += share * apart * some / max(some.mean(), 1e-300)
        return self.counts * found


def _told(losses: Array) -> NDArray[np.bool_]:
    """All rows but those that no model comes near to: a few values far off the others would choose by chance."""
    least = losses.min(0)
    return least <= np.quantile(least, 1 - FAR_OFF)


def _note(returned: WeightedMean, name: str, error: float, of_network: float) -> str:
    weights = {_WORDS.get(key, key): weight for key, weight in returned.weights.items()}
    weights |= {"the target's mean": 1 - sum(weights.values())} if sum(weights.values()) < 1 - LITTLE / 2 else {}
    parts = [f"{key} ({weight:.2g})" for key, weight in weights.items()]
    what = next(iter(weights)) if len(parts) == 1 else f"a weighted mean of {', '.join(parts[:-1])} and {parts[-1]}"
    return (
        f"{what} is better here and predicts: by rows held out its error is about {error:.3g} of the variance, that of "
        f"{_WORDS[name]} alone {of_network:.3g}"
    )


def _unseen(model: Model) -> Array:
    assert model.held_out is not None
    return model.held_out


def _error(model: Model, y: Array) -> float:
    return float(np.mean((_unseen(model) - y) ** 2) / y.var())
