"""How much is tried for one type: counted, not timed, so that every machine finds the same descriptions."""

from __future__ import annotations

BUILDS = 400
SYSTEMS = 6_000  # of linear equations, in one search for formulas


class TooMuch(Exception):
    """More was tried than is allowed for one type."""


class Effort:
    def __init__(self) -> None:
        self.builds = self.systems = 0

    def build(self) -> None:
        self.builds += 1
        if self.builds > BUILDS:
            raise TooMuch(f"more than {BUILDS} models were built")

    def search(self) -> None:
        """Another search begins."""
        self.systems = 0

    def solve(self) -> None:
        self.systems += 1
        if self.systems > SYSTEMS:
            raise TooMuch(f"more than {SYSTEMS:,} systems of equations were solved")
