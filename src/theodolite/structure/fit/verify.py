"""Whether what a graph's network misses still depends on something: then a part of the graph may be false.

A graph can be better than a dense network and yet wrong. If columns are independent, a graph that leaves out a variable
or an interaction has at least the variance of that part as its error. So an error of at most 1 % on rows held out shows
that nothing of more than 1 % is missing. Above that, the error must be explained by noise: what is left on held-out
rows must not depend on any variable or pair, no boosted trees may predict it, the dense network must know nothing of
it, and it must not be far above the least noise that a Gaussian process leaves possible. A process takes jumps for
noise, but noise is in every row, and a jump that was not found in few: of constituents with jumps most rows must miss
about as much as all do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from theodolite.graphs import CompositionalGraph
from theodolite.statistics.paired import LEVEL, above_zero
from theodolite.structure.fit.confirm import Confirmation, Trial, complexity, reason_of
from theodolite.structure.fit.dependence import dependence, polynomials, products
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.search.sources import undetermined
from theodolite.structure.surrogate.derived import sources_of
from theodolite.structure.surrogate.noise_share import Noise

Array = NDArray[np.float64]
MATERIAL = 0.01  # of the variance: what is missing with less matters to nobody
SEEN = MATERIAL / 4  # of the variance: a part that is seen of what is missing, which may be more
FAR = 1.2  # times the least noise: an error beyond this and MATERIAL is far above it
MOST = 0.7  # of the error, which the median of the squares must show where there are jumps; of normal noise it is 1
MEDIAN = 0.455  # of the squares of normal numbers of variance 1
HARDLY, WITHIN = MATERIAL / 10, 10.0  # of the variance, and times the dense network's error: a graph that misses less
FOLDS = 5
MOST_ROWS = 5_000  # looked at
MOST_PAIRS_OF = 40  # variables: of more, pairs of those that the graph reads alone
LEAST_ROWS = 100  # for trees


@dataclass(frozen=True)
class Doubt:
    """Why a graph is not claimed, and the variables that this points at."""

    reason: str
    variables: tuple[str, ...] = ()


def verified(asked: Confirmation, x: Array, y: Array, generator: np.random.Generator, noise: Noise) -> Confirmation:
    """The graph that rows held out prefer, or else another that they prefer to dense, if nothing speaks against it.

    A graph whose network misses at most a thousandth of the variance, and no more than ten times what the dense network
    misses, is claimed though a dense network predicts, which without noise may reach 1e-8: the graph is right to that
    thousandth. Otherwise it abstains, and the model is the dense network, or one of a graph that predicts rows held out
    better beyond chance: a network may predict well and its graph be doubtful. A graph with more to miss is not claimed
    where the dense network's error is lower, by however little.
    """
    fits = [trial for trial in asked.trials if not trial.screened]
    whole, open_ = complexity(asked.dense.graph), _undetermined(asked, x)
    near = [trial for trial in fits if _hardly_misses(trial, asked.dense) and complexity(trial.found.graph) < whole]
    near = [trial for trial in near if open_(trial) is None]
    better = [trial.fitted for trial in fits if trial.p <= LEVEL / len(fits)]
    best = min((*better, asked.dense), key=lambda fitted: fitted.validation_error)
    if asked.chosen is None:
        return replace(asked, model=best) if not near else _hardly_missing(asked, near, best)
    assert asked.dense.held_out is not None
    first: Doubt | None = None
    preferred = sorted((t for t in fits if t.preferred), key=lambda t: (t.found is not asked.chosen, t.error))
    for trial in preferred:
        assert trial.fitted.held_out is not None
        jumps = trial.told is not None
        told = trial.told if trial.told is not None else np.ones(len(y), dtype=bool)
        unseen = (trial.fitted.held_out[told], asked.dense.held_out[told])
        found = (
            Doubt(f"the dense network's error on rows held out is {1 / trial.ratio:.3g} times that of the best graph")
            if trial.error > asked.dense.validation_error
            else open_(trial) or doubt(trial.found.graph, x[told], y[told], *unseen, generator, noise, jumps=jumps)
        )
        if found is None:
            reason = reason_of(trial, asked.trials, asked.dense)
            notes = asked.notes if trial.error <= MATERIAL else (*asked.notes, _hidden(trial.error))
            return replace(asked, chosen=trial.found, model=trial.fitted, reason=reason, notes=notes)
        first = first or found
    assert first is not None
    if near:
        return _hardly_missing(asked, near, best)
    return replace(asked, chosen=None, model=best, reason=first.reason)


def _hidden(error: float) -> str:
    """What the rule for noise leaves open: so much of the error, at most, is not surely noise."""
    share = 100 * (error - (error - MATERIAL) / FAR)
    return f"noise hides small parts: what the graph leaves out may carry up to {share:.2g} % of the variance"


def _undetermined(asked: Confirmation, x: Array) -> Callable[[Trial], Doubt | None]:
    """Whether a graph reads a column that others predict and leaves one of these out, however well it predicts."""
    variables, read = asked.dense.graph.variables, asked.dense.graph.used
    places = [variables.index(name) for name in read]
    left_out = any(set(read) - set(trial.found.graph.used) for trial in asked.trials)
    sources = sources_of(x[:, places], read, np.random.default_rng(0)) if left_out else {}

    def found(trial: Trial) -> Doubt | None:
        pair = undetermined(trial.found.graph, sources)
        if pair is None:
            return None
        told = " and ".join(f"'{one}'" for one in sources[pair[0]])
        reason = (
            f"the graph reads '{pair[0]}', which {told} predict, and not '{pair[1]}': data hardly tell which matters"
        )
        return Doubt(reason, pair)

    return found


def _hardly_misses(trial: Trial, dense: Fitted) -> bool:
    return trial.error <= min(HARDLY, WITHIN * dense.validation_error)


def _hardly_missing(asked: Confirmation, near: Sequence[Trial], best: Fitted) -> Confirmation:
    """A graph that misses next to nothing is right as far as it matters, whatever predicts a little better."""
    trial = min(near, key=lambda trial: trial.error)
    model = min(trial.fitted, best, key=lambda fitted: fitted.validation_error)
    reason = f"on rows held out a network of the graph misses {trial.error:.2g} of the variance, next to nothing"
    if model is not trial.fitted:
        what = "dense network" if model.graph.is_dense else "network of another graph"
        reason += f"; the {what} predicts, which misses {model.validation_error:.2g}"
    return replace(asked, chosen=trial.found, model=model, reason=reason)


def doubt(
    graph: CompositionalGraph,
    x: Array,
    y: Array,
    predicted: Array,
    dense: Array,
    generator: np.random.Generator,
    noise: Noise,
    *,
    jumps: bool = False,
) -> Doubt | None:
    """None where nothing speaks against the graph. `predicted` and `dense` are what its network and the dense one say
    of rows that they have not seen. `jumps`: constituents are constant on boxes."""
    variance = float(y.var())
    left = (y - predicted) / np.sqrt(variance)
    error = float(np.mean(left**2))
    if error <= MATERIAL:
        return None
    chosen = np.sort(generator.permutation(len(y))[:MOST_ROWS])
    at = f"the graph's error on rows held out is {error:.3g} of the variance"
    if jumps and (most := float(np.median(left**2)) / MEDIAN) < MOST * error:
        return Doubt(f"{at}, and most rows miss about {most:.2g}: a jump may be missing that concerns few")
    found = _strongest(graph, x[chosen], left[chosen])
    if found is not None:
        names, share = found
        many = f"on {names[0]}" if len(names) == 1 else f"on {names[0]} and {names[1]} together"
        return Doubt(f"{at}, and what it misses depends {many} ({share:.2g} of the variance)", names)
    if _tells(left, (dense - predicted) / np.sqrt(variance)):
        return Doubt(f"{at}, and the dense network predicts a part of what it misses")
    if len(y) >= LEAST_ROWS and _trees_predict(x[chosen], left[chosen], generator):
        return Doubt(f"{at}, and boosted trees predict a part of what it misses")
    least = (error - MATERIAL) / FAR
    if not noise().surely_above(least):
        about = noise().value
        return Doubt(
            f"{at}, far above the noise, which is about {about:.2g}: something is still missing"
            if about < least
            else f"{at}, and though about {about:.2g} looks like noise, it may be less: something may be missing"
        )
    return None


def _strongest(graph: CompositionalGraph, x: Array, left: Array) -> tuple[tuple[str, ...], float] | None:
    """The variable or pair that what is left depends on most surely, at a level corrected for their number."""
    names = graph.variables
    bases = [polynomials(column) for column in x.T]
    paired = range(len(names)) if len(names) <= MOST_PAIRS_OF else [i for i, v in enumerate(names) if v in graph.used]
    sets: list[tuple[int, ...]] = [(i,) for i in range(len(names))]
    sets += list(combinations(paired, 2)) if len(paired) <= MOST_PAIRS_OF else []
    tested = []
    for places in sets:
        basis = bases[places[0]] if len(places) == 1 else products(bases[places[0]], bases[places[1]])
        p, share = dependence(left, basis)
        tested.append((p, share, places))
    sure = [test for test in tested if test[0] < LEVEL / len(tested) and test[1] > SEEN]
    if not sure:
        return None
    _, share, places = min(sure)
    return tuple(names[i] for i in places), share


def _tells(left: Array, said: Array) -> bool:
    """Whether a multiple of what is said explains a part of what is left that matters, beyond chance. (A right graph's
    network errs too, differently from another, which therefore tells a little of it; that is no fault of the graph.)"""
    size = float(np.mean(said**2))
    return size > 0 and above_zero(left * said) and float(np.mean(left * said)) ** 2 / size > SEEN


def _trees_predict(x: Array, left: Array, generator: np.random.Generator) -> bool:
    from sklearn.ensemble import HistGradientBoostingRegressor

    fold = generator.permutation(len(left)) % FOLDS
    said = np.zeros(len(left))
    for number in range(FOLDS):
        own = fold != number
        trees = HistGradientBoostingRegressor(
            learning_rate=0.1,
            max_leaf_nodes=8,
            max_iter=60,
            min_samples_leaf=10,
            early_stopping=False,  # pyright: ignore[reportArgumentType]
            random_state=0,
        ).fit(x[own], left[own])
        said[~own] = trees.predict(x[~own])
    return _tells(left, said)
