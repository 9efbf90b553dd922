"""Runs cells one after another on this machine and hands every row over the moment it is finished."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from theodolite.errors import TheodoliteError
from theodolite.lab.cell import Cell, Row
from theodolite.measurement import canonical
from theodolite.measures import measure

logger = logging.getLogger(__name__)

Watch = Callable[[int, int, str], None]  # cells finished, cells in all, what is measured now


def run(
    cells: Sequence[Cell],
    device: str = "cpu",
    watch: Watch | None = None,
    locations: Mapping[str, Any] | None = None,
) -> Iterator[Row]:
    """A cell that cannot be measured gives a row with the reason; it never stops the others.

    `locations`: by `place`, where a user's net is found that a cell knows only by name and hash.
    """
    for number, cell in enumerate(cells):
        if watch:
            watch(number, len(cells), describe(cell))
        logger.info("cell %s %s", cell.measure, dict(cell.config))
        try:
            started = time.perf_counter()
            found = measure(cell.measure, _found(cell.config, locations or {}), cell.seed, device)
            yield Row(cell, found, facts={"seconds": time.perf_counter() - started, "device": device})
        except TheodoliteError as error:
            yield Row(cell, {}, error=str(error))
    if watch:
        watch(len(cells), len(cells), "done")


def place(config: Mapping[str, Any]) -> str:
    """Which net a cell means: two files of one name are two nets."""
    return canonical([config["net"], config["source"]])


def _found(config: Mapping[str, Any], locations: Mapping[str, Any]) -> Mapping[str, Any]:
    """A cell's configuration as its measure takes it: what only names the cell is left out."""
    if "source" not in config:
        return config
    plain = {name: value for name, value in config.items() if name not in ("source", "net_version")}
    return {**plain, "net": locations.get(place(config), config["net"])}


def describe(cell: Cell) -> str:
    shape = cell.config.get("shape", {})
    sizes = " ".join(f"{name} {value}" for name, value in shape.items())
    return " ".join(part for part in (str(cell.config.get("net", cell.measure)), sizes) if part)
