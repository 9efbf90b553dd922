"""`run_survey`: plan the sections for the nets, measure, summarise. Drawing and writing are the caller's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from theodolite.errors import BadInput
from theodolite.lab.cell import Row
from theodolite.lab.engine import Watch, run
from theodolite.nets import nets
from theodolite.survey import separation
from theodolite.survey.section import Preset, Summary, sections

__all__ = ["SectionResult", "Survey", "run_survey", "separation"]


@dataclass(frozen=True)
class SectionResult:
    id: str
    title: str
    summary: Summary
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Survey:
    nets: tuple[str, ...]
    preset: Preset
    sections: tuple[SectionResult, ...]
    not_applicable: tuple[str, ...]


def run_survey(
    chosen: Sequence[str] = (),
    preset: Preset = "quick",
    device: str = "cpu",
    watch: Watch | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> Survey:
    """Survey nets (those of `DEFAULT` when none is named); `on_row` gets every row as it is finished."""
    if preset not in get_args(Preset):
        raise BadInput(f"preset '{preset}' is unknown: use {', '.join(get_args(Preset))}")
    surveyed = tuple(chosen) or DEFAULT
    for name in surveyed:
        if ":" not in name and not name.endswith(".py"):
            _ = nets[name]
    skipped: list[str] = []
    planned = []
    for _, section in sections.items():
        fitting = []
        for net in surveyed:
            reason = section.applies(net)
            if reason is None:
                fitting.append(net)
            else:
                skipped.append(f"{section.title}: {reason}")
        planned.append((section, [cell for net in fitting for cell in section.plan(net, preset)]))
    total = sum(len(cells) for _, cells in planned)
    done, results = 0, []
    for section, cells in planned:
        rows = []
        step = (lambda n, _, what, before=done: watch(before + n, total, what)) if watch else None
        for row in run(cells, device, step):
            rows.append(row)
            if on_row:
                on_row(row)
        done += len(cells)
        if rows:
            results.append(SectionResult(section.id, section.title, section.summarise(rows), tuple(rows)))
    return Survey(surveyed, preset, tuple(results), tuple(dict.fromkeys(skipped)))


# Nets the survey shows unless others are named: architectures, not targets.
DEFAULT = (
    "self-attention",
    "degree-attention",
    "conv-circuit",
    "recurrent-circuit",
    "polynomial-mlp",
    "polynomial-mixer",
)
