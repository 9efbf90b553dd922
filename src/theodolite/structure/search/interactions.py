"""Candidate graphs from data: sums and products of the terms whose interactions hold on unseen rows, with the modules
that gradients show inside them. Which of them is right is left to a fit of each on held-out rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy import stats

from theodolite.graphs.graph import CompositionalGraph, Kind
from theodolite.statistics.paired import LEVEL, above_zero
from theodolite.structure.data.source import Array, Hurried, OutOfTime
from theodolite.structure.draws import own_draws
from theodolite.structure.result import Found
from theodolite.structure.search.directions import below_function, hidden_sums
from theodolite.structure.search.factors import find_factors
from theodolite.structure.search.nesting import Turns, find_modules, turns
from theodolite.structure.search.search import search
from theodolite.structure.search.summands import Group, find_summands, summands_confidence, summands_graph
from theodolite.structure.surrogate.effects import Effect, HeldOut, Set
from theodolite.structure.surrogate.evidence import gather
from theodolite.structure.surrogate.surrogate import MEMBERS, SurrogateSource, fit_surrogate
from theodolite.structure.surrogate.warped import additive_scale
from theodolite.structure.workers import by_workers

MOST = 8  # candidates,
MOST_BELOW = 3  # beside functions of a sum on another scale
ASKED = 2_000  # rows at which trees are asked, which takes long
SURE, TOGETHER = "pairs that interact beyond chance", "all variables together"
NESTED = (SURE, TOGETHER)  # the readings in whose terms modules are looked for
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Interactions:
    """Effects on unseen rows of every variable and of every pair, and of triples as they are asked for."""

    source: SurrogateSource
    held_out: HeldOut
    effects: Mapping[Set, Effect]

    @property
    def count(self) -> int:
        return len(self.source.variables)

    def confidence(self, members: Set) -> float:
        """1 − the chance of such a z under the null, times the number of sets of that size."""
        tests = self.count if len(members) == 1 else self.count * (self.count - 1) // 2
        return float(1 - min(1.0, tests * stats.norm.sf(self.effects[members].z)))

    def edges(self, graph: CompositionalGraph) -> dict[tuple[str, str], float]:
        """Confidence in every edge of a graph of these variables."""
        name = self.source.variables
        single = {name[index]: self.confidence((index,)) for index in range(self.count)}
        pairs = {(name[i], name[j]): self.confidence((i, j)) for i, j in combinations(range(self.count), 2)}
        return summands_confidence(graph, single, pairs)

    def used(self, level: float) -> list[int]:
        """Variables whose redraw from other rows harms the prediction of unseen ones, at a level corrected for their
        number."""
        bar = stats.norm.isf(level / self.count)
        return [index for index in range(self.count) if self.effects[(index,)].z > bar]

    def pairs(self, used: Sequence[int], bar: float) -> list[tuple[int, int]]:
        return [(i, j) for i, j in combinations(used, 2) if self.effects[i, j].z > bar]

    def scores(self) -> dict[tuple[str, str], float]:
        """z of every pair, by names."""
        name = self.source.variables
        return {(name[i], name[j]): self.effects[i, j].z for i, j in combinations(range(self.count), 2)}


def measure_interactions(
    source: SurrogateSource, generator: np.random.Generator, redraws: int = 4, rows: int | None = None
) -> Interactions:
    held_out = HeldOut(source, generator, redraws, rows)
    everything = range(len(source.variables))
    sets: list[Set] = [*((index,) for index in everything), *combinations(everything, 2)]
    return Interactions(source, held_out, held_out.effects(sets))


def sure_terms(interactions: Interactions) -> list[Group]:
    """The terms of the pairs that interact beyond chance; none where nothing matters, or they overlap too much."""
    used = interactions.used(LEVEL)
    readings = _readings(interactions, used) if used else []
    return next((terms for _, note, terms in readings if note == SURE), [])


def propose(
    x: Array,
    y: Array,
    variables: Sequence[str],
    generator: np.random.Generator,
    *,
    quick: bool = False,
) -> list[Found]:
    """Different graphs that the data may follow, the best guess first; none where no surrogate predicts unseen rows.

    Sums of terms at levels of strictness, products of terms where the target has one sign (sums in its logarithm),
    functions of sums where there is a scale for that, and all with modules inside the terms. Variables that do not
    matter are left out of a graph. `quick`: fewer members, and constituents that share variables are not looked for.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    members = MEMBERS if quick and len(y) >= 4 * MEMBERS else None
    kinds: tuple[Kind, ...] = ("sum", "product", "general") if one_sign(y) else ("sum", "general")
    fits: dict[Kind, SurrogateSource | Fit | Looked] = {
        kind: Fit(kind, x, y, tuple(variables), members) for kind in kinds
    }
    return ranked(look(fits, generator, quick=quick))


