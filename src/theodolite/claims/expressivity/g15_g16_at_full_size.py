"""Claims G15 and G16 at the size of their published tables: the same cells as `theodolite reproduce --preset full`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.comparing import members, scores
from theodolite.claims.full_size import LEVEL, STAGES, STEPS, decided, stages
from theodolite.claims.rule import Rule, Statistics, Verdict, outcome
from theodolite.claims.tables import chomsky, universal_transformer
from theodolite.claims.tables import chomsky_published as hierarchy
from theodolite.claims.tables import universal_transformer_published as thinkers
from theodolite.claims.tables.contract import Request, tables
from theodolite.claims.tables.length_generalisation_published import SOLVED
from theodolite.claims.tables.published_score import find
from theodolite.claims.tables.sides import Tally, sides
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import chance_of_no_lead
from theodolite.statistics.paired import holm

_RUNS = hierarchy.SEEDS * hierarchy.RATES
_LEARNT = 0.9
_OWN, _RIVALS = "universal-transformer", ("transformer", "lstm")


def _cells(table: str, nets: Sequence[str], tasks: Sequence[str], steps: int) -> Sequence[Cell]:
    request = Request("full", tuple(tasks), tuple(nets), steps=steps)
    return tables[table].plan(request).cells if tasks else ()


def _place(config: Mapping[str, Any]) -> tuple[str, str]:
    return config["task"], config["net"]


def _undecided_tasks(found: Mapping[tuple[str, str], bool | None]) -> list[str]:
    return list(dict.fromkeys(task for (task, _), said in found.items() if said is None))


# G15 — the hierarchy


def hierarchy_cells() -> Sequence[Cell]:
    return _cells("chomsky", hierarchy.NETS, list(tables["chomsky"].experiments()), STEPS[0])


def hierarchy_sides(rows: Sequence[Row], level: float = LEVEL) -> dict[tuple[str, str], bool | None]:
    """For every published figure of one stage."""
    tallies = {}
    for (task, net), own in members(rows, _place).items():
        figures = [s for s in find(hierarchy.SCORES, task, net, hierarchy.SCORE) if s.source == hierarchy.SOURCE]
        if figures:
            reached = sum(score >= SOLVED for score in scores(own, "unseen"))
            learnt = sum(row["status"] == "solved" for row in own)
            tallies[f"{task}|{net}"] = Tally(figures[0].value >= SOLVED, reached, learnt, len(own))
    found = sides(tallies, _RUNS, level)
    return {(task, net): found[f"{task}|{net}"] for task, net in (name.split("|") for name in tallies)}


def further_hierarchy(rows: Sequence[Row]) -> Sequence[Cell]:
    """All networks of every task on which a figure is undecided."""
    return _cells("chomsky", hierarchy.NETS, _undecided_tasks(hierarchy_sides(rows)), STEPS[1])


def decide_hierarchy(rows: Sequence[Row]) -> Verdict:
    said = decided(rows, hierarchy_sides)
    success = {(s.task, s.net): s.value >= SOLVED for s in hierarchy.SCORES if s.source == hierarchy.SOURCE}
    wrong = [f"{net} on {task}" for (task, net), side in said.items() if side is False]
    again = [success[place] for place, side in said.items() if side]
    sure = len(wrong) + len(again)
    listed = f" ({', '.join(wrong)})" if wrong else ""
    return Verdict(
        outcome(not wrong, 2 * sure >= len(said) and any(again) and not all(again)),
        {f"{net} on {task}": "solved" if success[task, net] else "not solved" for task, net in said},
        {
            f"{net} on {task}": {True: "as published", False: "contradicted", None: "open"}[s]
            for (task, net), s in said.items()
        },
        f"Of {len(said)} published figures {sure} were decided: {sum(again)} successes and "
        f"{len(again) - sum(again)} failures seen again, {len(wrong)} contradicted{listed}.",
    )


_UNSEEN = len(chomsky.UNSEEN["full"])
HIERARCHY = Rule(
    f"All figures of the paper's own table, {_RUNS} members for each (10 seeds at 3 rates), trained on lengths 1 to "
    f"{hierarchy.LONGEST}, scored on {_UNSEEN} lengths up to {hierarchy.FARTHEST}; solved is {SOLVED} there. {STAGES} "
    "A published success is seen again if a member solves it. A published failure is contradicted if our share that "
    f"solves is above 0 of {_RUNS} (Fisher, one-sided), seen again if no member solves it and so many learnt the "
    "lengths of training that half of them solving it is excluded (2^−m). A task with a figure undecided goes on, all "
    "its networks. Fails if a failure is contradicted; holds if none is and at least half of the figures were decided, "
    "successes and failures among them.",
    hierarchy_cells,
    decide_hierarchy,
    Statistics(
        f"{_RUNS} members for each published figure",
        f"Holm over all tests of a stage, {100 * LEVEL:g} % a stage",
        STAGES,
    ),
    further_hierarchy,
    failure_stands=True,
)


# G16 — the Universal Transformer


def thinking_cells() -> Sequence[Cell]:
    return _cells("universal-transformer", thinkers.NETS, thinkers.TASKS, STEPS[0])


def thinking_order(rows: Sequence[Row], level: float = LEVEL) -> dict[tuple[str, str], bool | None]:
    """For every task and rival of one stage: whether the Universal Transformer is ahead, as published, or behind."""
    found = members(rows, _place)
    published = {(s.task, s.net): s.value for s in thinkers.SCORES if s.quantity == thinkers.SYMBOLS}
    pairs = [(task, rival) for task in dict.fromkeys(task for task, _ in found) for rival in _RIVALS]
    far = {place: scores(own, "unseen") for place, own in found.items()}
    ahead = [chance_of_no_lead(far[task, _OWN], far[task, rival]) for task, rival in pairs]
    behind = [chance_of_no_lead(far[task, rival], far[task, _OWN]) for task, rival in pairs]
    clear = holm([*ahead, *behind], level)
    said: dict[tuple[str, str], bool | None] = {}
    for place, (task, rival) in enumerate(pairs):
        learnt = max(scores(found[task, _OWN], "accuracy")) >= _LEARNT
        short = published[task, _OWN] >= SOLVED > statistics.fmean(far[task, _OWN])
        lost = clear[len(pairs) + place] and not short
        said[task, rival] = None if not learnt else True if clear[place] else False if lost else None
    return said


def further_thinking(rows: Sequence[Row]) -> Sequence[Cell]:
    return _cells("universal-transformer", thinkers.NETS, _undecided_tasks(thinking_order(rows)), STEPS[1])


def decide_thinking(rows: Sequence[Row]) -> Verdict:
    said = decided(rows, thinking_order)
    means: dict[str, list[float]] = {}
    for stage in stages(rows):
        for (task, net), own in members(stage, _place).items():
            means[f"{net} on {task}"] = [statistics.fmean(scores(own, field)) for field in ("accuracy", "unseen")]
    agree, against = ([pair for pair, order in said.items() if order is side] for side in (True, False))
    return Verdict(
        outcome(not against, len(agree) == len(said)),
        {f"{task}, ahead of {rival}": True for task, rival in said},
        {"order": {f"{task}, {rival}": order for (task, rival), order in said.items()}, "trained, longer": means},
        f"{len(agree)} of {len(said)} pairs in the published order, {len(against)} against it, "
        f"{len(said) - len(agree) - len(against)} open. Means on trained and longer inputs: "
        f"{'; '.join(f'{name} {near:.2f}, {far:.2f}' for name, (near, far) in means.items())}.",
    )


_SEEDS, _RATES = universal_transformer.TRAINING["full"].seeds, len(universal_transformer.TRAINING["full"].rates)
THINKING = Rule(
    f"{_SEEDS * _RATES} members for each network ({_SEEDS} seeds at {_RATES} rates), lengths 1 to {thinkers.LONGEST} "
    f"in training, {thinkers.FARTHEST} in the test. {STAGES} For each of three tasks and two rivals, symbols right: "
    "the Universal Transformer's mean is above the rival's, as published, or below it (Welch, one-sided, twelve "
    "tests). A task says nothing if no member of the Universal Transformer is right on "
    f"{_LEARNT:.0%} of the symbols at the lengths of training; where it is published to be right on {SOLVED:.0%} or "
    "more and is not here, falling behind is no contradiction. A task with a pair undecided goes on, all three "
    "networks. Holds if all six pairs agree, fails if one contradicts.",
    thinking_cells,
    decide_thinking,
    Statistics(
        f"{_SEEDS * _RATES} members for each of three networks on three tasks",
        f"Holm over the twelve tests of a stage, {100 * LEVEL:g} % a stage",
        STAGES,
    ),
    further_thinking,
    failure_stands=True,
)
