"""The contract of a section: which cells a network needs, and the tables and figures their rows make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from theodolite.lab.cell import Cell, Row
from theodolite.registry import Registry

if TYPE_CHECKING:
    from theodolite.surveys.candidate import Candidate

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
    order: Sequence[str] = ()  # groups that have their place in the colours whether they are drawn here or not


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


Standing = Literal["yes", "no", "partly", "unknown", "failed"]


@dataclass(frozen=True)
class Answer:
    """One line of a net's card: a question that all nets are asked in the same words, and what was measured of it.

    `text` is the measurement in a few words with its interval; `predicted` what theory says, empty where it is silent;
    `agrees` is None without a prediction that could be wrong. `failed` means that the instrument could not be used,
    and `text` says why. `ability` is the question as it follows “can” or “cannot”, in a few words: `learn parity`;
    left empty, it is taken from a question that begins with “Can it”.
    """

    net: str
    question: str
    standing: Standing
    text: str
    predicted: str = ""
    agrees: bool | None = None
    ability: str = ""


@dataclass(frozen=True)
class Summary:
    """`headline` answers the section's question in one or two sentences made from the numbers."""

    headline: str
    tables: Sequence[Table] = field(default_factory=tuple)
    figures: Sequence[Figure] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
    answers: Sequence[Answer] = field(default_factory=tuple)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by net: a few values to stand at its name
    charts: Sequence[Chart] = field(default_factory=tuple)


@dataclass(frozen=True)
class Setting:
    """What a summary is told besides its rows, by net: `spelt`, how the user wrote it; `shapes`, its arguments as most
    sections measure it; `troubles`, why nothing could be planned for it."""

    preset: Preset
    spelt: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Section(Protocol):
    """An instrument joins the survey by registering one of these in `sections`.

    One that is about theory and not about nets has `of_nets` false: it is planned once, without a net.
    """

    id: str
    title: str
    of_nets: bool

    def applies(self, net: Candidate, /) -> str | None:
        """None if the section can measure this net, otherwise the reason why not, as one clause."""
        ...

    def plan(self, net: Candidate | None, preset: Preset, /) -> Sequence[Cell | Row]:
        """The cells; empty where the preset has no room for them. A row stands for what is known to fail already.

        Bad input means that the net fails here altogether, `NotApplicable` that the section does not apply to it.
        """
        ...

    def seconds(self, cell: Cell, /) -> float:
        """About what it costs on one core; only the order of work and the time left depend on it."""
        ...

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary: ...


# In the order of the report.
sections: Registry[Section] = Registry(
    "section",
    {
        "learnability": "theodolite.surveys.learnability:section",
        "matrix": "theodolite.surveys.matrix:section",
        "sensitivity": "theodolite.surveys.sensitivity:section",
        "spectrum": "theodolite.surveys.spectrum:section",
        "separation-rank": "theodolite.surveys.separation:section",
        "symmetry": "theodolite.surveys.symmetry:section",
        "cost": "theodolite.surveys.cost:section",
        "claims": "theodolite.surveys.scoreboard:section",
    },
)
