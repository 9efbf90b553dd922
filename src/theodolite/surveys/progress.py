"""What a survey says while it runs: from its start, which section is being measured, and how many of it are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from theodolite.lab.campaign import Failure, Listener
from theodolite.lab.group import Group
from theodolite.lab.work import Update
from theodolite.report.numbers import counted


@dataclass
class Progress:
    """`titles`: of the section of every cell, by its key."""

    listener: Listener
    titles: Mapping[str, str]
    _done: set[str] = field(default_factory=set)
    _now: str = ""

    def begin(self, costs: Mapping[str, float], finished: Iterable[str]) -> None:
        """`costs` are seconds on one core by cell, about; `finished` are cells that the store has."""
        self._done = {key for key in finished if key in self.titles}
        kept = f", {len(self._done)} of them measured before" if self._done else ""
        sections = set(self.titles.values())
        many = f"{counted(len(self.titles), 'measurement')} in {counted(len(sections), 'section')}"
        left = sum(cost for key, cost in costs.items() if key not in self._done)
        self.listener.watch(0.0, sum(costs.values()), f"{many}{kept}{', ' + _about(left) if left else ''}")

    def heard(self) -> Listener:
        """What a campaign tells, told on with the section it is about."""
        return replace(self.listener, watch=self._watch, update=self._update, failure=self._failure)

    def _watch(self, done: float, total: float, label: str) -> None:
        if self._now:
            asked = Counter(self.titles.values())[self._now]
            ready = sum(self.titles[key] == self._now for key in self._done)
            label = f"{self._now}, {ready} of {asked}: {label}"
        self.listener.watch(done, total, label)

    def _update(self, group: Group, update: Update) -> None:
        self._now = self.titles.get(group.cells[0].key, self._now)
        self._done |= {row.cell.key for row in update.rows if row.cell.key in self.titles}
        self.listener.update(group, update)

    def _failure(self, failure: Failure) -> None:
        self._done |= {cell.key for cell in failure.cells if cell.key in self.titles}
        self.listener.failure(failure)


def _about(seconds: float) -> str:
    """No finer than it is known before anything was measured here."""
    if seconds < 90:
        return "about a minute on one core"
    minutes = seconds / 60
    return f"about {minutes:.0f} minutes on one core" if minutes < 90 else f"about {minutes / 60:.0f} hours on one core"
