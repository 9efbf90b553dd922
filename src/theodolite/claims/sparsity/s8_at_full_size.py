"""Claim S8 at full size: serial and parallel blocks, trained until it shows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.comparing import members, scores, trained
from theodolite.claims.contract import FullSize, Verdict, outcome
from theodolite.claims.full_size import LEVEL, MEMBERS, STAGES, STEPS, stages
from theodolite.claims.tables.trained import LOOK
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import chance_of_no_lead, difference_interval
from theodolite.statistics.paired import holm

_MARGIN = 0.05
_SHAPE: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2}
_RATE, _SEEDS = 3e-3, range(200, 200 + MEMBERS)  # none that an earlier run looked at
_BLOCKS = ("serial", "parallel")
_TASKS: dict[str, dict[str, Any]] = {
    "dyck": {"depth": 3, "longest": 8},
    "copy": {"symbols": 3, "longest": 4},
    "recall": {"keys": 8, "values": 4, "shortest": 2, "longest": 3},
    "even-pairs": {"longest": 6},
}


def _cells(tasks: Sequence[str], steps: int) -> list[Cell]:
    schedule: dict[str, Any] = {"batch": 32, "every": LOOK, "rows": 32, "to_the_end": True, "grows": True}
    return [
        cell
        for task in tasks
        for block in _BLOCKS
        for cell in trained(
            "transformer", {**_SHAPE, "block": block}, task, _TASKS[task], _SEEDS, _RATE, steps=steps, **schedule
        )
    ]


def _by_block(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    return members(rows, lambda config: (config["task"], config["shape"]["block"]))


def likeness(rows: Sequence[Row]) -> dict[str, bool | None]:
    """Of one stage: True where the blocks are alike, False where they are apart."""
    found = {place: scores(own, "accuracy") for place, own in _by_block(rows).items()}
    tasks = list(dict.fromkeys(task for task, _ in found))
    both = [(found[task, "serial"], found[task, "parallel"]) for task in tasks]
    apart = holm([min(1.0, 2 * min(_leads(one, other, _MARGIN))) for one, other in both], LEVEL)
    alike = [max(_leads(one, other, -_MARGIN)) <= LEVEL for one, other in both]
    return {t: False if far else True if near else None for t, far, near in zip(tasks, apart, alike, strict=True)}


def _leads(one: Sequence[float], other: Sequence[float], margin: float) -> tuple[float, float]:
    return chance_of_no_lead(one, other, margin), chance_of_no_lead(other, one, margin)


def further(rows: Sequence[Row]) -> list[Cell]:
    return _cells([task for task, said in likeness(rows).items() if said is None], STEPS[1])


def decide(rows: Sequence[Row]) -> Verdict:
    said: dict[str, bool | None] = {}
    shown: dict[str, dict[str, Any]] = {}
    for stage in stages(rows):
        said |= {task: side for task, side in likeness(stage).items() if said.get(task) is None}
        shown |= _shown(stage)
    words = {True: "alike", False: "apart", None: "undecided"}
    return Verdict(
        outcome(False not in said.values(), None not in said.values()),
        {"difference within": _MARGIN},
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
    by_block = _by_block(rows)
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


BLOCKS = FullSize(
    f"Four tasks, {MEMBERS} seeds that no earlier run used, equal shapes (a parallel block has one layer norm less), "
    f"accuracy. {STAGES} Alike if two one-sided tests (Welch) put the difference of means within ±{_MARGIN}, each at "
    f"{100 * LEVEL:g} %: all tasks must be alike, and a conjunction needs no correction. Apart if it lies outside, "
    "Holm over the tasks. A task that is neither goes on, both blocks. Holds if alike on every task, fails if apart on "
    "one. The steps until a task is learnt are reported.",
    lambda: _cells(list(_TASKS), STEPS[0]),
    further,
    decide,
)
