"""A chart to draw: squares by row and column, filled by a share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Square:
    """One square of a chart: `share` from 0 to 1 says how full its colour is, None that nothing is known."""

    share: float | None
    text: str
    hover: str = ""


@dataclass(frozen=True)
class Board:
    """Squares by row and column under one heading; `note` says what a square's text is."""

    title: str
    note: str
    squares: Sequence[Sequence[Square]]


@dataclass(frozen=True)
class Chart:
    """Boards side by side with the same rows and columns, drawn without a script."""

    title: str
    alt: str
    rows: Sequence[str]
    columns: Sequence[str]
    boards: Sequence[Board]
    caption: str = ""
    command: str = ""
