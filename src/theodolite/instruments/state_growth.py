"""Whether a state grows without end, as far as can be shown: past all that the net could hold, and past any window.

Every state of one size looks as if it grew until it is full, and one of d·N numbers is full after N tokens. So growth
counts only where the state has come to more numbers than the net has weights, still grows by as many a token as at the
beginning, and where the oldest of many more tokens still reaches the future. That takes long pasts, so it is looked for
on a narrow copy, which has few weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from theodolite.instruments.state_past import SURPLUS, NotMeasured, Past, argument
from theodolite.nets.load import Blueprint
from theodolite.nets.size import own_name

OLDEST = 512  # tokens of the past among which the end of a window is looked for
_WIDTHS = (4, 8, 16)
_SHORT = 8  # tokens at the beginning
_STEADY = 0.95  # of the growth at the beginning


@dataclass(frozen=True)
class Growth:
    """`numbers` after `tokens` of a past, more than the `held` weights of a copy with the arguments `copy`."""

    tokens: int
    numbers: int
    held: int
    oldest: int
    copy: dict[str, Any]

    def __str__(self) -> str:
        which = " ".join(f"{name} {value}" for name, value in self.copy.items())
        where = f" at {which}" if which else ""
        return (
            f"{self.numbers:,} numbers after {self.tokens} tokens{where}, where there are {self.held:,} weights; the "
            f"oldest of {self.oldest:,} tokens is still felt"
        )


def shown_growth(plan: Blueprint, seed: int, most: int, seconds: float) -> Growth | None:
    """The growth of the narrowest copy that runs, or of the net itself; None where none could be shown."""
    for copy in (*_narrow(plan), {}):
        try:
            past = Past(replace(plan, arguments={**plan.arguments, **copy}), seed, seconds)
        except NotMeasured:
            continue
        try:
            found = _growth(past, most, copy)
        except NotMeasured:
            return None
        if found is not None:
            return found
    return None


def _narrow(plan: Blueprint) -> Iterator[dict[str, Any]]:
    """Arguments of smaller nets: narrow and of one layer, then narrow and as deep."""
    wide, deep, heads = (own_name(name, plan.known) for name in ("width", "depth", "heads"))
    own = argument(plan, "width")
    width = next((each for each in _WIDTHS if own is not None and each < own), None)
    if wide is None or width is None:
        return
    for shallow in ({deep: 1}, {}) if deep else ({},):
        yield {wide: width, **shallow}
        if heads:
            yield {wide: width, heads: 1, **shallow}


def _growth(past: Past, most: int, copy: dict[str, Any]) -> Growth | None:
    features = past.widened(_SHORT // 2, most)
    past.wide, features = features is not None, features or past.features
    start = past.rank(_SHORT, features, most)
    if start.capped or not start.rank:
        return None
    slope, held = start.rank / _SHORT, past.held
    tokens = max(2 * _SHORT, int((held + 1) / (_STEADY * slope)) + 1)
    rows = int(slope * tokens) + SURPLUS + 1
    if rows > most:
        return None
    numbers = past.largest_rank(tokens, features, rows, enough=int(_STEADY * slope * tokens) + 1)
    if numbers <= max(held, _STEADY * slope * tokens):
        return None
    oldest = max(OLDEST, 4 * tokens)
    reached = past.window(features, oldest, rows=1)
    return Growth(tokens, numbers, held, oldest, copy) if reached == oldest else None
