"""A cell: one thing to measure, named by its configuration alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theodolite.measurement import canonical, seed_of


@dataclass(frozen=True)
class Cell:
    """`measure` names a registered measure; `config` is plain JSON and says everything that changes the result."""

    measure: str
    config: Mapping[str, Any]

    @property
    def key(self) -> str:
        return hashlib.sha256(canonical(self._named()).encode()).hexdigest()

    @property
    def seed(self) -> int:
        return seed_of(self._named())

    def _named(self) -> dict[str, Any]:
        return {"measure": self.measure, "config": dict(self.config)}


@dataclass(frozen=True)
class Row:
    """What a cell gave: plain JSON, or the sentence that says why it could not be measured.

    `result` is what the same cell gives again; `facts` say how it was obtained this time (seconds, device, batching,
    provenance, when it finished), and two rows that differ only there are equal.
    """

    cell: Cell
    result: Mapping[str, Any]
    error: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __getitem__(self, name: str) -> Any:
        return self.result[name]
