"""Runs cells one after another on this machine and hands every row over the moment it is finished."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from theodolite.errors import TheodoliteError
from theodolite.instruments.measures import measures
from theodolite.lab.cell import Cell, Row

logger = logging.getLogger(__name__)

Watch = Callable[[int, int, str], None]  # cells finished, cells in all, what is measured now


def run(cells: Sequence[Cell], device: str = "cpu", watch: Watch | None = None) -> Iterator[Row]:
    """A cell that cannot be measured gives a row with the reason; it never stops the others."""
    for number, cell in enumerate(cells):
        if watch:
            watch(number, len(cells), describe(cell))
        logger.info("cell %s %s", cell.measure, dict(cell.config))
        try:
            yield Row(cell, measures[cell.measure](cell.config, cell.seed, device))
        except TheodoliteError as error:
            yield Row(cell, {}, error=str(error))
    if watch:
        watch(len(cells), len(cells), "done")


def describe(cell: Cell) -> str:
    shape = cell.config.get("shape", {})
    sizes = " ".join(f"{name} {value}" for name, value in shape.items())
    return " ".join(part for part in (str(cell.config.get("net", cell.measure)), sizes) if part)
