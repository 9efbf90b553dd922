"""How far a search is, in one number from 0 to 1: every stage of it has a part of the whole."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, float, str], None]  # done, of so much, what is going on


def part_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """What a stage tells, as a part of the whole."""
    if progress is None:
        return None
    return lambda done, total, label: progress(begin + (end - begin) * done / max(total, 1), 1.0, label)
