"""`reproduce`: published tables measured again, every published figure beside the measured one."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from theodolite.errors import BadInput
from theodolite.instruments.device import resolve_device
from theodolite.instruments.failures import Part
from theodolite.instruments.failures import experiments as failures
from theodolite.instruments.failures.contract import Preset
from theodolite.instruments.failures.remedies import balance
from theodolite.lab.campaign import Listener, Watch, run_campaign
from theodolite.lab.cell import Cell, Row
from theodolite.lab.engines import make_engine
from theodolite.lab.files import refuse_foreign
from theodolite.lab.store import Store
from theodolite.lab.work import Context
from theodolite.registry import Registry, unknown
from theodolite.theory import failures as published_failures


@dataclass(frozen=True)
class Block:
    """One part of an experiment of a table: what is run, and under which title it is shown."""

    experiment: str
    title: str
    section: str
    part: Part


@dataclass(frozen=True)
class PublishedTable:
    """`blocks` by preset; `figure` looks a published number up by experiment, setting and quantity."""

    title: str
    source: str
    experiments: Callable[[], Sequence[str]]
    blocks: Callable[[str, Preset], Sequence[Block]]
    figure: Callable[[str, str, str], published_failures.Figure | None]


tables: Registry[PublishedTable] = Registry("table")


def reproduce(
    table: str = "failures",
    preset: Preset = "quick",
    experiments: Sequence[str] | None = None,
    seeds: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    watch: Watch | None = None,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
) -> list[dict[str, Any]]:
    """Run the experiments of a table, all unless some are named, and put published figures beside the measured ones.

    `seeds` networks a part instead of the preset's number. `out` is the folder of a store: what is in it is not run
    again, so a run that was stopped goes on. `workers` processes side by side; without, everything runs here.
    """
    chosen = tables[table]
    if preset not in get_args(Preset):
        raise BadInput(f"preset '{preset}' is unknown: use {' or '.join(get_args(Preset))}")
    if seeds is not None and seeds < 1:
        raise BadInput(f"seeds = {seeds} trains nothing: give at least 1")
    known = list(chosen.experiments())
    for name in experiments or ():
        if name not in known:
            raise BadInput(unknown("experiment", name, known))
    resolve_device(device)
    if out is not None:
        refuse_foreign(out)
    blocks = [block for name in experiments or known for block in chosen.blocks(name, preset)]
    cells = [_cell(block, seeds, seed) for block in blocks]
    with ExitStack() as stack:
        folder = Path(out) if out is not None else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(Store(folder))
        outcome = run_campaign(
            cells,
            store,
            make_engine("local", workers, 1, {}),
            Context(checkpoints=store.checkpoints.resolve()),
            {"device": device},
            None if watch is None else Listener(watch=watch),
            weigh=_weight,
        )
    return [_shown(chosen, block, row) for block, row in zip(blocks, outcome.of(cells), strict=True)]


def remedies(results: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each failure beside its remedy and the remedy's cost, from what `reproduce` gave."""
    return balance([r["result"] for r in results if r["error"] is None])


def _cell(block: Block, seeds: int | None, seed: int) -> Cell:
    settings = block.part.settings if seeds is None else replace(block.part.settings, seeds=seeds)
    return Cell(block.part.measure, {**asdict(settings), "draw": seed})


def _weight(cell: Cell) -> float:
    """Roughly what share of the work a cell is, for the progress bar."""
    c = cell.config
    size = {"failure-parity": c.get("bits", 1) ** 1.5 / 30, "failure-stocks": c.get("stocks", 1) / 100}
    own = size.get(cell.measure, 20.0 * c.get("images", 1) if cell.measure == "failure-tuples" else 2.0)
    return c["seeds"] * (c.get("steps") or c.get("examples", 1_000) / 10) * own


def _shown(table: PublishedTable, block: Block, row: Row) -> dict[str, Any]:
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
            _compared(quantity, values, table.figure(block.experiment, setting, quantity))
            for quantity, values in row["quantities"].items()
        ],
        "shorter": row["shorter"],
        "seconds": round(row.facts.get("seconds", 0.0), 2),
        "device": row.facts.get("device"),
        "error": None,
        "result": dict(row.result),
    }


def _compared(
    quantity: str, values: Sequence[float | None], figure: published_failures.Figure | None
) -> dict[str, Any]:
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


def _failure_blocks(name: str, preset: Preset) -> list[Block]:
    experiment = failures[name]
    return [Block(name, experiment.title, experiment.section, part) for part in experiment.presets[preset]]


tables.add(
    "failures",
    PublishedTable(
        "Failures of gradient-based deep learning",
        published_failures.SOURCE,
        lambda: ["parity", "tuples", "stocks", "curves", "activations", "remedies"],
        _failure_blocks,
        published_failures.figure,
    ),
)
