"""Claim S8 at full size: serial and parallel blocks, trained until it shows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.comparing import scores
from theodolite.claims.full_size import LEVEL, MEMBERS, STAGES, STEPS, decided, stages
from theodolite.claims.one_setting import MARGIN, TASKS, OneSetting
from theodolite.claims.rule import Rule, Statistics, Verdict, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import chance_of_no_lead, difference_interval
from theodolite.statistics.paired import holm

_BLOCKS = ("serial", "parallel")
_COMPARED = OneSetting("transformer", "block", _BLOCKS, TASKS)


def likeness(rows: Sequence[Row], level: float = LEVEL) -> dict[str, bool | None]:
    """Of one stage: True where the blocks are alike, False where they are apart (Holm over the tasks)."""
    found = {place: scores(own, "accuracy") for place, own in _COMPARED.members(rows).items()}
    tasks = list(dict.fromkeys(task for task, _ in found))
    both = [(found[task, "serial"], found[task, "parallel"]) for task in tasks]
    apart = holm([min(1.0, 2 * min(_leads(one, other, MARGIN))) for one, other in both], level)
    alike = [max(_leads(one, other, -MARGIN)) <= level for one, other in both]
    return {t: False if far else True if near else None for t, far, near in zip(tasks, apart, alike, strict=True)}


def _leads(one: Sequence[float], other: Sequence[float], margin: float) -> tuple[float, float]:
    return chance_of_no_lead(one, other, margin), chance_of_no_lead(other, one, margin)


def further(rows: Sequence[Row]) -> list[Cell]:
    return _COMPARED.cells([task for task, said in likeness(rows).items() if said is None], STEPS[1])


def decide(rows: Sequence[Row]) -> Verdict:
    said = decided(rows, likeness)
    shown: dict[str, dict[str, Any]] = {}
    for stage in stages(rows):
        shown |= _shown(stage)
    words = {True: "alike", False: "apart", None: "undecided"}
    return Verdict(
        outcome(False not in said.values(), None not in said.values()),
        {"difference within": MARGIN},
        {task: {**shown[task], "verdict": words[side]} for task, side in said.items()},
        "Serial and parallel, mean accuracy (95 % interval of the difference; members that learnt it, median step): "
        + "; ".join(
            f"{task} {s['means'][0]:.3f} and {s['means'][1]:.3f} ({s['interval'][0]:+.3f} to {s['interval'][1]:+.3f}; "
            f"{_told(s['learnt'][0])}, {_told(s['learnt'][1])}): {words[said[task]]}"
            for task, s in shown.items()
        )
        + ".",
    )


def _shown(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    by_block = _COMPARED.members(rows)
    found: dict[str, dict[str, Any]] = {}
    for task in dict.fromkeys(task for task, _ in by_block):
        one, other = (scores(by_block[task, block], "accuracy") for block in _BLOCKS)
        found[task] = {
            "means": [statistics.fmean(one), statistics.fmean(other)],
            "interval": difference_interval(one, other, 1 - 2 * LEVEL),
            "learnt": [_learnt(by_block[task, block]) for block in _BLOCKS],
        }
    return found


def _learnt(rows: Sequence[Row]) -> dict[str, float | int | None]:
    steps = [row["solved_at"] for row in rows if row["status"] == "solved"]
    return {"members": len(steps), "median step": statistics.median(steps) if steps else None}


def _told(learnt: Mapping[str, float | int | None]) -> str:
    step = learnt["median step"]
    return f"{learnt['members']}" if step is None else f"{learnt['members']} at {step:,.0f}"


BLOCKS = Rule(
    f"Four tasks, {MEMBERS} seeds that no earlier run used, equal shapes (a parallel block has one layer norm less), "
    f"accuracy. {STAGES} Alike if two one-sided tests (Welch) put the difference of means within ±{MARGIN}, each at "
    f"{100 * LEVEL:g} %: all tasks must be alike, and a conjunction needs no correction. Apart if it lies outside, "
    "Holm over the tasks. A task that is neither goes on, both blocks. Holds if alike on every task, fails if apart on "
    "one. The steps until a task is learnt are reported.",
    lambda: _COMPARED.cells(list(_COMPARED.tasks), STEPS[0]),
    decide,
    Statistics(
        f"{MEMBERS} seeds for each of two blocks on four tasks",
        f"Holm over the tasks for apart, none for alike, which all must be; {100 * LEVEL:g} % a stage",
        STAGES,
    ),
    further,
)
