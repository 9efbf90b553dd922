"""What predicts: the mean of networks, trees, an additive model and a Gaussian process that rows held out prefer.

Stacked regressions (Wolpert 1992, Breiman 1996): every row is predicted by models that did not see it, and weights,
none negative and 1 in all with that of the target's mean, are fitted to these predictions. Whether the mean is better
is judged by rows whose weights were fitted to other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from theodolite.statistics.paired import above_zero
from theodolite.structure.additive import Additive, fit_additive
from theodolite.structure.boosting import best_stopped, fold_trees, settings, stopping_error
from theodolite.structure.draws import draws_beside, own_draws
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.fit.side_by_side import one_thread
from theodolite.structure.fold_errors import Model, error_products, unseen
from theodolite.structure.process import MOST, GaussianProcess, fit_process
from theodolite.structure.surrogate.screening import MOST as SCREENED
from theodolite.structure.workers import Promise, forget

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

Array = NDArray[np.float64]
LEAST_ROWS = 50  # fewer tell no weights
FOLDS = 4
LITTLE = 0.1  # a weight that is taken for none
NEAR = 2.0  # times the lowest error: what is no network and has more does not take part,
MAYBE = 1.5  # and trees whose error while they were fitted is that many times more are not fitted fold by fold
FAR_OFF = 0.005  # of the rows do not choose: those that every model misses most
RESAMPLES = 50
TOLD = 0.25  # of the variance: where networks miss more, how far their folds differ does not tell what is noise
NETWORKS = ("graph", "dense")
KEPT = "; the Gaussian process keeps the rows that it learnt from"
_WORDS = {
    "graph": "the graph's network",
    "dense": "a dense network",
    "additive": "an additive model",
    "process": "a Gaussian process",
}


@dataclass(frozen=True)
class WeightedMean:
    """`offset` + Σ weight · what a model says, of models named graph, dense, boosting, additive or process. `held_out`
    is what it says of training rows that neither models nor weights saw; None once read back."""

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


def alone(network: Model, name: str = "graph") -> WeightedMean:
    return WeightedMean({name: network}, {name: 1.0}, held_out=network.held_out)


@dataclass(frozen=True)
class Others:
    """What is no network, of all columns of these rows: an additive model, a Gaussian process (of up to 3,000 rows) and
    boosted trees. It needs no graph, so that it can be begun before one is known."""

    fold: NDArray[np.int64]
    seed: int
    additive: Promise[Additive]
    process: Promise[GaussianProcess] | None
    trees: Sequence[Promise[HistGradientBoostingRegressor]]  # none, or one of each setting

    @staticmethod
    def of(x: Array, y: Array, generator: np.random.Generator, *, boosting: bool, process: bool) -> Others:
        fold, draws = generator.permutation(len(y)) % FOLDS, own_draws(generator)
        seed = int(generator.integers(2**31))
        return Others(
            fold,
            seed,
            Promise(partial(fit_additive, x, y, fold)),
            Promise(partial(fit_process, x, y, draws)) if process and len(y) <= MOST else None,
            [Promise(call) for call in settings(x, y, seed)] if boosting else (),
        )

    @property
    def _all(self) -> tuple[Promise[Any], ...]:
        """What takes longest first."""
        return (*([] if self.process is None else [self.process]), *self.trees, self.additive)

    def begin(self) -> None:
        for promise in self._all:
            promise.begin()

    def begin_behind(self) -> None:
        for promise in self._all:
            promise.begin_behind()

    def forget(self) -> None:
        forget(self._all)


@contextmanager
def others_ahead(
    x: Array, y: Array, generator: np.random.Generator, *, boosting: bool, process: bool, seconds: float | None
) -> Iterator[Others | None]:
    """Begun behind everything else; None where the time is limited (what is searched has all of it then), where there
    is nothing to stack, or columns will be screened out."""
    if seconds is not None or not _can_stack(y) or x.shape[1] > SCREENED:
        yield None
        return
    others = Others.of(x, y, draws_beside(generator), boosting=boosting, process=process)
    others.begin_behind()
    try:
        yield others
    finally:
        others.forget()


@one_thread()
def stacked(
    network: Fitted,
    dense: Fitted,
    x: Array,
    y: Array,
    generator: np.random.Generator,
    *,
    boosting: bool = True,
    process: bool = True,
    others: Others | None = None,
    report: Callable[[str], None] | None = None,
) -> Stack:
    """What predicts, of the columns that the dense network reads (all, unless some were screened out before).

    The network that was chosen, or a mean of it with the dense one and `others`, where the error of this mean on rows
    held out is lower. What is no network and far behind the best does not take part. `others` are of all columns, and
    are begun here where these are not given or do not serve."""
    tell = report or (lambda label: None)
    name = "dense" if network is dense else "graph"
    models: dict[str, Model] = {name: network, "dense": dense}
    first = alone(network, name)
    if not _can_stack(y):
        return Stack(first, models, {key: _error(model, y) for key, model in models.items()} if np.ptp(y) else {})
    read = np.array([place for place, key in enumerate(dense.graph.variables) if key in dense.graph.used])
    tell("gradient boosting" if boosting else "additive model")
    if others is not None and len(read) < x.shape[1]:
        others.forget()
        others = None
    if others is None:
        others = Others.of(x[:, read], y, generator, boosting=boosting, process=process)
        others.begin()
    trees = None
    whole = best_stopped(promise.result() for promise in others.trees) if others.trees else None
    models["additive"] = others.additive.result().widened(read, x.shape[1])
    if others.process is not None:
        models["process"] = others.process.result().widened(read, x.shape[1])
    if whole is not None:
        trees = lambda rows: whole.predict(rows[:, read])
        least = min(_error(model, y) for model in models.values())
        if stopping_error(whole) / y.var() <= MAYBE * NEAR * least:
            models["boosting"] = fold_trees(x[:, read], y, others.fold, whole, others.seed).widened(read)
    errors = {key: _error(model, y) for key, model in models.items()}
    returned, notes = preferred(models, errors, name, x, y, generator)
    return Stack(returned, models, errors, notes, trees)


def _can_stack(y: Array) -> bool:
    return len(y) >= LEAST_ROWS and bool(np.ptp(y))


def preferred(
    models: Mapping[str, Model],
    errors: Mapping[str, float],
    name: str,
    x: Array,
    y: Array,
    generator: np.random.Generator,
) -> tuple[WeightedMean, tuple[str, ...]]:
    """The mean of models that predicts, and a note where that is not the network `name` alone. With other models than
    networks it must be better than the dense network beyond chance, because noise gives weights to what is worth none;
    but not where networks miss so much that a hedge is worth more than the best of them."""
    near = [key for key in models if key in NETWORKS or errors[key] <= NEAR * min(errors.values())]
    taken = {key: models[key] for key in near}
    tell = min(errors[key] for key in (name, "dense")) <= TOLD
    products = error_products(taken, x, y, tell)
    told = _told(np.stack([(unseen(models[key]) - y) ** 2 for key in near]))
    of_network, of_dense = (products[told][:, near.index(key), near.index(key)] for key in (name, "dense"))
    losses = of_network
    first = alone(models[name], name)
    for keys in dict.fromkeys((tuple(key for key in near if key in NETWORKS), tuple(near))):
        places = [*(near.index(key) for key in keys), len(near)]
        mean, own = _mean({key: taken[key] for key in keys}, products[:, places][:, :, places], told, y, generator)
        if own.mean() < losses.mean() and (not tell or set(keys) <= set(NETWORKS) or above_zero(of_dense - own)):
            first, losses = mean, own
    if first.kind == name and first.weights[name] == 1:
        return first, ()
    return first, (_note(first, name, float(losses.mean() / y.var()), float(of_network.mean() / y.var())),)


def _mean(
    models: Mapping[str, Model], products: Array, told: NDArray[np.bool_], y: Array, generator: np.random.Generator
) -> tuple[WeightedMean, Array]:
    """The mean of these models, and its squared error on every row that tells, by weights fitted to other rows."""
    every = np.stack([*map(unseen, models.values()), np.full(len(y), y.mean())], axis=1)
    group = generator.permutation(len(y)) % FOLDS
    said, losses = np.empty(len(y)), np.empty(len(y))
    for number in range(FOLDS):
        own = group == number
        weights = _hedged(products[told & ~own], generator)
        said[own] = every[own] @ weights
        losses[own] = products[own] @ weights @ weights
    *weights, of_mean = _hedged(products[told], generator)
    kept = {key: float(weight) for key, weight in zip(models, weights, strict=True) if weight > 0}
    mean = WeightedMean({key: models[key] for key in kept}, kept, float(of_mean * y.mean()), said)
    return mean, losses[told]


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
        f"{_WORDS[name]} alone {of_network:.3g}{KEPT if 'process' in returned.weights else ''}"
    )


def _error(model: Model, y: Array) -> float:
    return float(np.mean((unseen(model) - y) ** 2) / y.var())
