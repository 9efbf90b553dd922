"""From evidence to a graph: blocks, then the ways of what they share, then kinds; polynomial in the variables."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import free_name
from theodolite.structure.data.source import GradientSource
from theodolite.structure.result import Found
from theodolite.structure.search.assembly import Assembly, Key
from theodolite.structure.search.explain import RESOLUTION, Grid
from theodolite.structure.search.kinds import Link, seen_kind
from theodolite.structure.search.modules import Block, find_blocks
from theodolite.structure.search.outline import Outline
from theodolite.structure.search.shared_inputs import Sharing
from theodolite.structure.search.terms import additive_terms
from theodolite.structure.search.tighten import polish
from theodolite.structure.surrogate.evidence import Evidence

logger = logging.getLogger(__name__)

RESAMPLES = 12  # halves of the base points, to see which blocks stand
SIDE, BASES = 8, 3  # of the grids that show a node's kind
KIND_PAIRS = 4  # pairs of inputs that have to agree on a kind


def search(
    evidence: Evidence,
    source: GradientSource,
    generator: np.random.Generator,
    level: float = 0.01,
    floor: float = 0.0,
) -> Found:
    """The graph that the evidence shows. A smaller `level` wants stronger proof that a variable entangles two others,
    and so finds more structure; `floor` is the least turn of a ratio that counts at all. Without any structure the
    graph is dense over the variables that matter."""
    used = np.flatnonzero(evidence.relevant(level)).tolist()
    notes = _notes(evidence, used)
    pairs = _pairs(evidence)
    if len(used) < 2:
        inputs = tuple(evidence.variables[i] for i in used) or evidence.variables[:1]
        graph = CompositionalGraph(evidence.variables, (Node(free_name("y", evidence.variables), inputs),))
        return Found(graph, dict.fromkeys(graph.edges, 1.0 if used else 0.0), pairs, notes)
    entangled = _entangled(evidence, level, floor)
    blocks = find_blocks(entangled, used)
    sharing = Sharing(Outline.of(blocks), source, generator, entangled)
    sharing.settle()
    assembly = Assembly(sharing.outline, sharing.entries)
    _Kinds(assembly, evidence, source, generator, level, floor).settle()
    graph, names = assembly.graph(evidence.variables)
    if np.median(evidence.base_error) < RESOLUTION * np.sqrt(np.mean(evidence.base**2)):  # else no relation is tested
        graph = polish(graph, blocks, source, generator)
    stands = _stands(evidence, blocks, used, generator, level, floor)
    confidence = _confidence(graph, assembly, names, stands)
    if graph.is_dense:
        notes = (*notes, "no structure was seen: the function may depend on all of these variables at once")
    logger.info("%d blocks, %d nodes, depth %d", len(blocks), len(graph.nodes), graph.depth)
    return Found(graph, confidence, pairs, notes)


def _entangled(evidence: Evidence, level: float, floor: float) -> np.ndarray:
    found = evidence.entangled(level, floor).copy()
    flat = _flat(evidence, level)  # nothing is known of these: they are entangled with everything
    found[flat] = True
    found[:, flat] = True
    return found


def _flat(evidence: Evidence, level: float) -> np.ndarray:
    """Variables that matter and have no slope, as in a step: there is none to compare."""
    return evidence.relevant(level) & (evidence.relevance <= evidence.threshold(level, 2 * len(evidence.variables)))


def _notes(evidence: Evidence, used: list[int]) -> tuple[str, ...]:
    unused = [name for i, name in enumerate(evidence.variables) if i not in used]
    if not used:
        return ("the function is constant: none of the variables changes it",)
    if unused:
        return (f"the function does not depend on {', '.join(unused)}",)
    return ()


def _pairs(evidence: Evidence) -> dict[tuple[str, str], float]:
    strength = evidence.interaction_strength
    names = evidence.variables
    return {(names[i], names[j]): float(strength[i, j]) for i, j in combinations(range(len(names)), 2)}


def _stands(
    evidence: Evidence, blocks: list[Block], used: list[int], generator: np.random.Generator, level: float, floor: float
) -> dict[frozenset[int], float]:
    """For every block the part of resamples that show it, from half of the points each."""
    count = dict.fromkeys((block.group for block in blocks), 0)
    for _ in range(RESAMPLES):
        rows = generator.permutation(evidence.points)[: max(evidence.points // 2, 4)]
        seen = {(b.group, b.reach) for b in find_blocks(_entangled(evidence.rows(rows), level, floor), used)}
        for block in blocks:
            count[block.group] += (block.group, block.reach) in seen
    return {group: (hits + 0.5) / (RESAMPLES + 1) for group, hits in count.items()}


def _confidence(
    graph: CompositionalGraph, assembly: Assembly, names: dict[Key, str], stands: dict[frozenset[int], float]
) -> dict[tuple[str, str], float]:
    """An edge is as sure as the less sure of the blocks it joins, and as the test that let a shared input in."""
    sure: dict[str, float] = {}
    for key, name in names.items():
        group = key if isinstance(key, frozenset) else assembly.owner(key)
        sure[name] = min(sure.get(name, 1.0), stands.get(group, 1.0), assembly.agreement.get(key, 1.0))
    return {(a, b): min(sure.get(a, 1.0), sure.get(b, 1.0)) for a, b in graph.edges}


@dataclass
class _Kinds:
    """From the output down, as far as f shows a node without an unknown function around it."""

    assembly: Assembly
    evidence: Evidence
    source: GradientSource
    generator: np.random.Generator
    level: float
    floor: float

    def settle(self) -> None:
        self._visit(self.assembly.outline.whole.group, exposed=True, under=None)

    def _visit(self, key: Key, exposed: bool, under: str | None) -> None:
        """`under`: the kind of the node that reads this one."""
        assembly = self.assembly
        inputs = list(assembly.reads[key])
        block = assembly.outline.blocks.get(key) if isinstance(key, frozenset) else None
        associative = block is not None and block.associative
        seen: Link | None = None
        terms = self._terms(block) if block is not None and exposed else None
        if terms is not None and block is not None:
            seen = "sum"
            inputs = self._split(block, inputs, terms)
            assembly.reads[key] = inputs
        elif block is not None and (associative or (exposed and len(inputs) == 2)):
            seen = self._seen(block, inputs, associative)
        exact = exposed and seen in ("sum", "product")
        if exact or (associative and seen is not None):
            kind = "product" if seen in ("product", "linked product") else "sum"
            if exact or not (under in ("sum", "product") or key == assembly.outline.whole.group):
                assembly.kinds[key] = kind
            else:
                assembly.wrap(key, kind)
        for below in inputs:
            if below in assembly.reads:
                self._visit(below, exact, assembly.kinds.get(key, "general"))

    def _seen(self, block: Block, inputs: list[Key], associative: bool) -> Link | None:
        """The kind that pairs of inputs agree on; none where an input is shared, so that no slope is its own."""
        own = set(self.assembly.outline.elements(block))
        groups = [key if isinstance(key, frozenset) else self.assembly.owner(key) for key in inputs]
        if not own.issuperset(groups) or len(set(groups)) < len(groups):
            return None
        some = list(combinations(groups, 2))
        if len(some) > KIND_PAIRS:
            some = [some[i] for i in sorted(self.generator.permutation(len(some))[:KIND_PAIRS])]
        kinds = set()
        for first, second in some:
            grid = Grid.draw(self.source, (first, second), self.generator, SIDE, BASES)
            kinds.add(seen_kind(grid, min(first), min(second), self.level, associative))
        if len(kinds) == 1:
            return kinds.pop()
        if None in kinds:
            return None
        return "linked product" if "product" in kinds or "linked product" in kinds else "linked sum"

    def _terms(self, block: Block) -> list[frozenset[int]] | None:
        """Terms of a sum, as sets of variables, where mixed differences show some; true modules are taken as one."""
        outline = self.assembly.outline
        modules = [b for b in outline.blocks.values() if b.group < block.group and not b.shared]
        by_member = {min(unit): unit for unit in outline.largest(block.group, modules)}
        if len(by_member) < 3 or _flat(self.evidence, self.level)[sorted(block.group)].any():
            return None
        terms = additive_terms(self.evidence, self.source, self.generator, sorted(by_member), self.level, self.floor)
        return None if terms is None else [frozenset().union(*(by_member[i] for i in term)) for term in terms]

    def _split(self, block: Block, inputs: list[Key], terms: list[frozenset[int]]) -> list[Key]:
        """The terms as inputs: what is known already and reads the same, or a new node over the largest known parts."""
        outline = self.assembly.outline
        known = {self.assembly.reach(key): key for key in inputs}
        found: list[Key] = []
        for number, term in enumerate(terms):
            inside = [b for b in outline.blocks.values() if b.group < block.group and b.reach <= term]
            below: list[Key] = [*outline.largest(term, inside)]
            if term in known:
                found.append(known[term])
            else:
                found.append(below[0] if len(below) == 1 else self.assembly.make("term", block.group, number, below))
        return found