@dataclass(frozen=True)
class Fit:
    """A surrogate that is to be fitted: of the target, for sums, of its logarithm, for products, and of the target on
    the scale on which it is a sum, for general functions of one."""

    kind: Kind
    x: Array = field(repr=False)
    y: Array = field(repr=False)
    variables: tuple[str, ...]
    members: int | None = None

    def fitted(self, generator: np.random.Generator) -> SurrogateSource | None:
        """None where there is no such scale."""
        targets = self.y
        if self.kind == "product":
            targets = np.log(np.abs(self.y))
        elif self.kind == "general":
            scale = additive_scale(self.x, self.y, generator)
            if scale is None:
                return None
            targets = scale(self.y)
        return fit_surrogate(self.x, targets, self.variables, generator, members=self.members)


@dataclass(frozen=True)
class Looked:
    """What a surrogate shows: candidates, each with its place, and its interactions unless it does not predict."""

    kind: Kind
    candidates: tuple[tuple[tuple[int, int], Found], ...] = ()
    interactions: Interactions | None = None


def look(
    readings: Mapping[Kind, SurrogateSource | Fit | Looked],
    generator: np.random.Generator,
    *,
    quick: bool = False,
    until: float | None = None,
) -> list[Looked]:
    """At surrogates that are there already or still to be fitted, which know nothing of each other; where a quick look
    was taken before, at what it left out. After the moment `until` (of `time.monotonic`) gradients are no longer
    searched."""
    calls = [partial(_looked, *reading, own_draws(generator), quick, until) for reading in readings.items()]
    return [one for one in by_workers(calls) if one is not None]


def ranked(looked: Sequence[Looked], below: Sequence[Found] = ()) -> list[Found]:
    """The different candidates, the simplest at the same strictness first: it has the fewest inputs of one constituent.
    With functions of a sum `below` that were proposed before."""
    items = [*(item for one in looked for item in one.candidates), *(((0, 0), found) for found in below)]
    found: list[Found] = []
    for _, candidate in sorted(items, key=lambda item: item[0]):
        if all(candidate.graph.nodes != other.graph.nodes for other in found):
            found.append(candidate)
    return found[: MOST + MOST_BELOW] if below or "general" in [one.kind for one in looked] else found[:MOST]


def _looked(
    kind: Kind,
    reading: SurrogateSource | Fit | Looked,
    generator: np.random.Generator,
    quick: bool,
    until: float | None,
) -> Looked | None:
    """None where there is no surrogate."""
    if isinstance(reading, Looked):
        first = reading
    else:
        source = reading.fitted(generator) if isinstance(reading, Fit) else reading
        if source is None:
            return None
        if not predicts(source):
            log.info("no %s is proposed: the surrogate's R² on unseen rows is %.3f", kind, source.r2)
            return Looked(kind)
        interactions = measure_interactions(source, generator)
        first = Looked(kind, tuple(_candidates(interactions, kind, generator)), interactions)
    if kind != "sum" or quick or first.interactions is None or not first.interactions.used(LEVEL):
        return first
    searched = _searched(first.interactions, generator, until)
    return first if searched is None else replace(first, candidates=(((1, 0), searched), *first.candidates))


def propose_sums(source: SurrogateSource, generator: np.random.Generator) -> list[Found]:
    """Sums of terms that a surrogate without gradients shows, as trees are: interactions alone tell them."""
    if not predicts(source):
        return []
    interactions = measure_interactions(source, generator, redraws=2, rows=ASKED)
    used = interactions.used(LEVEL)
    readings = _readings(interactions, used) if used else []
    found: list[Found] = []
    for _, note, terms in sorted(readings, key=lambda reading: reading[0]):
        made = _found(interactions, terms, "sum", [], note)
        if all(made.graph.nodes != other.graph.nodes for other in found):
            found.append(made)
    return found


def one_sign(targets: Array) -> bool:
    return bool(len(targets)) and bool(np.all(targets > 0) or np.all(targets < 0))


def predicts(source: SurrogateSource) -> bool:
    """Whether unseen rows are predicted better than by the mean, beyond chance."""
    better = (source.targets - source.middle) ** 2 - (source.targets - source.held_out()) ** 2
    return above_zero(better)


