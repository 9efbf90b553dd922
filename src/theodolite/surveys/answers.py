"""What sections share: abilities that all nets are asked about, rows by net, and what could not be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.lab.cell import Row
from theodolite.report import Answer, Standing
from theodolite.surveys.section import Setting

_MOST = 3  # names in one list


@dataclass(frozen=True)
class Ability:
    """`name` is the field's, `question` is put to every net in the same words, `explains` is one line on what it is."""

    name: str
    question: str
    explains: str

    def answer(self, net: str, standing: Standing, text: str, **rest: Any) -> Answer:
        return Answer(net, self.question, standing, text, ability=self.name, explains=self.explains, **rest)

    def failed(self, net: str, why: str) -> Answer:
        return self.answer(net, "failed", why)

    def failures(self, rows: Sequence[Row], setting: Setting) -> list[Answer]:
        """Of every net that nothing could be planned for, and of every row that broke."""
        found = [self.failed(net, why) for net, why in setting.troubles.items()]
        return found + [self.failed(row.cell.config["net"], row.error) for row in rows if row.error]


def by_net(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.cell.config["net"], []).append(row)
    return found


def failures(rows: Sequence[Row], setting: Setting) -> list[str]:
    """One note per net and reason."""
    notes = [f"{net}: {why}" for net, why in setting.troubles.items()]
    notes += [f"{row.cell.config.get('net', row.cell.measure)}: {row.error}" for row in rows if row.error]
    return list(dict.fromkeys(notes))


def spelt(setting: Mapping[str, Any]) -> str:
    """What a number was measured with, in words: two numbers are compared where these are the same."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def spoken(items: Sequence[str]) -> str:
    """As a sentence has them: `a, b and c`."""
    shown = [*items[:_MOST], *([f"{len(items) - _MOST} more"] if len(items) > _MOST else [])]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
