"""What a graph says about slopes, put to the test: relations that hold for every function of the graph.

Vary two inputs p and q, all else held fixed. A node that reads neither, or one of them, has derivatives that depend on
no more than that; those of a node that reads both may be anything. So the slope of an input x_s is a sum over the
places u at which its ways first come into a node that reads both,

    ∂_s f = Σ_u λ_u(p, q) D_us,    D_us a function of p alone, of q alone, or a constant,

and the λ_u can be had from the slopes of other inputs: a linear system, of more equations than unknowns on a grid. A
function that breaks a relation is none of the graph. On points where f takes the values of a short list (`levels`), the
second coordinate is the value of f: what enters above all that varies adds a function of that value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np

from theodolite.graphs import CompositionalGraph
from theodolite.structure.data.source import GradientSource
from theodolite.structure.search.explain import Grid, Term
from theodolite.structure.search.levels import level_grids

SIDE, BASES = 7, 4
MOST_BASES = 0.5  # must show that a relation is broken: on a few, f may take equal values on different branches
MOST_PAIRS = 66  # of inputs that are varied together

FIRST, SECOND, BOTH = 1, 2, 3  # which coordinates of a grid a quantity depends on, as bits
Place = tuple[str, str, bool]  # the two inputs that vary; whether the second is adjusted to bring f to given values
Terms = tuple[tuple[str, int], ...]  # inputs whose slopes explain another's, and what their coefficients depend on
VALUE = ""  # the term that is a function of the value of f alone


@dataclass(frozen=True)
class Relation:
    place: Place
    target: str
    terms: Terms


def implied(graph: CompositionalGraph, place: Place) -> dict[Relation, int]:
    """The relations that the graph makes at one grid, over its variables, each with the number it stands for: where a
    slope can be had from that of any of several variables, one of them is asked."""
    first, second, by_level = place
    depends = dict.fromkeys(graph.variables, 0)
    depends[first], depends[second] = FIRST, BOTH if by_level else SECOND
    for node in graph.nodes:
        mask = 0
        for name in node.inputs:
            mask |= depends[name]
        depends[node.name] = mask
    outer = _outer(graph, depends) if by_level else set()
    readers: dict[str, list[str]] = {name: [] for name in depends}
    for source, reader in graph.edges:
        readers[source].append(reader)
    ways = _ways(readers, depends, outer)
    valued = _valued(readers, depends, outer)
    alone: dict[str, list[str]] = {}  # variables that leave through one place only
    for variable in graph.variables:
        if len(ways[variable]) == 1:
            alone.setdefault(next(iter(ways[variable])), []).append(variable)
    solving = _Solving(graph, ways, depends, alone)
    found: dict[Relation, int] = {}
    for target in graph.variables:
        if target in (first, second) or not ways[target]:
            continue
        if len(ways[target]) == 1 and target not in ways[target]:
            for terms, weight in solving.ratios(target):
                found[Relation(place, target, terms)] = weight
        for known in (frozenset[str](), valued.intersection(ways[target])):
            terms = None if target in ways[target] and target not in known else solving.terms(target, known)
            if terms is not None:
                found.setdefault(Relation(place, target, terms), 1)
    return found


def _outer(graph: CompositionalGraph, depends: Mapping[str, int]) -> set[str]:
    """Nodes that are functions of the value of f, and their derivatives too: of their inputs but one varies."""
    found: set[str] = set()
    here = graph.output.name
    while here in graph.node:
        varying = [name for name in graph.node[here].inputs if depends[name]]
        if len(varying) != 1:
            break
        found.add(here)
        here = varying[0]
    return found


def _valued(readers: Mapping[str, list[str]], depends: Mapping[str, int], outer: set[str]) -> frozenset[str]:
    """Places at which slopes are functions of the value of f: outer nodes read them, and none that may do anything."""
    found = []
    for name, above in readers.items() if outer else ():
        free = [reader for reader in above if reader not in outer and depends[reader] == BOTH]
        if not free and outer.intersection(above):
            found.append(name)
    return frozenset(found)


def _ways(
    readers: Mapping[str, list[str]], depends: Mapping[str, int], outer: set[str]
) -> dict[str, dict[str, frozenset[str]]]:
    """For every quantity the places at which it comes into nodes that may do anything (or into outer ones), and what
    lies on all ways to each."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for name in reversed(list(readers)):  # variables, then nodes from the bottom up
        mine: dict[str, frozenset[str]] = {}
        for reader in readers[name]:
            if reader in outer or depends[reader] == BOTH:
                mine[name] = frozenset((name,))
                continue
            for place, passed in found[reader].items():
                mine[place] = (mine[place] & passed if place in mine else passed) | {name}
        found[name] = mine
    return found


