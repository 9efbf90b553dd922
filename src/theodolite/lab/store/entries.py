"""What the file of a store says of a cell and its row. It may come from anywhere: a cell counts if its key follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from theodolite.errors import StoreError
from theodolite.lab.cell import Cell, Row
from theodolite.lab.store.database import damaged

ROWS = "SELECT number, key, measure, config, result, error, facts FROM rows LEFT JOIN cells USING (key)"
AMONG = "(SELECT value FROM json_each(?))"  # keys and numbers travel as one JSON list: SQLite limits its parameters

Found = tuple[int, str, str | None, str | None, str, str, str]


def rows_of(found: Iterable[Found], path: Path, refuse: Callable[[str], None]) -> list[tuple[int, Row]]:
    """With their numbers; `refuse` is told the key of a row whose cell is not what its key says, which is left out."""
    rows = []
    for number, key, measure, config, result, error, facts in found:
        cell = cell_of(key, measure, config, path)
        if cell is None:
            refuse(key)
        else:
            rows.append((number, Row(cell, decoded(result, path), decoded(error, path), decoded(facts, path))))
    return rows


def cell_of(key: str, measure: str | None, config: str | None, path: Path) -> Cell | None:
    """The cell of a key; None where the file says another beside it."""
    if measure is None or config is None:
        return None
    cell = Cell(measure, decoded(config, path))
    try:
        return cell if cell.key == key else None
    except (TypeError, ValueError):  # no configuration at all
        return None


def decoded(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:  # no JSON, no text, or nested too deep
        raise StoreError(damaged(path)) from error


def listed(values: Iterable[str | int]) -> str:
    return json.dumps(list(values))
