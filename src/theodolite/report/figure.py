"""A figure to draw: lines or dots with intervals, in panels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Series:
    """One line of a figure; `low` and `high` draw a band or error bars, `dashed` marks a prediction."""

    name: str
    x: Sequence[float | int | str]
    y: Sequence[float | int | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    dashed: bool = False
    hover: Sequence[str] | None = None
    group: str | None = None  # series of one group share a colour


@dataclass(frozen=True)
class Band:
    """A shaded range of the x axis, such as the lengths a net was trained on."""

    low: float
    high: float
    label: str


@dataclass(frozen=True)
class Line:
    """A value to compare with, such as chance; `axis` is the axis it is a value of."""

    value: float
    label: str
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True)
class Panel:
    """One small plot; the panels of a figure stand side by side and share the legend and the y axis."""

    title: str
    series: Sequence[Series]
    bands: Sequence[Band] = ()
    lines: Sequence[Line] = ()


@dataclass(frozen=True)
class Figure:
    """`dots` lists the names in `x` downwards and draws each value `y` with its interval along a horizontal axis.

    `bands` and `lines` are drawn in every panel.
    """

    title: str
    alt: str
    x_label: str
    y_label: str
    panels: Sequence[Panel]
    log_x: bool = False
    log_y: bool = False
    caption: str = ""
    command: str = ""
    kind: Literal["lines", "dots"] = "lines"
    bands: Sequence[Band] = ()
    lines: Sequence[Line] = ()
    shared: bool = True  # one range of heights for all panels; not where panels measure different things
    order: Sequence[str] = ()  # groups that have their place in the colours whether they are drawn here or not
