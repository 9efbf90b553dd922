"""The failures of gradient-based deep learning: one measure per experiment, its seeds inside."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from theodolite.claims.expressivity.failures.remedies import balance
from theodolite.claims.tables import failures_published as published
from theodolite.claims.tables.contract import Plan, PublishedTable, Request, Result, tables
from theodolite.claims.tables.experiment import Part, experiments
from theodolite.lab.cell import Cell, Row


@dataclass(frozen=True)
class Block:
    """One part of an experiment: what is run, and under which title it is shown."""

    experiment: str
    title: str
    section: str
    part: Part


def plan(request: Request) -> Plan:
    blocks = [
        Block(name, experiments[name].title, experiments[name].section, part)
        for name in request.experiments
        for part in experiments[name].presets[request.preset]
    ]
    cells = tuple(_cell(block, request.seeds, request.seed) for block in blocks)
    return Plan(
        cells,
        lambda outcome: [_shown(block, row) for block, row in zip(blocks, outcome.of(cells), strict=True)],
        weigh=_weight,
    )


def remedies(results: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each failure beside its remedy and the remedy's cost, from what `reproduce` gave."""
    return balance([r["result"] for r in results if r.get("result") is not None])


def _cell(block: Block, seeds: int | None, seed: int) -> Cell:
    settings = block.part.settings if seeds is None else replace(block.part.settings, seeds=seeds)
    return Cell(block.part.measure, {**asdict(settings), "draw": seed})


def _weight(cell: Cell) -> float:
    """Roughly what share of the work a cell is, for the progress bar."""
    c = cell.config
    size = {"failure-parity": c.get("bits", 1) ** 1.5 / 30, "failure-stocks": c.get("stocks", 1) / 100}
    own = size.get(cell.measure, 20.0 * c.get("images", 1) if cell.measure == "failure-tuples" else 2.0)
    return c["seeds"] * (c.get("steps") or c.get("examples", 1_000) / 10) * own


def _shown(block: Block, row: Row) -> Result:
    settings = {name: value for name, value in row.cell.config.items() if name != "draw"}
    about = {"experiment": block.experiment, "title": block.title, "section": block.section, "settings": settings}
    if row.error is not None:
        return {**about, "setting": None, "rows": [], "shorter": None, "error": row.error, "result": None}
    setting = row["setting"]
    return {
        **about,
        "setting": setting,
        "seeds": settings["seeds"],
        "rows": [
            compared(quantity, values, published.figure(block.experiment, setting, quantity))
            for quantity, values in row["quantities"].items()
        ],
        "shorter": row["shorter"],
        "seconds": round(row.facts.get("seconds", 0.0), 2),
        "device": row.facts.get("device"),
        "error": None,
        "result": dict(row.result),
    }


def compared(quantity: str, values: Sequence[float | None], figure: published.Figure | None) -> dict[str, Any]:
    """The median over the seeds beside the published figure; a seed that never got there counts as late."""
    known = [v for v in values if v is not None]
    middle = statistics.median(math.inf if v is None else v for v in values)
    return {
        "quantity": quantity,
        "published": None if figure is None else figure.value,
        "published_to": None if figure is None else figure.upper,
        "about": figure is not None and figure.about,
        "origin": None if figure is None else figure.origin,
        "measured": None if math.isinf(middle) else middle,
        "lowest": min(known, default=None),
        "highest": max(known, default=None),
        "reached": len(known),
        "seeds": len(values),
    }


tables.add(
    "failures",
    PublishedTable(
        "Failures of gradient-based deep learning",
        published.SOURCE,
        lambda: ["parity", "tuples", "stocks", "curves", "activations", "remedies"],
        plan,
    ),
)
