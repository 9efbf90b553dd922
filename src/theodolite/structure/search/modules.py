"""Groups of variables that enter a function through one scalar, from which variable entangles which two.

A block is a group whose members no variable outside its `reach` entangles: given the rest of the reach (variables the
block shares with others), the group enters through one scalar. In the graph it is what lies below one node and can get
out through that node only, so blocks are nested or disjoint; those that overlap are parts of one sum or product (Gorman
1968) and are joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
    def __init__(self, entangled: Flags, everything: frozenset[int]) -> None:
        self.entangled = entangled
        self.everything = everything
        self._classes: dict[frozenset[int], list[frozenset[int]]] = {}

    def block(self, start: Iterable[int]) -> Block:
        """The smallest block around some variables, with all that share its reach and leave it nowhere else."""
        group = frozenset(start)
        reach = self._reach(group)
        while True:
            # the relation "nothing outside the reach entangles i and j" is an equivalence: ratios multiply
            wider = frozenset().union(*(part for part in self._partition(reach) if part & group))
            after = self._reach(wider) | reach
            if wider == group and after == reach:
                return Block(group, reach)
            group, reach = wider, after

    def _reach(self, group: frozenset[int]) -> frozenset[int]:
        members = sorted(group)
        between = self.entangled[np.ix_(members, members)].any(axis=(0, 1))
        return group | (frozenset(np.flatnonzero(between).tolist()) & self.everything)

    def _partition(self, reach: frozenset[int]) -> list[frozenset[int]]:
        if reach not in self._classes:
            members, outside = sorted(reach), sorted(self.everything - reach)
            apart = self.entangled[np.ix_(members, members, outside)].any(axis=2)
            parts = _components(np.logical_not(apart))
            self._classes[reach] = [frozenset(members[place] for place in part) for part in parts]
        return self._classes[reach]


def _components(linked: Flags) -> list[list[int]]:
    left, found = set(range(len(linked))), []
    while left:
        part, waiting = [], [left.pop()]
        while waiting:
            here = waiting.pop()
            part.append(here)
            near = {there for there in left if linked[here, there]}
            left -= near
            waiting.extend(near)
        found.append(part)
    return found


def _overlapping(blocks: list[Block]) -> list[list[Block]]:
    """Families of blocks that overlap: in common members, neither inside the other."""
    count = len(blocks)
    crossing = np.zeros((count, count), dtype=bool)
    for a in range(count):
        for b in range(a):
            one, other = blocks[a].group, blocks[b].group
            crossing[a, b] = crossing[b, a] = bool(one & other) and not (one <= other or other <= one)
    return [[blocks[i] for i in part] for part in _components(crossing) if len(part) > 1]
