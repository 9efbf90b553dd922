"""Runs cells one after another on this machine and hands every row over the moment it is finished."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from theodolite.errors import BadInput, TheodoliteError
from theodolite.lab.cell import Cell, Row
from theodolite.measurement import Provenance, canonical
from theodolite.measures import measure
from theodolite.nets.contract import nets

logger = logging.getLogger(__name__)


def run(cells: Sequence[Cell], device: str = "cpu", locations: Mapping[str, Any] | None = None) -> Iterator[Row]:
    """A cell that cannot be measured gives a row with the reason; it never stops the others.

    `locations`: by `place`, where a user's net is found that a cell knows only by name and hash.
    """
    for cell in cells:
        logger.info("cell %s %s", cell.measure, dict(cell.config))
        started, found, reason = time.perf_counter(), {}, None
        try:
            found = measure(cell.measure, _found(cell.config, locations or {}), cell.seed, device)
        except TheodoliteError as error:
            reason = str(error)
        provenance = asdict(Provenance.here(cell.seed, device))
        facts = {"seconds": time.perf_counter() - started, "device": device, "provenance": provenance}
        yield Row(cell, found, reason, facts)


def place(config: Mapping[str, Any]) -> str:
    """Which net a cell means: two files of one name are two nets."""
    return canonical([config["net"], config["source"]])


def task_place(config: Mapping[str, Any]) -> str:
    """Which task of a user's file a cell means."""
    return canonical(["task", config["task"], config["task_source"]])


def net_of(config: Mapping[str, Any], locations: Mapping[str, Any]) -> Any:
    """The net a cell means, where the command says it is; what a cell says is run only if it is a registered name."""
    if (key := place(config)) in locations:
        return locations[key]
    if config["source"] is None and config["net"] in nets:
        return config["net"]
    raise BadInput(f"this command does not name the net '{config['net']}' of a cell: start the one that planned it")


def _found(config: Mapping[str, Any], locations: Mapping[str, Any]) -> Mapping[str, Any]:
    """A cell's configuration as its measure takes it: what only names the cell is left out."""
    if "source" not in config:
        return config
    plain = {name: value for name, value in config.items() if name not in ("source", "net_version")}
    return {**plain, "net": net_of(config, locations)}


def describe(cell: Cell) -> str:
    shape = cell.config.get("shape", {})
    sizes = " ".join(f"{name} {value}" for name, value in shape.items()) if isinstance(shape, Mapping) else str(shape)
    return " ".join(part for part in (str(cell.config.get("net", cell.measure)), sizes) if part)
