"""Recall: the tasks of MAD at one difficulty, and multi-query recall over widths and numbers of pairs.

A MAD score is a mean over many difficulties and ours is one of them, so the two are of one kind and not of one
setting. In "Zoology" pairs and queries are spread over a longer input with other tokens between; ours follow each
other. Widths, layers (2 for attention) and pairs are those of its figure 2; its vocabulary of 8,192 is 128 here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.tables import recall_published as paper
from theodolite.claims.tables.contract import tables
from theodolite.claims.tables.experiment import Preset
from theodolite.claims.tables.published_score import Score, find
from theodolite.claims.tables.trained import Entry, TrainedTable, Training, falls_short, statement

GRID = "pairs"  # the experiment over widths and numbers of pairs
NETS = ("transformer", "linear-transformer", "delta-net", "state-space", "lstm")
SOLVED = 0.99

TRAINING: dict[Preset, Training] = {
    "quick": Training(steps=500, batch=64, seeds=2, rates=(1e-2, 3e-3), rows=128),
    "full": Training(
        steps=5_000, batch=64, seeds=2, rates=paper.RATES, decays=paper.DECAYS, rows=256, grows=True, precision="tf32"
    ),
}
WIDTHS: dict[Preset, tuple[int, ...]] = {"quick": (16, 32), "full": (64, 128, 256, 512)}
PAIRS: dict[Preset, tuple[int, ...]] = {"quick": (2, 4), "full": (4, 8, 16, 64)}
SYMBOLS: dict[Preset, int] = {"quick": 4, "full": 64}  # keys, and as many values
WIDTH: dict[Preset, int] = {"quick": 32, "full": paper.WIDTH}
LENGTH: dict[Preset, int] = {"quick": 4, "full": 16}
TASK_ARGS: dict[Preset, dict[str, dict[str, Any]]] = {
    preset: {
        "recall": {"keys": SYMBOLS[preset], "values": SYMBOLS[preset]},
        "noisy-recall": {"keys": SYMBOLS[preset], "values": SYMBOLS[preset]},
        "fuzzy-recall": {},
        "selective-copy": {},
        "compression": {},
    }
    for preset in SYMBOLS
}


def entries(preset: Preset) -> list[Entry]:
    tasks = [
        Entry(
            experiment=task,
            section="MAD",
            row=task,
            net=net,
            task=task,
            task_args={"longest": LENGTH[preset], **TASK_ARGS[preset][task]},
            shape={"width": WIDTH[preset]},
        )
        for task in paper.TASKS
        for net in NETS
    ]
    grid = [
        Entry(
            experiment=GRID,
            section="multi-query recall",
            row=f"{pairs} pairs, width {width}",
            net=net,
            task="recall",
            task_args={**TASK_ARGS[preset]["recall"], "shortest": pairs, "longest": pairs},
            shape={"width": width},
        )
        for pairs in PAIRS[preset]
        for width in WIDTHS[preset]
        for net in NETS
    ]
    return tasks + grid


def published(entry: Entry, quantity: str) -> tuple[Score, ...]:
    """Scores of MAD; over widths and numbers of pairs there are sentences only."""
    return () if entry.experiment == GRID else find(paper.SCORES, entry.task, entry.net, quantity)


def shorter(entry: Entry, training: Training, _members: int) -> str | None:
    if entry.experiment == GRID:
        symbols = entry.task_args["keys"] + entry.task_args["values"]
        return falls_short([("steps", training.steps, paper.GRID_STEPS), ("symbols", symbols, paper.GRID_SYMBOLS)])
    width = falls_short([("width", entry.shape["width"], paper.WIDTH)])
    return f"one difficulty (a mean over many){', ' if width else ''}{width or ''}"


def statements(results: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The sentences on width and number of pairs, net by net."""
    found = []
    for said in paper.STATEMENTS:
        for net in said.nets:
            own = [r for r in results if r["experiment"] == GRID and r["net"] == net and r["error"] is None]
            needed = _needed_widths(own)
            if len(needed) < 2:
                continue
            least = min(r["settings"]["shape"]["width"] for r in own)
            verdict, rule = _grows(needed, least) if said.growing else _recalls(needed, least, said.pairs)
            detail = f"{net} needs " + ", ".join(
                f"width {width} for {pairs} pairs" if width else f"more than is tried for {pairs} pairs"
                for pairs, width in needed.items()
            )
            found.append(statement(f"{net}: {said.text}", said.source, rule, verdict, detail))
    return found


def _needed_widths(results: Sequence[Mapping[str, Any]]) -> dict[int, int | None]:
    """By number of pairs, the least width whose best member recalls; None where none does. Left out are numbers of
    pairs of which a narrower network was not trained, though it was with other pairs."""
    best: dict[int, dict[int, bool]] = {}
    for result in results:
        width, reached = result["settings"]["shape"]["width"], [q["best"] for q in result["quantities"]]
        solved = bool(reached) and reached[0] is not None and reached[0] >= SOLVED
        best.setdefault(result["task_args"]["longest"], {})[width] = solved
    widths = sorted({width for own in best.values() for width in own})
    needed: dict[int, int | None] = {}
    for pairs, own in sorted(best.items()):
        least = next((width for width in widths if own.get(width)), None)
        if all(width in own for width in widths if least is None or width < least):
            needed[pairs] = least
    return needed


def _grows(needed: Mapping[int, int | None], least: int) -> tuple[bool | None, str]:
    rule = (
        f"needed width: the least whose best member is right in {SOLVED:.0%} of the answers; holds if it never falls "
        "with the number of pairs and rises, fails if it stays the same above the least width tried, open otherwise"
    )
    widths = [width if width is not None else float("inf") for width in needed.values()]
    if set(widths) in ({float("inf")}, {float(least)}):  # what is needed lies beyond what was tried
        return None, rule
    if len(set(widths)) == 1:
        return False, rule
    return True if widths == sorted(widths) else None, rule


def _recalls(needed: Mapping[int, int | None], least: int, most: int) -> tuple[bool | None, str]:
    rule = (
        f"needed width: the least whose best member is right in {SOLVED:.0%} of the answers; holds if the least width "
        f"tried serves every number of pairs, {most} among them, open otherwise, since training is shorter"
    )
    return True if max(needed) >= most and set(needed.values()) == {least} else None, rule


TABLE = TrainedTable(
    title="Recall, by architecture",
    source=f"{paper.MAD}, {paper.ZOOLOGY}",
    quantities={paper.ACCURACY: "accuracy"},
    bar=SOLVED,
    training=TRAINING,
    entries=entries,
    published=published,
    shorter=shorter,
)

tables.add("recall", TABLE.as_published([*paper.TASKS, GRID], NETS, statements, quick=("recall", GRID)))