def _candidates(
    interactions: Interactions, kind: Kind, generator: np.random.Generator
) -> list[tuple[tuple[int, int], Found]]:
    """Graphs, each with its place: less sure readings of the data later, and wider constituents later."""
    used = interactions.used(LEVEL)
    if not used:
        return []
    if kind == "general":
        return _below(interactions, used)
    turned = turns(interactions.source, generator)
    found: list[tuple[tuple[int, int], Found]] = []

    def add(place: int, terms: list[Group], modules: list[Group], note: str) -> None:
        made = _found(interactions, terms, kind, modules, note)
        widest = max((len(node.inputs) for node in made.graph.nodes if node.kind == "general"), default=1)
        found.append(((place, widest), made))

    for place, note, terms in _readings(interactions, used):
        if note in NESTED:
            for level, modules in enumerate(find_modules(turned, terms)):
                add(place + level // 2, terms, modules, f"{note}, with modules inside")
        add(place + 1, terms, [], note)
        if kind == "product" and note == SURE and len(terms) > 1:
            found.append(((0, 0), _of_sum(interactions, terms, note)))
    if kind == "sum":
        found += _others(interactions, turned, used, generator)
    return found


def _below(interactions: Interactions, used: list[int]) -> list[tuple[tuple[int, int], Found]]:
    """Functions of a sum of terms, from what is a sum on another scale."""
    found: dict[tuple[Group, ...], str] = {}
    for _, note, terms in sorted(_readings(interactions, used), key=lambda reading: reading[0]):
        if len(terms) > 1:
            found.setdefault(tuple(terms), note)
    return [((0, 0), _of_sum(interactions, terms, note)) for terms, note in found.items()][:MOST_BELOW]


def _of_sum(interactions: Interactions, terms: Sequence[Group], note: str, modules: Sequence[Group] = ()) -> Found:
    graph = below_function(summands_graph(interactions.source.variables, terms, "sum", modules))
    return _told(interactions, graph, f"first proposed as a function of a sum: {note}")


def _others(
    interactions: Interactions, turned: Turns, used: list[int], generator: np.random.Generator
) -> list[tuple[tuple[int, int], Found]]:
    """What interactions and modules do not show: functions of sums over all variables, and factors."""
    source = interactions.source
    graphs = dict.fromkeys(hidden_sums(source, turned, used, generator), "a function of sums")
    for factors in find_factors(source, used, generator):
        graphs[summands_graph(source.variables, factors, "product")] = "factors of their own"
    return [((0, 0), _told(interactions, graph, f"first proposed as {note}")) for graph, note in graphs.items()]


def _searched(interactions: Interactions, generator: np.random.Generator, until: float | None) -> Found | None:
    """The graph that the search for black boxes sees in the surrogate's gradients and their errors: it also knows
    variables that several constituents share. None where the time for it is over."""
    source = interactions.source if until is None else Hurried(interactions.source, until)
    try:
        found = search(gather(source, generator), source, generator, level=LEVEL)
    except OutOfTime:
        return None
    return replace(found, pairs=interactions.scores(), notes=("seen in the surrogate's gradients", *found.notes))


def _readings(interactions: Interactions, used: list[int]) -> list[tuple[int, str, list[Group]]]:
    """Terms at levels of strictness, the likeliest first."""
    pairs = len(used) * (len(used) - 1) // 2
    once, corrected = float(stats.norm.isf(LEVEL)), float(stats.norm.isf(LEVEL / max(1, pairs)))
    triples: dict[Set, bool] = {}

    def together(three: tuple[int, ...]) -> bool:
        if three not in triples:
            # not corrected for the number of triples: to join three wrongly costs less than to part them
            triples[three] = interactions.held_out.effect(three).z > once
        return triples[three]

    sure = interactions.pairs(used, corrected)
    maybe = interactions.pairs(used, once)
    choices = (
        (0, SURE, sure, together),
        (1, "pairs that interact beyond chance, triples not asked", sure, None),
        (1, "the strongest pairs", _strongest(interactions, sure), together),
        (2, "every pair that may interact", maybe, None),
        (1, TOGETHER, list(combinations(used, 2)), None),
    )
    found = []
    for place, note, pairs, asked in choices:
        terms = find_summands(used, pairs, asked)
        if terms is not None:
            parted = note == TOGETHER and bool(found) and found[0][1] == SURE and len(found[0][2]) > 1
            found.append((place + parted, note, terms))
    return found


def _strongest(interactions: Interactions, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those above the widest gap in the logarithm of their share of the variance."""
    if len(pairs) < 2:
        return pairs
    ordered = sorted(pairs, key=lambda pair: -interactions.effects[pair].share)
    shares = np.log([max(interactions.effects[pair].share, np.finfo(np.float64).tiny) for pair in ordered])
    return ordered[: int(np.argmin(np.diff(shares))) + 1]


def _found(interactions: Interactions, terms: list[Group], kind: Kind, modules: list[Group], note: str) -> Found:
    """Factors that share variables are taken for exp of a sum: a network of that is not caught in poor minima."""
    if kind == "product" and sum(map(len, terms)) > len(frozenset().union(*terms)):
        return _of_sum(interactions, terms, note, modules)
    graph = summands_graph(interactions.source.variables, terms, kind, modules)
    return _told(interactions, graph, f"first proposed as a {kind}: {note}")


def _told(interactions: Interactions, graph: CompositionalGraph, note: str) -> Found:
    explained = (
        f"a first network or process misses {1 - interactions.source.r2:.2g} of the variance of rows it has not seen"
    )
    return Found(graph, interactions.edges(graph), interactions.scores(), (note, explained))