@dataclass(frozen=True)
class _Solving:
    graph: CompositionalGraph
    ways: Mapping[str, Mapping[str, frozenset[str]]]
    depends: Mapping[str, int]
    alone: Mapping[str, list[str]]

    def ratios(self, target: str) -> list[tuple[Terms, int]]:
        """Relations to one other variable that leaves through the same place alone, by what the ratio depends on."""
        (place,) = self.ways[target]
        found: dict[int, list[str]] = {}
        for other in self.alone[place]:
            if other != target:
                found.setdefault(self._ratio(target, other, place), []).append(other)
        return [(((others[0], mask),), len(others)) for mask, others in found.items() if mask != BOTH]

    def terms(self, target: str, valued: Collection[str]) -> Terms | None:
        """The slopes that stand for the places of the target; None where a coefficient would depend on both."""
        found: dict[str, int] = {}
        known: dict[str, dict[str, int]] | None = None
        for place in self.ways[target]:
            if place in valued:
                found[VALUE] = SECOND
                continue
            others = [variable for variable in self.alone.get(place, ()) if variable != target]
            if others:
                best = min(others, key=lambda variable: self._ratio(target, variable, place))
                found[best] = found.get(best, 0) | self._ratio(target, best, place)
                continue
            known = self._others(target) if known is None else known
            if place not in known:
                return None
            for name, mask in known[place].items():
                found[name] = found.get(name, 0) | mask | self._mask(target, place)
        return None if BOTH in found.values() else tuple(sorted(found.items()))

    def _ratio(self, a: str, b: str, place: str) -> int:
        """What the ratio of two derivatives of a place depends on: that at the lowest node on all ways of both."""
        if b == place:
            return self.depends[place]
        return min(self.depends[name] for name in self.ways[a][place] & self.ways[b][place])

    def _mask(self, variable: str, place: str) -> int:
        return 0 if variable == place else self.depends[place]

    def _others(self, target: str) -> dict[str, dict[str, int]]:
        """Every place by the slopes of variables: those it alone has, or whose other places are known already."""
        known: dict[str, dict[str, int]] = {}
        for place, variables in self.alone.items():
            chosen = next((variable for variable in variables if variable != target), None)
            if chosen is not None:
                known[place] = {chosen: self._mask(chosen, place)}
        left = sorted((v for v in self.graph.variables if v != target), key=lambda v: len(self.ways[v]))
        more = True
        while more:
            more = False
            for variable in left:
                unknown = [place for place in self.ways[variable] if place not in known]
                if len(unknown) != 1:
                    continue
                expression = self._solved(variable, unknown[0], known)
                if BOTH not in expression.values():
                    known[unknown[0]] = expression
                    more = True
        return known

    def _solved(self, variable: str, place: str, known: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
        own = self._mask(variable, place)
        expression = {variable: own}
        for other in self.ways[variable]:
            if other != place:
                for name, mask in known[other].items():
                    expression[name] = expression.get(name, 0) | mask | self._mask(variable, other) | own
        return expression


@dataclass
class Laboratory:
    """Relations tested on grids that are drawn when they are first needed. `groups`: the variables behind each input;
    one of them stands for it."""

    source: GradientSource
    generator: np.random.Generator
    groups: Mapping[str, frozenset[int]]
    level: float = 1e-12
    _grids: dict[Place, Grid | None] = field(default_factory=dict)
    _tested: dict[Relation, bool | None] = field(default_factory=dict)
    _order: list[Place] = field(default_factory=list)
    _asked: tuple[CompositionalGraph | None, dict[Place, dict[Relation, int]]] = field(default=(None, {}))

    def __post_init__(self) -> None:
        pairs = [(a, b, False) for a, b in combinations(self.groups, 2)]
        levels = [(a, b, True) for a, b in permutations(self.groups, 2)]
        self._order = [*self._some(pairs, MOST_PAIRS), *self._some(levels, MOST_PAIRS)]

    def _some(self, items: list[Place], count: int) -> list[Place]:
        return items if len(items) <= count else [items[i] for i in self.generator.permutation(len(items))[:count]]

    def failures(self, graph: CompositionalGraph, most: int = 0) -> list[Relation]:
        """Relations of the graph that do not hold; the search ends when more than `most` are found."""
        found: list[Relation] = []
        for place in list(self._order):
            before = len(found)
            found += [relation for relation in self._implied(graph, place) if self.holds(relation) is False]
            if len(found) > before:
                self._order.remove(place)  # what showed one graph to be wrong is asked first of the next
                self._order.insert(0, place)
            if len(found) > most:
                break
        return found

    def worth(self, graph: CompositionalGraph) -> int:
        """Equations beyond the unknowns in all relations of the graph that were seen to hold."""
        rows = SIDE * SIDE
        found = 0
        for place in self._order:
            for relation, weight in self._implied(graph, place).items():
                if self.holds(relation):
                    found += weight * (rows - sum(SIDE if mask else 1 for _, mask in relation.terms))
        return found

    def _implied(self, graph: CompositionalGraph, place: Place) -> dict[Relation, int]:
        """Kept for one graph: its failures are asked for first, then its worth."""
        if self._asked[0] is not graph:
            self._asked = (graph, {})
        if place not in self._asked[1]:
            self._asked[1][place] = implied(graph, place)
        return self._asked[1][place]

    @property
    def weight(self) -> int:
        """The worth of knowing that one coefficient depends on one coordinate less."""
        return SIDE - 1

    def holds(self, relation: Relation) -> bool | None:
        """None where the grid cannot tell."""
        if relation not in self._tested:
            self._tested[relation] = self._test(relation)
        return self._tested[relation]

    def _test(self, relation: Relation) -> bool | None:
        grid = self._grid(relation.place)
        if grid is None:
            return None
        reads = {0: frozenset[int](), FIRST: grid.varied[0], SECOND: grid.varied[1]}
        terms = [Term(None if name == VALUE else min(self.groups[name]), reads[mask]) for name, mask in relation.terms]
        found = grid.explains(min(self.groups[relation.target]), terms)
        if found is None:
            return None
        broken = float(np.mean(found < self.level))
        return None if 0 < broken < MOST_BASES else broken == 0

    def _grid(self, place: Place) -> Grid | None:
        if place not in self._grids:
            first, second, by_level = place
            groups = self.groups[first], self.groups[second]
            if by_level:
                jobs = [p for p in self._order if p[2] and p[0] == first and p not in self._grids]
                drawn = level_grids(
                    self.source, [(self.groups[a], self.groups[b]) for a, b, _ in jobs], self.generator, SIDE, BASES
                )
                self._grids.update(zip(jobs, drawn, strict=True))
            else:
                self._grids[place] = Grid.draw(self.source, groups, self.generator, SIDE, BASES)
        return self._grids[place]
