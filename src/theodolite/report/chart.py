"""A chart to draw: squares by row and column, filled by a share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Square:
    """One square of a chart: `share` from 0 to 1 says how full its colour is, None that nothing is known. `edge`: open
    for what decides nothing, against for what contradicts."""

    share: float | None
    text: str
    hover: str = ""
    edge: Literal["plain", "open", "against"] = "plain"


@dataclass(frozen=True)
class Board:
    """Squares by row and column under one heading; `note` says what a square's text is."""

    title: str
    note: str
    squares: Sequence[Sequence[Square]]


@dataclass(frozen=True)
class Chart:
    """Boards side by side with the same rows and columns, drawn without a script. `one_scale`: a colour means the same
    on all of them. `gaps`: rows before which there is one."""

    title: str
    alt: str
    rows: Sequence[str]
    columns: Sequence[str]
    boards: Sequence[Board]
    caption: str = ""
    command: str = ""
    one_scale: bool = False
    gaps: Sequence[int] = ()
