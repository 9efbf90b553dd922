"""The contract of a section: which cells a network needs, and the tables and figures their rows make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from theodolite.lab.cell import Cell, Row
from theodolite.registry import Registry

Preset = Literal["quick", "standard", "full"]


@dataclass(frozen=True)
class Column:
    """`key` picks the value from a table's row; `note` explains the column to someone who never read the papers."""

    key: str
    label: str
    note: str = ""
    numeric: bool = True
    kind: Literal["value", "agreement"] = "value"  # agreement: True agrees, False differs, None no prediction


@dataclass(frozen=True)
class Table:
    """`rows` map column keys to plain values; None is shown as a dash."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    caption: str = ""
    command: str = ""


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


Standing = Literal["yes", "no", "partly", "unknown", "failed"]


@dataclass(frozen=True)
class Answer:
    """One line of a net's card: a question that all nets are asked in the same words, and what was measured of it.

    `text` is the measurement in a few words with its interval; `predicted` what theory says, empty where it is silent;
    `agrees` is None without a prediction that could be wrong. `failed` means that the instrument could not be used,
    and `text` says why.
    """

    net: str
    question: str
    standing: Standing
    text: str
    predicted: str = ""
    agrees: bool | None = None


@dataclass(frozen=True)
class Summary:
    """`headline` answers the section's question in one or two sentences made from the numbers."""

    headline: str
    tables: Sequence[Table] = field(default_factory=tuple)
    figures: Sequence[Figure] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
    answers: Sequence[Answer] = field(default_factory=tuple)


@runtime_checkable
class Section(Protocol):
    """An instrument joins the survey by registering one of these in `sections`."""

    id: str
    title: str

    def applies(self, net: str) -> str | None:
        """None if the section can measure this net, otherwise the reason why not, as one clause."""
        ...

    def plan(self, net: str, preset: Preset) -> Sequence[Cell]: ...

    def summarise(self, rows: Sequence[Row]) -> Summary: ...


sections: Registry[Section] = Registry("section")
