"""From data to the graph that held-out rows prefer, in rounds: the best network so far is the next surrogate.

A first surrogate is often too rough to show more than which variables act together. A network of that coarse graph
predicts better, so its gradients show the modules inside, and a network of those shows more. What a round compares are
quick fits; the last word is a confirmation, with full effort, of the few graphs that came out best.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.graphs import CompositionalGraph
from theodolite.graphs.equivalence import structure_key
from theodolite.graphs.graph import Kind
from theodolite.statistics.paired import above_zero
from theodolite.structure.data.source import Array
from theodolite.structure.draws import own_draws
from theodolite.structure.fit.confirm import Confirmation, complexity, confirm
from theodolite.structure.fit.effort import TRIAL, Effort
from theodolite.structure.fit.fitting import Fitted, fit_until
from theodolite.structure.fit.guide import Guide
from theodolite.structure.fit.scaled_start import terms_below
from theodolite.structure.fit.verify import MATERIAL, verified
from theodolite.structure.progress import Progress, part_of
from theodolite.structure.result import Found
from theodolite.structure.search.interactions import Fit, Looked, look, measure_interactions, one_sign, ranked
from theodolite.structure.search.moves import joins, other_kinds, splits, without
from theodolite.structure.search.nesting import turns
from theodolite.structure.surrogate.effects import HeldOut
from theodolite.structure.surrogate.networks import Networks, better_folds, logarithm, network_source
from theodolite.structure.surrogate.noise_share import NoiseShare
from theodolite.structure.surrogate.surrogate import FEW, MEMBERS, SurrogateSource
from theodolite.structure.workers import Promise, begin, by_workers, forget

ROUNDS = 4
FIRST = Effort(folds=4, restarts=2, descent=200, polish=40, products=3e10, width=11, dense_width=None)
WEAK = 0.05  # of what a surrogate misses: variables of a smaller part are tried without
SMALL = 2  # inputs of a constituent in which nothing is nested
NARROW = 3  # inputs of a constituent that one hidden layer serves
OF_SURROGATE, OF_MOVES = 4, 2  # graphs that a round fits: those the surrogate shows, and those next to the best
MOST_TRIALS = 14
GUIDED = 2  # graphs that a round fits a second time, simpler than the best
HOPEFUL = 20.0  # times the lowest error that these may have
TANGLED = 3  # edges a variable: more are no structure that is worth a fit
FEW_CANDIDATES = 5  # of those proposed, with quick effort, beside the first whose constituents read variables alone,
FEW_BELOW = 3  # and functions of one sum,
SPOILT = 5.0  # of which those are fitted again whose error is within so many times the lowest
FIRST_SHARE = 0.4  # of the time for the search, that the first dense network may take
SURROGATE_SECONDS = 30  # that must be left for Gaussian processes to be tried as well
FINALISTS = 3
SHOWN, REFINED, CONFIRMED = 0.2, 0.33, 0.7  # of the time, about, at which these stages begin and end
NEAR = 2.0  # times the lowest error that a simpler finalist may have
log = logging.getLogger(__name__)


def shortlist(proposed: Sequence[Found]) -> list[Found]:
    """The first functions of a sum, the first others, and the first of these that has nothing nested: a module that is
    wrong would hide that the rest is right."""
    below = [found for found in proposed if terms_below(found.graph) is not None][:FEW_BELOW]
    others = [found for found in proposed if terms_below(found.graph) is None]
    plain = [found for found in others[FEW_CANDIDATES:] if not _nested(found.graph)]
    some = others[:FEW_CANDIDATES]
    return [*below, *some, *([] if any(not _nested(found.graph) for found in some) else plain[:1])]


def _nested(graph: CompositionalGraph) -> bool:
    return any(source in graph.node for node in graph.nodes[:-1] for source in node.inputs) or graph.is_dense


def _below_that_fit(asked: Confirmation) -> list[Found]:
    """Functions of a sum that come near the best of these fits: having a start of their own they are fitted as well by
    little effort as by much, which takes long."""
    near = SPOILT * min([asked.dense.validation_error, *(trial.error for trial in asked.trials)])
    return [trial.found for trial in asked.trials if terms_below(trial.found.graph) is not None and trial.error <= near]


def overlaps_widely(graph: CompositionalGraph) -> bool:
    """Whether it is a function of a sum of terms that share variables, one of which has more than half of them: that
    says next to nothing, and takes longest to fit."""
    terms = terms_below(graph)
    if terms is None or sum(map(len, terms)) == len(graph.used):
        return False
    return max(map(len, terms)) > max(NARROW, len(graph.used) // 2)


@dataclass(frozen=True)
class _Tried:
    """A graph and its network. `error` is that of the better half of its folds: a graph can do what one fold can, and
    the others may have been caught in a poor minimum."""

    found: Found
    fitted: Fitted
    losses: Array  # of every row, by the network that has not seen it
    error: float
    good: NDArray[np.bool_]  # the rows of the better half
    guided: bool


@dataclass
class Refinement:
    x: Array
    y: Array
    variables: tuple[str, ...]
    generator: np.random.Generator
    noise: Promise[NoiseShare]  # begun where it is likely to be asked for
    until: float | None
    progress: Progress | None
    tried: dict[object, _Tried] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    fold: NDArray[np.int64] = field(init=False)
    whole: Promise[Fitted] = field(init=False)  # the dense network,
    looked: Looked | None = None  # what Gaussian processes show at a quick look, where rows are few and there is time
    below: list[Found] | None = None  # functions of a sum that quick fits leave; None before it was asked
    hopeless: set[object] = field(default_factory=set)  # structures that quick fits rule out
    begun: dict[object, Promise[Fitted | None]] = field(default_factory=dict)  # fits of graphs, by their structure

    def __post_init__(self) -> None:
        self.fold = self.generator.permutation(len(self.y)) % TRIAL.folds
        self.whole = Promise(self._fit(CompositionalGraph.dense(self.variables), FIRST, share=FIRST_SHARE))

    def finalists(self) -> list[Found]:
        """The best of all that was tried, and simpler graphs that come near; or what quick fits show, where no
        constituent of it is large enough to have anything inside and nothing speaks against it."""
        shown = self._shown()
        if shown is not None and max(complexity(shown.graph)) <= SMALL:
            return [shown]
        if self.below is not None:
            self._start(self.below if shown is None else [shown])  # goes on while the surrogate is read
        source = self._first()
        log.info("the first surrogate's error on unseen rows is %.3g", 1 - source.r2)
        for number in range(ROUNDS):
            if (tell := part_of(self.progress, REFINED, CONFIRMED)) is not None:
                tell(number, ROUNDS, "refining")
            before = self.best
            fresh = self._fresh(source, shown if before is None else before.found)
            tried = self._try(fresh if shown is None or number else [shown, *fresh])
            before = next((one for one in tried if one.found is shown), before)
            self._drop(source)
            self._guide()
            best = self.best
            if best is None or not fresh or self.late or (before is not None and not _lower(best, before)):
                break
            log.info("round %d: error %.3g after %d graphs", number + 1, best.error, len(self.tried))
            if number == 0 and best.error > MATERIAL and self.noise.state == "waiting":
                self.noise.begin()
            if best.error < 1 - source.r2:
                source = network_source(best.fitted, self.x, self.y)
        return self._chosen(source)

    @property
    def late(self) -> bool:
        return self.until is not None and time.monotonic() > self.until

    @property
    def best(self) -> _Tried | None:
        return min(self.tried.values(), key=lambda tried: tried.error, default=None)

    @property
    def left(self) -> float | None:
        return None if self.until is None else self.until - time.monotonic()

    @property
    def dense(self) -> Fitted:
        return self.whole.result()

    def _data(self) -> tuple[Array, Array, tuple[str, ...]]:
        return self.x, self.y, self.variables

    def _first(self) -> SurrogateSource:
        """A dense network, or Gaussian processes where these predict better."""
        found = network_source(self.dense, self.x, self.y)
        process = self.process
        return found if process is None or process.r2 <= found.r2 else process

    def _shown(self) -> Found | None:
        """A graph that quick fits prefer; against a small one nothing speaks, a large one is what to begin with. None
        where the time is limited and short."""
        if self.left is not None and self.left < SURROGATE_SECONDS:
            self.whole.begin()
            return None
        proposed = shortlist([found for found in self._proposed() if self._worth(found.graph)])
        data, tell = (proposed, self.x, self.y, self.generator), part_of(self.progress, SHOWN, REFINED)
        asked = confirm(*data, variables=self.variables, effort="quick", progress=tell)
        self.below, self.hopeless = _below_that_fit(asked), self._hopeless(asked)
        if asked.chosen is None or max(complexity(asked.chosen.graph)) > SMALL:
            return asked.chosen
        return verified(asked, self.x, self.y, self.generator, self.noise.result).chosen

    def _hopeless(self, asked: Confirmation) -> set[object]:
        """Structures none of whose quick networks comes near the best one."""
        lowest = {trial.found.graph: trial.fitted.errors_of_folds(self.x, self.y).min() for trial in asked.trials}
        far = HOPEFUL * min(lowest.values(), default=0.0)
        return {structure_key(graph, kinds=True) for graph, error in lowest.items() if error > far}

    def _proposed(self) -> list[Found]:
        kinds: tuple[Kind, ...] = ("sum", "product", "general") if one_sign(self.y) else ("sum", "general")
        few = len(self.y) <= FEW
        fits: dict[Kind, SurrogateSource | Fit | Looked] = {
            kind: Fit(kind, *self._data(), None if few and kind == "sum" else MEMBERS) for kind in kinds
        }
        looked = look(fits, self.generator, quick=True)
        self.whole.begin()  # beside quick fits of what is proposed
        if few:
            self.looked = looked[0]
        return ranked(looked)

    @property
    def process(self) -> SurrogateSource | None:
        """Gaussian processes, if they predict."""
        seen = None if self.looked is None else self.looked.interactions
        return None if seen is None else seen.source

    def _fresh(self, source: SurrogateSource, best: Found | None) -> list[Found]:
        """Graphs not tried yet: what the surrogate shows, and the neighbours of the best."""
        known = self.looked if source is self.process else None
        readings: dict[Kind, SurrogateSource | Fit | Looked] = {"sum": known or source}
        if one_sign(self.y):
            network = isinstance(source.ensemble, Networks)
            readings["product"] = logarithm(source) if network else Fit("product", *self._data())
        if best is None and self.below is None:
            readings["general"] = Fit("general", *self._data())
        below = self.below if best is None and self.below else ()
        shown = ranked(look(readings, self.generator, until=self.until), below)
        seen, fresh = {*self.tried, *(() if best is None else (structure_key(best.graph, kinds=True),))}, []
        near = () if best is None else self._near(best, source)
        for graphs, most in ((shown, OF_SURROGATE), (near, OF_MOVES)):
            taken = []
            for found in map(self._without_dropped, graphs):
                if len(taken) == most:
                    break
                key = None if found is None else structure_key(found.graph, kinds=True)
                if found is not None and key not in seen and self._worth(found.graph):
                    seen.add(key)
                    taken.append(found)
            fresh += [found for found in taken if structure_key(found.graph, kinds=True) not in self.hopeless]
        return fresh[: MOST_TRIALS - len(self.tried)]

    def _worth(self, graph: CompositionalGraph) -> bool:
        whole = graph.is_dense and len(graph.used) == len(self.variables)
        return not whole and len(graph.edges) <= TANGLED * len(graph.used) and not overlaps_widely(graph)

    def _near(self, found: Found, source: SurrogateSource) -> Iterator[Found]:
        """Neighbours, one of every sort in turn, the likeliest of each first."""
        graph = found.graph
        parted = splits(graph, turns(source, self.generator).size)
        sorts = (parted[::2], parted[1::2], other_kinds(graph), joins(graph))
        for several in zip_longest(*sorts):
            for near in several:
                if near is not None:
                    yield replace(found, graph=near, confidence={})

    def _try(self, several: Sequence[Found]) -> list[_Tried]:
        """Those for which there is time."""
        self._start(several)
        tried = []
        for found in several:
            fitted = self.begun.pop(structure_key(found.graph, kinds=True)).result()
            if fitted is not None:
                tried.append(self._judge(found, fitted))
        self._forget(*self.begun.values())
        self.begun.clear()
        return tried

    def _start(self, several: Sequence[Found]) -> None:
        for found in several:
            key = structure_key(found.graph, kinds=True)
            if key not in self.begun:
                self.begun[key] = begin(self._in_time(self._fit(found.graph, TRIAL)))

    def _forget(self, *begun: Promise[Any] | None) -> None:
        forget(promise for promise in begun if promise is not None)

    def _in_time(self, call: Callable[[], Fitted]) -> Callable[[], Fitted | None]:
        return partial(_unless_late, self.until, call)

    def _judge(self, found: Found, fitted: Fitted, *, guided: bool = False) -> _Tried:
        assert fitted.held_out is not None
        losses = (fitted.held_out - self.y) ** 2
        of_folds = np.array([losses[self.fold == f].mean() for f in range(TRIAL.folds)])
        good = np.isin(self.fold, np.argsort(of_folds, kind="stable")[: TRIAL.folds // 2])
        tried = _Tried(found, fitted, losses, float(losses[good].mean() / self.y.var()), good, guided)
        self.tried[structure_key(found.graph, kinds=True)] = tried
        log.debug("%.3g of %.3g: %s", tried.error, fitted.validation_error, found.graph.nodes)
        return tried

    def _fit(
        self, graph: CompositionalGraph, effort: Effort, guide: Guide | None = None, share: float = 1.0
    ) -> Callable[[], Fitted]:
        """In a share of the time that is left."""
        widest = max((len(node.inputs) for node in graph.nodes if node.kind == "general"), default=1)
        width, depth = (effort.width, 1) if widest <= NARROW else (effort.width * 3 // 2, 2)
        data = (self.until, graph, self.x, self.y, own_draws(self.generator))
        shape = {"width": width, "depth": depth, "shallow": NARROW}
        return partial(fit_until, *data, share=share, effort=effort, fold=self.fold, guide=guide, **shape)

    def _guide(self) -> None:
        """Second fits, guided by the best network, for the graphs that would be simpler than its own: a deep graph is
        easily caught in a poor minimum, a coarse one is not."""
        best = self.best
        if best is None:
            return
        size = complexity(best.found.graph)
        near = [
            tried
            for tried in self.tried.values()
            if not tried.guided and tried.error <= HOPEFUL * best.error and complexity(tried.found.graph) < size
            if terms_below(tried.found.graph) is None  # these have a start of their own
        ]
        guide = best.fitted.guide()
        near = sorted(near, key=lambda tried: tried.error)[:GUIDED]
        effort = replace(TRIAL, restarts=1, guided=2)
        fits = by_workers(self._in_time(self._fit(tried.found.graph, effort, guide)) for tried in near)
        for tried, again in zip(near, fits, strict=True):
            if again is not None:
                self._judge(tried.found, better_folds(tried.fitted, again, self.y, self.fold), guided=True)

    def _drop(self, source: SurrogateSource) -> None:
        """Leaves out, from the best and from all that come, the variables whose part is within what the surrogate
        misses, if the best graph does as well without them."""
        best = self.best
        if best is None or self.late:
            return
        held_out = HeldOut(source, self.generator, redraws=2)
        least = WEAK * (1 - source.r2)
        used = best.found.graph.used
        weak = {v for i, v in enumerate(self.variables) if v in used and held_out.effect((i,)).share < least}
        graph = without(best.found.graph, weak) if weak else None
        if graph is None:
            return
        tried = self._try([replace(best.found, graph=graph, confidence={})])
        if tried and not _lower(best, tried[0]):
            self.dropped |= weak
            self.tried = {k: other for k, other in self.tried.items() if not self.dropped & set(other.found.graph.used)}

    def _without_dropped(self, found: Found) -> Found | None:
        if not self.dropped & set(found.graph.used):
            return found
        graph = without(found.graph, self.dropped)
        return None if graph is None else replace(found, graph=graph, confidence={})

    def _chosen(self, source: SurrogateSource) -> list[Found]:
        best = self.best
        if best is None:
            return []
        size = complexity(best.found.graph)
        near = [t for t in self.tried.values() if t.error <= NEAR * best.error and complexity(t.found.graph) < size]
        near.sort(key=lambda tried: tried.error)
        interactions = measure_interactions(source, self.generator)
        return [
            found if found.confidence else replace(found, confidence=interactions.edges(found.graph))
            for found in (tried.found for tried in (best, *near[: FINALISTS - 1]))
        ]


def _unless_late(until: float | None, call: Callable[[], Fitted]) -> Fitted | None:
    return None if until is not None and time.monotonic() > until else call()


def _lower(now: _Tried, before: _Tried) -> bool:
    """Whether the held-out error fell beyond chance, row by row, in the folds where both are good."""
    both = now.good & before.good
    if not both.any():
        return now.error < before.error
    fall = (before.losses - now.losses)[both]
    return above_zero(fall)
