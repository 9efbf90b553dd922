"""Groups of variables that enter a function through one scalar, from which variable entangles which two.

A block is a group whose members no variable outside its `reach` entangles: given the rest of the reach (variables the
block shares with others), the group enters through one scalar. In the graph it is what lies below one node and can get
out through that node only, so blocks are nested or disjoint; those that overlap are parts of one sum or product (Gorman
1968) and are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Block:
    """`group` reaches the output through this block only; `reach` is all that the block reads. `associative`: any part
    of its children is a group too, so it is a sum or a product of them."""

    group: frozenset[int]
    reach: frozenset[int]
    associative: bool = False

    @property
    def shared(self) -> frozenset[int]:
        return self.reach - self.group

    @property
    def first(self) -> int:
        """A variable that stands for the block's scalar."""
        return min(self.group)


def find_blocks(entangled: Flags, used: Iterable[int]) -> list[Block]:
    """All blocks of two variables or more, nested or disjoint, inner ones first; the last is the function itself."""
    everything = frozenset(used)
    if not everything:
        return []
    closing = _Closing(entangled, everything)
    members = sorted(everything)
    found = {closing.block((i, j)) for place, i in enumerate(members) for j in members[place + 1 :]}
    whole = Block(everything, everything)
    blocks = {block.group: block for block in found if block.group != everything}
    while True:
        parts = _overlapping(list(blocks.values()))
        if not parts:
            break
        for part in parts:
            joined = closing.block(frozenset().union(*(block.group for block in part)))
            for block in part:
                blocks.pop(block.group, None)
            if joined.group == everything:
                whole = Block(everything, everything, associative=True)
            else:
                blocks[joined.group] = Block(joined.group, joined.reach, associative=True)
    return [*sorted(blocks.values(), key=lambda block: (len(block.group), sorted(block.group))), whole]


class _Closing:
    """Sets of variables are the bits of numbers here, which Python joins and cuts at once."""

    def __init__(self, entangled: Flags, everything: frozenset[int]) -> None:
        self.members = sorted(everything)
        self.everything = (1 << len(self.members)) - 1
        packed = np.packbits(entangled[np.ix_(*[self.members] * 3)], axis=2, bitorder="little")
        self.between = [[int.from_bytes(bits.tobytes(), "little") for bits in row] for row in packed]
        self._classes: dict[int, list[int]] = {}

    def block(self, start: Iterable[int]) -> Block:
        """The smallest block around some variables, with all that share its reach and leave it nowhere else."""
        group = sum(1 << self.members.index(variable) for variable in start)
        reach = self._reach(group)
        while True:
            # the relation "nothing outside the reach entangles i and j" is an equivalence: ratios multiply
            wider = 0
            for part in self._partition(reach):
                wider |= part if part & group else 0
            after = self._reach(wider) | reach
            if wider == group and after == reach:
                return Block(self._variables(group), self._variables(reach))
            group, reach = wider, after

    def _reach(self, group: int) -> int:
        places = _bits(group)
        for i in places:
            row = self.between[i]
            for j in places:
                group |= row[j]
        return group

    def _partition(self, reach: int) -> list[int]:
        if reach not in self._classes:
            places, outside = _bits(reach), self.everything & ~reach
            linked = [
                sum(1 << place for place, j in enumerate(places) if not self.between[i][j] & outside) for i in places
            ]
            parts = map(_bits, _components(linked))
            self._classes[reach] = [sum(1 << places[place] for place in part) for part in parts]
        return self._classes[reach]

    def _variables(self, group: int) -> frozenset[int]:
        return frozenset(self.members[place] for place in _bits(group))


def _bits(number: int) -> list[int]:
    found = []
    while number:
        lowest = number & -number
        found.append(lowest.bit_length() - 1)
        number ^= lowest
    return found


def _components(linked: Sequence[int]) -> list[int]:
    """Of things of which the bits of a number say to which others each is linked."""
    left, found = (1 << len(linked)) - 1, []
    while left:
        part = waiting = left & -left
        while waiting:
            near = 0
            for here in _bits(waiting):
                near |= linked[here]
            waiting = near & left & ~part
            part |= waiting
        left &= ~part
        found.append(part)
    return found


def _overlapping(blocks: list[Block]) -> list[list[Block]]:
    """Families of blocks that overlap: in common members, neither inside the other."""
    crossing = [0] * len(blocks)
    for a, b in combinations(range(len(blocks)), 2):
        one, other = blocks[a].group, blocks[b].group
        if one & other and not (one <= other or other <= one):
            crossing[a] |= 1 << b
            crossing[b] |= 1 << a
    parts = map(_bits, _components(crossing))
    return [[blocks[place] for place in part] for part in parts if len(part) > 1]
