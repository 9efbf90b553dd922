"""What a part of the page answers with: sentences, facts, drawings and tables, one below another."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from theodolite.measurement import finite
from theodolite.report.numbers import format_value
from theodolite.report.table import Table


@dataclass(frozen=True)
class Drawing:
    """An SVG whose letters and lines take the page's colours, with the names and samples of a `legend`. `alone`: it has
    its own colours and is shown as a picture, on a narrow screen as `narrow`, where there is such a one."""

    svg: str
    alt: str
    alone: bool = False
    narrow: str = ""
    legend: Sequence[tuple[str, str]] = ()

    def to_json(self) -> dict[str, Any]:
        if not self.alone:
            return {"svg": self.svg, "alt": self.alt, "legend": [list(entry) for entry in self.legend]}
        return {"src": _address(self.svg), "alt": self.alt} | ({"narrow": _address(self.narrow)} if self.narrow else {})


@dataclass(frozen=True)
class Shown:
    """`says` are sentences, the first the answer; `facts` are (name, text); `data` is what a program may read."""

    says: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "says": list(self.says),
            "facts": [list(fact) for fact in self.facts],
            "drawings": [drawing.to_json() for drawing in self.drawings],
            "tables": [_table(table) for table in self.tables],
            "notes": list(self.notes),
            "data": finite(self.data),
        }


def _address(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "caption": table.caption,
        "columns": [{"label": c.label, "note": c.note, "numeric": c.numeric} for c in table.columns],
        "rows": [[format_value(row.get(column.key)) for column in table.columns] for row in table.rows],
    }
