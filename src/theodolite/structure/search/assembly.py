"""The graph that blocks and the ways of shared inputs make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import Kind, free_name
from theodolite.structure.search.modules import Block
from theodolite.structure.search.outline import Outline, Unit
from theodolite.structure.search.shared_inputs import Entry

Key = Unit | tuple[str, Unit, int]  # a block or variable, or a node that joins some with others

MOST_THROUGH = 3  # others through which an input enters that none is seen to read: many ridges explain anything


@dataclass
class Assembly:
    """Nodes under construction: what each reads, and its kind. Keys are blocks' groups, or made for joined inputs."""

    outline: Outline
    entries: Mapping[tuple[Unit, Unit], Entry]
    reads: dict[Key, list[Key]] = field(default_factory=dict)
    kinds: dict[Key, Kind] = field(default_factory=dict)
    reaches: dict[Key, frozenset[int]] = field(default_factory=dict)
    agreement: dict[Key, float] = field(default_factory=dict)  # of the tests behind nodes that are no blocks
    kept: set[Key] = field(default_factory=set)  # nodes of one input that stay

    def __post_init__(self) -> None:
        self.entries = {pair: Entry(None) if self._circular(*pair) else entry for pair, entry in self.entries.items()}
        for block in self.outline.blocks.values():
            self._add(block)
        self._mend()

    def _circular(self, group: Unit, unit: Unit) -> bool:
        """Inputs of a function of a few ridges explain each other all around, which shows no graph: where two do so,
        another input of the block must be seen to read each."""
        entry = self.entries[group, unit]
        elements = self.outline.elements(self.outline.blocks[group])
        if entry.through is None or unit not in elements or self.outline.readers(unit, elements):
            return False
        if len(entry.through) > MOST_THROUGH:
            return True
        back = [self.entries.get((group, other)) for other in entry.through]
        return any(other is not None and other.through is not None and unit in other.through for other in back)

    def reach(self, key: Key) -> frozenset[int]:
        return self.reaches[key] if key in self.reaches else self.outline.reach(key)  # type: ignore[arg-type]

    def owner(self, key: Key) -> Unit:
        """The block or variable that a key is, or that a made node stands upon."""
        return key if isinstance(key, frozenset) else key[1]

    def make(self, purpose: str, owner: Unit, number: int, below: list[Key], agreement: float = 1.0) -> Key:
        key: Key = (purpose, owner, number)
        self.reads[key] = below
        self.reaches[key] = frozenset().union(*(self.reach(other) for other in below))
        self.agreement[key] = agreement
        return key

    def wrap(self, key: Key, kind: Kind) -> None:
        """A function of one input around a sum or a product."""
        inner = self.make("inner", self.owner(key), 0, self.reads[key])
        self.kinds[inner] = kind
        self.reads[key] = [inner]
        self.kept.add(key)

    def _add(self, block: Block) -> None:
        elements, cover = self.outline.elements(block), self.outline.cover(block)
        direct = [unit for unit in (*elements, *cover) if self._enters(block, unit, (*elements, *cover))]
        joined: dict[Unit, list[Unit]] = {}
        twins: list[tuple[Unit, Unit]] = []
        for unit in (*elements, *cover):
            entry = self.entries.get((block.group, unit))
            if entry is None or entry.through is None:
                continue
            entered, weak, strong = False, [], []
            for through in entry.through:
                back = self.entries.get((block.group, through))
                if back is not None and back.through is not None and unit in back.through:
                    twins.append((unit, through))  # each explains the other: they meet in a node of their own
                    entered = True
                elif unit <= self.outline.reach(through):
                    entered = True
                elif self._by_another(block, unit, through, certain=True):
                    strong.append(through)
                elif self._by_another(block, unit, through, certain=False):
                    weak.append(through)
                else:
                    joined.setdefault(through, []).append(unit)
                    entered = True
            for through in () if entered else (weak or strong):
                joined.setdefault(through, []).append(unit)
        clusters = self._clusters(twins, joined)
        inputs = [self._resolved(block, unit, joined) for unit in direct]
        for cluster in clusters:
            below = sorted(cluster, key=sorted)
            whole = frozenset().union(*cluster)
            inputs.append(self.make("twins", whole, 0, [*below], self._agreement(block, cluster)))
        self._stack(block, inputs, frozenset().union(*clusters))
        self.kinds[block.group] = "general"

    def _stack(self, block: Block, inputs: list[Key], met: frozenset[Unit]) -> None:
        """The block's node, and where inputs enter once more above it, nodes on top: the outermost is the block's. Not
        for those that met in a node of their own: what the other one does elsewhere looks the same."""
        units = [unit for unit in (*self.outline.elements(block), *self.outline.cover(block)) if unit not in met]
        left = [unit for unit in units if (entry := self.entries.get((block.group, unit))) is not None and entry.above]
        groups: list[frozenset[Unit]] = []
        while left:
            # who does not care about the values of others that come on top stands above them
            group = min((self._bound(block, unit, left) for unit in left), key=_size)
            groups.append(group)
            left = [unit for unit in left if unit not in group]
        below = inputs
        for number, group in enumerate(reversed(groups)):
            key = self.make("core", block.group, number, below, self._agreement(block, group))
            below = [key, *sorted(group, key=sorted)]
        self.reads[block.group] = below

    def _clusters(self, twins: list[tuple[Unit, Unit]], joined: dict[Unit, list[Unit]]) -> list[frozenset[Unit]]:
        """Units that meet in a node that is nobody's own, with those that come in through one of them."""
        clusters: list[set[Unit]] = []
        for a, b in twins:
            touched = [cluster for cluster in clusters if a in cluster or b in cluster]
            clusters = [cluster for cluster in clusters if cluster not in touched]
            clusters.append({a, b}.union(*touched))
        for cluster in clusters:
            for member in sorted(cluster, key=sorted):
                cluster.update(joined.pop(member, []))
        return [frozenset(cluster) for cluster in clusters]

    def _by_another(self, block: Block, unit: Unit, through: Unit, certain: bool) -> bool:
        """Whether the way of `unit` through `through` is only that of another shared input, which `through` reads (for
        certain, or by its own way) and the unit joins: the slope of that one holds both."""
        mine = self.entries[block.group, unit]
        for other in (*(mine.through or ()), *mine.outside):
            if other == through:
                continue
            entry = self.entries.get((block.group, other))
            entered = entry.through if entry is not None and entry.through is not None else ()
            if other <= self.outline.reach(through) or (not certain and through in entered):
                return True
        return False

    def _resolved(
        self, block: Block, unit: Unit, joined: Mapping[Unit, list[Unit]], above: tuple[Unit, ...] = ()
    ) -> Key:
        """The unit, or the node that joins others to it; these may have been joined with others themselves."""
        if unit not in joined or unit in above:
            return unit
        left = list(joined[unit])
        key: Key = unit
        while left:
            group = min((self._bound(block, other, left) for other in left), key=_size)
            below = [key, *(self._resolved(block, o, joined, (*above, unit)) for o in sorted(group, key=sorted))]
            key = self.make("join", unit, self._number(unit, below), below, self._agreement(block, group))
            left = [other for other in left if other not in group]
        return key

    def _number(self, unit: Unit, below: list[Key]) -> int:
        """Of a node that joins just these: the same one again, if there is one."""
        number = 0
        while self.reads.get(("join", unit, number), below) != below:
            number += 1
        return number

    def _enters(self, block: Block, unit: Unit, among: Sequence[Unit]) -> bool:
        entry = self.entries.get((block.group, unit))
        if entry is not None and entry.through is not None:
            return False
        return not self.outline.readers(unit, among) or (entry is not None and entry.tested)

    def _agreement(self, block: Block, units: Iterable[Unit]) -> float:
        tested = [self.entries[block.group, unit] for unit in units if (block.group, unit) in self.entries]
        return min((entry.agreement for entry in tested), default=1.0)

    def _bound(self, block: Block, start: Unit, left: Sequence[Unit]) -> frozenset[Unit]:
        found, waiting = {start}, [start]
        while waiting:
            free = self.entries[block.group, waiting.pop()].free
            for other in left:
                if other not in free and other not in found:
                    found.add(other)
                    waiting.append(other)
        return frozenset(found)

    def _mend(self) -> None:
        """What nothing reads is read where it would leave: doubtful evidence must not lose a variable."""
        for block in sorted(self.outline.blocks.values(), key=lambda b: len(b.group)):
            for unit in self.outline.elements(block):
                if not any(unit in inputs for inputs in self.reads.values()):
                    self.reads[block.group].append(unit)

    def graph(self, variables: Sequence[str]) -> tuple[CompositionalGraph, dict[Key, str]]:
        """The graph and the name of every key's node; a block that reads one input is that input."""
        used = self._alive()
        names: dict[Key, str] = {}
        nodes: list[Node] = []

        def name(key: Key) -> str:
            if key in names:
                return names[key]
            if key not in used:
                (variable,) = key  # type: ignore[misc]
                return variables[variable]  # type: ignore[index]
            inputs = tuple(dict.fromkeys(name(below) for below in self.reads[key]))
            whole = key == self.outline.whole.group
            if len(inputs) == 1 and not whole and key not in self.kept:
                names[key] = inputs[0]
                return inputs[0]
            names[key] = free_name("y" if whole else f"h{len(nodes) + 1}", variables)
            nodes.append(Node(names[key], inputs, self.kinds.get(key, "general")))
            return names[key]

        name(self.outline.whole.group)
        return CompositionalGraph(tuple(variables), tuple(nodes)), names

    def _alive(self) -> set[Key]:
        waiting: list[Key] = [self.outline.whole.group]
        found: set[Key] = set(waiting)
        while waiting:
            for below in self.reads[waiting.pop()]:
                if below in self.reads and below not in found:
                    found.add(below)
                    waiting.append(below)
        return found


def _size(group: frozenset[Unit]) -> tuple[int, list[list[int]]]:
    return len(group), sorted(sorted(unit) for unit in group)
