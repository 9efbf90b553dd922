"""A group: cells that one worker runs together as one batched program."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from theodolite.lab.cell import Cell
from theodolite.measurement import canonical

CHECKPOINT = r"[0-9a-f]{16}-[0-9]+-[0-9a-f]{8}\.safetensors"  # the names that `checkpoint_name` gives


@dataclass(frozen=True)
class Group:
    """As planned and as claimed: same cells in the same order with the same settings, same id."""

    id: str
    cells: tuple[Cell, ...]  # in the order of the plan, all of them, also finished ones
    settings: Mapping[str, Any] = field(default_factory=dict)  # plain JSON: how it is run (device, chunk, …)
    step: int = 0
    checkpoint: str | None = None  # a file name inside the store's folder of checkpoints
    attempts: int = 0  # workers that died on it

    @classmethod
    def of(cls, cells: Sequence[Cell], settings: Mapping[str, Any] | None = None) -> Group:
        """The group of these cells, named by what it is."""
        settings = dict(settings or {})
        text = canonical({"cells": [cell.key for cell in cells], "settings": settings})
        return cls(hashlib.sha256(text.encode()).hexdigest()[:16], tuple(cells), settings)

    def checkpoint_name(self, step: int) -> str:
        """A fresh name each time: a worker left over from a killed command can never write into our file."""
        return f"{self.id}-{step}-{secrets.token_hex(4)}.safetensors"
