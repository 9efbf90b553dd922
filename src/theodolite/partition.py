"""Which sites of an input stand on side A and which on side B."""

from __future__ import annotations

import re
from dataclasses import dataclass

from theodolite.errors import BadInput


@dataclass(frozen=True)
class Partition:
    """Two disjoint sets of sites (tokens, or the entries of a vector), counted from 0: together all of them."""

    a: tuple[int, ...]
    b: tuple[int, ...]

    def __post_init__(self) -> None:
        a, b = tuple(sorted(self.a)), tuple(sorted(self.b))
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", b)
        if not a or not b:
            raise BadInput(f"a partition needs sites on both sides: A = {list(a)}, B = {list(b)}")
        twice = {i for i in a if i in set(b)} | {i for side in (a, b) for i in side if side.count(i) > 1}
        if twice:
            raise BadInput(f"the partition names site {min(twice)} twice: every site stands on one side only")
        everything = set(a) | set(b)
        missing = set(range(max(everything) + 1)) - everything
        if min(everything) < 0 or missing:
            absent = min(missing) if missing else min(everything)
            raise BadInput(
                f"the partition must name every site from 0 to {max(everything)} once: {absent} is "
                + ("missing" if missing else "not a site")
            )

    @property
    def sites(self) -> int:
        return len(self.a) + len(self.b)

    @property
    def balanced(self) -> bool:
        return len(self.a) == len(self.b)

    @classmethod
    def left_right(cls, sites: int) -> Partition:
        """The first half against the second; with an odd number the middle site stands on the right."""
        return cls(tuple(range(sites // 2)), tuple(range(sites // 2, sites)))

    @classmethod
    def interleaved(cls, sites: int) -> Partition:
        """Even sites against odd ones."""
        return cls(tuple(range(0, sites, 2)), tuple(range(1, sites, 2)))

    @classmethod
    def parse(cls, text: str | Partition, sites: int) -> Partition:
        """`left-right`, `interleaved`, or two lists of sites: `0,1,4|2,3,5` (ranges such as `0-3|4-7` too)."""
        if sites < 2:
            raise BadInput(f"a partition needs at least 2 sites and the input has {sites}: use more tokens or features")
        if isinstance(text, Partition):
            partition = text
        elif text == "left-right":
            partition = cls.left_right(sites)
        elif text == "interleaved":
            partition = cls.interleaved(sites)
        else:
            halves = text.split("|")
            if len(halves) != 2:
                raise BadInput(f"partition '{text}' is not left-right, interleaved or two lists such as 0,1|2,3")
            partition = cls(*(_sites(half, text, sites) for half in halves))
        if partition.sites != sites:
            raise BadInput(
                f"partition '{partition}' has {partition.sites} sites and the input has {sites}: "
                f"name every site from 0 to {sites - 1} once"
            )
        return partition

    def __str__(self) -> str:
        for name, known in (("left-right", self.left_right), ("interleaved", self.interleaved)):
            if self == known(self.sites):
                return name
        return "|".join(",".join(map(str, side)) for side in (self.a, self.b))


def _sites(half: str, text: str, sites: int) -> tuple[int, ...]:
    found: list[int] = []
    for part in half.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if not match:
            raise BadInput(f"partition '{text}' holds '{part}', which is not a site or a range of sites such as 0-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last >= sites:
            raise BadInput(f"partition '{text}' names site {last}, but sites run from 0 to {sites - 1}")
        found.extend(range(first, last + 1))
    return tuple(found)
