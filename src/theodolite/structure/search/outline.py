"""From nested blocks to a graph: what each block reads, before it is known which shared inputs enter it directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from theodolite.structure.search.modules import Block

Unit = frozenset[int]  # the group of a block, or one variable


@dataclass
class Outline:
    """Blocks by their group; a unit is a block's group or a single variable."""

    blocks: Mapping[Unit, Block]
    inputs: dict[Unit, list[Unit]] = field(default_factory=dict)

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Outline:
        outline = cls({block.group: block for block in blocks})
        for block in blocks:
            outline.inputs[block.group] = [*outline.elements(block), *outline.cover(block)]
        return outline

    @property
    def whole(self) -> Block:
        return max(self.blocks.values(), key=lambda block: len(block.group))

    def reach(self, unit: Unit) -> frozenset[int]:
        return self.blocks[unit].reach if unit in self.blocks else unit

    def elements(self, block: Block) -> list[Unit]:
        """What leaves through this block and through no smaller one: child blocks and single variables."""
        return self.largest(block.group, [b for b in self.blocks.values() if b.group < block.group])

    def cover(self, block: Block) -> list[Unit]:
        """What the block shares with others: blocks that lie wholly within its reach, and single variables."""
        inside = [b for b in self.blocks.values() if b.group <= block.shared and b.reach < block.reach]
        return self.largest(block.shared, inside)

    def readers(self, unit: Unit, among: Sequence[Unit]) -> list[Unit]:
        """Those that read all of the unit."""
        return [other for other in among if other != unit and unit <= self.reach(other)]

    def largest(self, variables: frozenset[int], inside: list[Block]) -> list[Unit]:
        """The variables in as few units as blocks allow."""
        found: list[Unit] = []
        left = set(variables)
        for block in sorted(inside, key=lambda b: (-len(b.group), sorted(b.group))):
            if block.group <= left:
                found.append(block.group)
                left -= block.group
        return sorted([*found, *(frozenset((i,)) for i in left)], key=sorted)
