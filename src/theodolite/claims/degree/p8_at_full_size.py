"""Claim P8 at full size: equal and sufficient training with and without softmax and activations."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from theodolite.claims.comparing import scores
from theodolite.claims.degree.ablated import KINDS, NET
from theodolite.claims.full_size import LEVEL, MEMBERS, STAGES, STEPS, decided, stages
from theodolite.claims.one_setting import MARGIN, TASKS, OneSetting
from theodolite.claims.rule import Rule, Statistics, Verdict, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import chance_of_no_lead
from theodolite.statistics.paired import holm

LEARNT = 0.9
_RISING = 0.02  # of mean accuracy from one fifth of the steps to the next
_COMPARED = OneSetting(NET, "without", KINDS, {"majority": {"bits": 9}, **TASKS})


def costs(rows: Sequence[Row]) -> dict[str, bool | None]:
    """Of one stage: True where the cost is small, False where it is large."""
    by_kind = _COMPARED.members(rows)
    said: dict[str, bool | None] = {}
    for task, side in clear_costs(rows, LEVEL).items():
        learnt = statistics.fmean(scores(by_kind[task, "nothing"], "accuracy")) >= LEARNT
        counts = side is True or (side is False and not rising(by_kind[task, "both"]))
        said[task] = side if learnt and counts else None
    return said


def clear_costs(rows: Sequence[Row], level: float) -> dict[str, bool | None]:
    """True where a cost below the margin, False where one above it is clear over all tasks and both sides (Holm)."""
    found = {place: scores(own, "accuracy") for place, own in _COMPARED.members(rows).items()}
    tasks = list(dict.fromkeys(task for task, _ in found))
    large = [chance_of_no_lead(found[task, "nothing"], found[task, "both"], MARGIN) for task in tasks]
    small = [chance_of_no_lead(found[task, "both"], found[task, "nothing"], -MARGIN) for task in tasks]
    clear = holm([*large, *small], level)
    ends = zip(clear[: len(tasks)], clear[len(tasks) :], strict=True)
    return {task: False if lost else True if kept else None for task, (lost, kept) in zip(tasks, ends, strict=True)}


def rising(rows: Sequence[Row]) -> bool:
    """Whether the mean accuracy of the last fifth of the looks is above that of the fifth before by more than a bit."""
    curve = mean_curve(rows)
    fifth = max(1, len(curve) // 5)
    last, before = (
        statistics.fmean(score for _, score in part) for part in (curve[-fifth:], curve[-2 * fifth : -fifth])
    )
    return last - before > _RISING


def mean_curve(rows: Sequence[Row]) -> list[tuple[int, float]]:
    """Mean accuracy over members at every look; one that diverged has 0 from then on."""
    curves = [{step: score or 0.0 for step, _, score in row["curve"]} for row in rows]
    steps = sorted({step for curve in curves for step in curve})
    return [(step, statistics.fmean(curve.get(step, 0.0) for curve in curves)) for step in steps]


def further(rows: Sequence[Row]) -> list[Cell]:
    return _COMPARED.cells([task for task, said in costs(rows).items() if said is None], STEPS[1])


def decide(rows: Sequence[Row]) -> Verdict:
    said = decided(rows, costs)
    means: dict[str, dict[str, float]] = {}
    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for stage in stages(rows):
        for (task, without), own in _COMPARED.members(stage).items():
            means.setdefault(task, {})[without] = statistics.fmean(scores(own, "accuracy"))
            curves.setdefault(task, {})[without] = mean_curve(own)
    words = {True: "small", False: "large", None: "undecided"}
    small = sum(side is True for side in said.values())
    return Verdict(
        outcome(False not in said.values(), 2 * small > len(said)),
        {"cost below": MARGIN},
        {"accuracy": means, "cost": {task: words[side] for task, side in said.items()}, "over steps": curves},
        "Mean accuracy of the whole, without softmax, without activations, with neither: "
        + "; ".join(
            f"{task} {', '.join(f'{by[without]:.2f}' for without in KINDS)} after "
            f"{curves[task]['both'][-1][0]:,} steps (cost {words[said[task]]})"
            for task, by in means.items()
        )
        + ".",
    )


ABLATION = Rule(
    f"Five tasks, {MEMBERS} seeds that no earlier run used, equal parameters; layer norms stay. {STAGES} The whole "
    f"Transformer's mean accuracy less that of the one with neither is small if below {MARGIN}, large if above "
    "(Welch, one-sided, ten tests). A large cost counts only where the network with neither has stopped rising: its "
    f"mean accuracy over the last fifth of the steps is at most {_RISING} above that over the fifth before. A task "
    f"that the whole does not learn (mean accuracy below {LEARNT}) says nothing. A task undecided goes on, all "
    "networks. Holds if the cost is small on most tasks and large on none; fails if it is large on one. The curves "
    "over steps are reported.",
    lambda: _COMPARED.cells(list(_COMPARED.tasks), STEPS[0]),
    decide,
    Statistics(
        f"{MEMBERS} seeds for each of four networks on five tasks",
        f"Holm over the ten tests of a stage, {100 * LEVEL:g} % a stage",
        STAGES,
    ),
    further,
)
