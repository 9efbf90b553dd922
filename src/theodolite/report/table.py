"""A table to draw: columns that say what they hold, and rows of plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Column:
    """`key` picks the value from a table's row; `note` explains the column to someone who never read the papers. A
    `label` may say where a long word breaks, `para- meters`."""

    key: str
    label: str
    note: str = ""
    numeric: bool = True
    kind: Literal["value", "agreement"] = "value"  # agreement: True agrees, False differs, None no prediction


def joined(label: str, by: str = "") -> str:
    """The label with its broken words whole, or broken `by` another sign."""
    return re.sub(r"(?<=\w)- (?=\w)", by, label)


@dataclass(frozen=True)
class Table:
    """`rows` map column keys to plain values; None is shown as a dash."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    caption: str = ""
    command: str = ""
