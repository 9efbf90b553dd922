"""Sequences of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, Task, TaskSpec, check_length, register_reader
from theodolite.tasks.shared.rows import Part, Rows, digest_of, read_rows


@register_reader("data", "rows of a file of one's own: inputs, targets and where they count")
class Data(Named):
    """Rows of a JSON-lines or CSV file.

    {"inputs": ["a", "b", "b"], "targets": [0, 1, 0], "mask": [1, 1, 1]}
    {"inputs": "abba", "targets": "yes"}                  one answer, asked for at the last symbol
    {"inputs": [0.2, 1.5, -0.3], "targets": 0.74}         numbers: those of a token may be a list

    A tenth of the different inputs of every length is held out. `longest` (0: none) is the greatest length that is
    trained on; longer rows are evaluated alone. `digest` is the file's own: it is filled in, and another is refused.
    """

    file: str = ""
    longest: int = 0
    digest: str = ""

    def __post_init__(self) -> None:
        found = digest_of(self.file)
        if self.digest not in ("", found):
            raise BadInput(f"the file '{self.file}' has changed ({found}, was {self.digest}): bring back the old one")
        object.__setattr__(self, "digest", found)
        if self.longest < 0:
            raise BadInput(f"longest={self.longest} is no length: give 1 or more, or 0 for all")
        read_rows(self.file, self.digest, self.longest)  # a file that cannot be used is refused here

    @property
    def rows(self) -> Rows:
        return read_rows(self.file, self.digest, self.longest)

    @property
    def lengths_at_hand(self) -> tuple[int, ...]:
        return tuple(sorted({*self.rows.trained, *self.rows.held_out}))

    @property
    def spec(self) -> TaskSpec:
        rows = self.rows
        return TaskSpec(
            kind="sequence",
            features=rows.features,
            outputs=rows.answers or 1,
            vocab=rows.vocab,
            lengths=(min(rows.trained), max(rows.trained)),
            loss="square" if rows.answers is None else "cross-entropy",
            chance=rows.chance,
            solved=0.99,
            limit=max(self.lengths_at_hand),
            variance=1.0 if rows.answers is None else None,
        )

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        part = _part(self, check_length(self, length), held_out=False, device=generator.device)
        drawn = torch.randint(len(part), (members, batch), generator=generator, device=generator.device)
        return Batch(part.inputs[drawn], part.targets[drawn], part.mask[drawn])

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return list(self.rows.solved[tuple(torch.tensor(row).flatten().tolist())])

    @property
    def held_out(self) -> Task:
        return _HeldOut(self)


@dataclass(frozen=True)
class _HeldOut:
    """The rows that are held out, in turn: the same for every member of every network."""

    whole: Data
    name: ClassVar[str] = Data.name
    summary: ClassVar[str] = Data.summary
    version: ClassVar[int] = Data.version

    @property
    def spec(self) -> TaskSpec:
        return self.whole.spec

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        part = _part(self.whole, check_length(self, length), held_out=True, device=generator.device)
        taken = (torch.arange(batch, device=generator.device) % len(part)).expand(members, batch)
        return Batch(part.inputs[taken], part.targets[taken], part.mask[taken])

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return self.whole.solve(row)


@lru_cache(maxsize=64)
def _part(task: Data, length: int, held_out: bool, device: torch.device) -> Part:
    """Rows of this length; of the nearest one that there is where a trial asks for another, or where all are unseen."""
    rows = task.rows
    parts = rows.held_out if held_out or length > max(rows.trained) else rows.trained
    return parts[min(parts, key=lambda n: (abs(n - length), n))].to(device)
