"""Which nodes an input that several share really enters: by explaining its slope through the others' slopes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from theodolite.structure.data.source import GradientSource
from theodolite.structure.search.explain import Grid, Term
from theodolite.structure.search.levels import LEVEL, level_grids
from theodolite.structure.search.modules import Block
from theodolite.structure.search.outline import Outline, Unit

PAIRS = 45  # grids for one block, at most
ADJUSTERS = 4  # inputs of a block that are used to bring f to given values
BASES = 3
MANY = 12  # elements of a block, from which on fewer grids have to do
GIVE_UP_AFTER = 6  # grids that fail, before any has not, until an explanation is given up


@dataclass(frozen=True)
class Entry:
    """How a unit gets into a block: through which of the block's elements; `beside` are those that have to be held
    fixed for it (they enter the same nodes); `above`: it also enters once more, above all that the block's elements
    join to. `through` is None where it enters directly; not `tested` where no grid could tell."""

    through: tuple[Unit, ...] | None
    beside: frozenset[Unit] = frozenset()
    free: frozenset[Unit] = frozenset()  # may change without changing the unit's way
    outside: tuple[Unit, ...] = ()  # ways that are not the block's
    above: bool = False
    tested: bool = True
    agreement: float = 1.0  # of base points


@dataclass
class Sharing:
    """Settled from the top down: for every block and every unit that it shares, the ways in."""

    outline: Outline
    source: GradientSource
    generator: np.random.Generator
    entangled: NDArray[np.bool_]
    level: float = 1e-3
    entries: dict[tuple[Unit, Unit], Entry] = field(default_factory=dict)  # (block, unit)
    _routes: dict[Unit, tuple[Unit, ...]] = field(default_factory=dict)  # all that explains a unit, so far

    def settle(self) -> None:
        for block in sorted(self.outline.blocks.values(), key=lambda b: -len(b.group)):
            elements, guests = self.outline.elements(block), self.outline.cover(block)
            own = elements if len(elements) >= 3 else []
            if block.associative:
                # slopes of terms of a sum explain each other; what the terms share shows in that it entangles them
                own = [unit for unit in own if self._entangles(unit, elements)]
            if len(elements) >= 2 and (own or guests):
                self._settle_block(block, elements, own, guests)

    def _entangles(self, unit: Unit, elements: Sequence[Unit]) -> bool:
        others = [min(other) for other in elements if other != unit]
        return bool(self.entangled[np.ix_(others, others, [min(unit)])].any())

    def _settle_block(self, block: Block, elements: list[Unit], own: list[Unit], guests: list[Unit]) -> None:
        routed = [unit for unit in guests if block.group in self._routes.get(unit, ())]
        side = 6
        while side * side < 1.5 * (2 * side + len(elements) + max((len(self._routes[u]) for u in routed), default=0)):
            side += 1
        pairs = list(combinations(elements, 2))
        grids: list[Grid] = []
        if own or routed:
            some = self._some(pairs, PAIRS if len(elements) <= MANY else PAIRS // 4)
            self.generator.shuffle(some)
            grids = [Grid.draw(self.source, pair, self.generator, side, BASES) for pair in some]
        doubtful: list[Unit] = []
        for unit in (*own, *routed):
            outside = [route for route in self._routes.get(unit, ()) if route != block.group]
            found = self._explained(unit, elements, outside, grids)
            if found is not None and found.through is not None:
                self.entries[block.group, unit] = found
            else:
                doubtful.append(unit)
                self.entries[block.group, unit] = found or Entry(None, tested=False)
        doubtful += [unit for unit in guests if unit not in routed]
        if doubtful:
            self._settle_by_level(block, elements, guests, doubtful, side)

    def _settle_by_level(
        self, block: Block, elements: list[Unit], guests: list[Unit], units: list[Unit], side: int
    ) -> None:
        adjusters = ADJUSTERS if len(elements) <= MANY else ADJUSTERS // 2
        jobs = [(varied, adjusted) for adjusted in self._some(elements, adjusters) for varied in elements]
        jobs = [(varied, adjusted) for varied, adjusted in jobs if varied != adjusted]
        grids: dict[Unit, list[Grid]] = {}
        drawn = level_grids(self.source, jobs, self.generator, side, BASES)
        for (_, adjusted), grid in zip(jobs, drawn, strict=True):
            if grid is not None:
                grids.setdefault(adjusted, []).append(grid)
        for unit in units:
            best: Entry | None = None
            testable = False
            for adjusted, some in grids.items():
                if adjusted == unit or adjusted <= self.outline.reach(unit):
                    continue
                # a guest may come in through another guest, whose own other ways are a function of the level
                candidates = (*guests, *elements) if unit in guests else elements
                others = [other for other in candidates if other not in (unit, adjusted)]
                found = self._explained(unit, others, [], some, by_level=True)
                testable = testable or found is not None
                if found is not None and found.through and (best is None or _burden(found) < _burden(best)):
                    best = found
            if best is not None:
                # of a guest whose other ways are not known, what it does above may be one of those
                above = (block.group, unit) in self.entries and not set(best.through or ()) & set(guests)
                self.entries[block.group, unit] = replace(best, above=above)
            else:
                before = self.entries.get((block.group, unit))
                self.entries[block.group, unit] = Entry(None, tested=testable or (before is not None and before.tested))

    def _explained(
        self,
        unit: Unit,
        elements: Sequence[Unit],
        outside: Sequence[Unit],
        grids: Sequence[Grid],
        by_level: bool = False,
    ) -> Entry | None:
        """None where no grid can tell."""
        # what the unit reads cannot be a way for it; such relations hold too, read backwards
        read = self.outline.reach(unit)
        others = [other for other in elements if not other <= read]
        terms = {other: Term(min(other), self.outline.reach(other) | read) for other in (*others, *outside)}
        always = [Term(None, LEVEL)] if by_level else []
        passed: dict[Grid, bool] = {}
        for grid in grids:
            if unit in grid.varied:
                continue
            good = self._passes(grid, unit, [*terms.values(), *always])
            if good is not None:
                passed[grid] = good
            if len(passed) >= GIVE_UP_AFTER and not any(passed.values()):
                return Entry(None)
        if not passed:
            return None
        moved = {group for grid in passed for group in grid.varied}
        tried = [other for other in others if other in moved]
        clean, beside = _without_failures({grid.varied: good for grid, good in passed.items()}, tried)
        chosen = [grid for grid in passed if all(group in clean or group == LEVEL for group in grid.varied)]
        if not chosen:
            return Entry(None)
        few = chosen[:GIVE_UP_AFTER] if len(terms) <= MANY else chosen[: GIVE_UP_AFTER // 2]
        needed = dict(terms)
        for other in terms:
            fewer = [term for name, term in needed.items() if name != other]
            if all(self._passes(grid, unit, [*fewer, *always]) for grid in few):
                del needed[other]
        if not needed:
            return None  # too noisy to tell anything
        if not beside.isdisjoint(needed):
            return Entry(None)  # read backwards: an exclusive input, explained by shared ones that must not move
        if not by_level:
            self._routes[unit] = tuple(needed)
        through = tuple(other for other in others if other in needed)
        agreed = [grid.explains(min(unit), [*needed.values(), *always]) for grid in chosen]
        agreement = float(np.mean(np.concatenate([p for p in agreed if p is not None]) > self.level))
        away = tuple(route for route in outside if route in needed)
        return Entry(through, beside, frozenset(clean), away, above=by_level, agreement=agreement)

    def _passes(self, grid: Grid, unit: Unit, terms: Sequence[Term]) -> bool | None:
        found = grid.explains(min(unit), terms)
        return None if found is None else bool(np.mean(found > self.level) > 0.5)

    def _some(self, items: list, count: int) -> list:
        if len(items) <= count:
            return items
        return [items[i] for i in sorted(self.generator.permutation(len(items))[:count])]


def _burden(entry: Entry) -> int:
    return len(entry.through or ()) + len(entry.beside)


def _without_failures(
    passed: Mapping[tuple[Unit, Unit], bool], others: Collection[Unit]
) -> tuple[set[Unit], frozenset[Unit]]:
    """The others left when those in most failures are taken out until no grid over two of them fails."""
    clean = set(others) | {LEVEL}
    while True:
        failures = dict.fromkeys(clean - {LEVEL}, 0)
        for (a, b), good in passed.items():
            if not good and a in clean and b in clean:
                for unit in (a, b):
                    if unit != LEVEL:
                        failures[unit] += 1
        worst = max(failures, key=lambda unit: (failures[unit], sorted(unit)), default=None)
        if worst is None or failures[worst] == 0:
            return clean - {LEVEL}, frozenset(others) - clean
        clean.remove(worst)
