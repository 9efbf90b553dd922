"""What every section says of nets it could not measure."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.lab.cell import Row
from theodolite.survey.section import Answer, Setting


def failed(net: str, question: str, why: str) -> Answer:
    return Answer(net, question, "failed", why)


def failures(rows: Sequence[Row], setting: Setting) -> list[str]:
    """One note per net and reason."""
    told = [f"{net}: {why}" for net, why in setting.troubles.items()]
    told += [f"{row.cell.config.get('net', row.cell.measure)}: {row.error}" for row in rows if row.error]
    return list(dict.fromkeys(told))
