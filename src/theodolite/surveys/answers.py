"""What sections share: rows by net, and what is said of nets that could not be measured."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.lab.cell import Row
from theodolite.report import Answer
from theodolite.surveys.section import Setting


def by_net(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.cell.config["net"], []).append(row)
    return found


def failed(net: str, question: str, why: str) -> Answer:
    return Answer(net, question, "failed", why)


def failures(rows: Sequence[Row], setting: Setting) -> list[str]:
    """One note per net and reason."""
    notes = [f"{net}: {why}" for net, why in setting.troubles.items()]
    notes += [f"{row.cell.config.get('net', row.cell.measure)}: {row.error}" for row in rows if row.error]
    return list(dict.fromkeys(notes))
