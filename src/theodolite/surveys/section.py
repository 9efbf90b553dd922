"""The contract of a section: which cells a network needs, and the tables and figures their rows make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from theodolite.lab.cell import Cell, Row
from theodolite.registry import Registry
from theodolite.report import Summary

if TYPE_CHECKING:
    from theodolite.surveys.candidate import Candidate

Preset = Literal["quick", "standard", "full"]


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

    One that is about theory and not about nets has `of_nets` false: it is planned once, without a net. One that trains
    nets from the start has an attribute `trains`, true: it has no use for a net with one set of weights.
    """

    id: str
    title: str
    of_nets: bool = True

    def applies(self, _net: Candidate, /) -> str | None:
        """None if the section can measure this net, otherwise the reason why not, as one clause."""
        return None

    def plan(self, net: Candidate | None, preset: Preset, /) -> Sequence[Cell | Row]:
        """The cells; empty where the preset has no room for them. A row stands for what is known to fail already.

        Bad input means that the net fails here altogether, `NotApplicable` that the section does not apply to it.
        """
        ...

    def seconds(self, cell: Cell, /) -> float:
        """About what it costs on one core; only the order of work and the time left depend on it."""
        ...

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary: ...


def training_seconds(schedule: Mapping[str, Any], length: int | None) -> float:
    """Of one member to its last step, on one core: small nets take as long for the operations of a step as for what
    they read in it. `length` is that of a sequence."""
    read = schedule["batch"] * (3 if length is None else 1 + length) / 8
    return schedule["steps"] * ((0 if length is None else 1e-3) + 4e-5 * read)


# In the order of the report.
sections: Registry[Section] = Registry(
    "section",
    {
        "leakage": "theodolite.surveys.leakage:section",
        "learnability": "theodolite.surveys.learnability:section",
        "matrix": "theodolite.surveys.matrix:section",
        "sensitivity": "theodolite.surveys.sensitivity:section",
        "cost": "theodolite.surveys.cost:section",
        "spectrum": "theodolite.surveys.spectrum:section",
        "separation-rank": "theodolite.surveys.separation:section",
        "symmetry": "theodolite.surveys.symmetry:section",
        "trained": "theodolite.surveys.trained:section",
        "claims": "theodolite.surveys.scoreboard:section",
    },
)
