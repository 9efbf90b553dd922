"""The contract of a task: its shapes, a vectorised generator of batches, and a solver nobody would use in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from theodolite.registry import Registry


@dataclass(frozen=True)
class TaskSpec:
    """Shapes and scoring. `vocab` is None for real inputs; `lengths` are those of training, None for vectors."""

    kind: Literal["sequence", "vector"]
    features: int
    outputs: int
    vocab: int | None
    lengths: tuple[int, int] | None
    loss: Literal["cross-entropy", "hinge", "square"]
    chance: float
    solved: float


@dataclass(frozen=True)
class Batch:
    """`inputs` (members, batch, …), `targets` of the same leading shape, `mask` true where a target is scored."""

    inputs: Tensor
    targets: Tensor
    mask: Tensor


@runtime_checkable
class Task(Protocol):
    """A frozen dataclass whose fields are what `--task-arg` sets; every field changes the data."""

    name: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[int]

    @property
    def spec(self) -> TaskSpec: ...

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        """Fresh data on the generator's device. `length` is None for vectors."""
        ...

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        """The targets of one input, by plain Python and another way than `sample`."""
        ...


tasks: Registry[type[Task]] = Registry("task")


def list_tasks() -> list[dict[str, Any]]:
    """Every registered task: name, shapes and scoring at its defaults, fields that can be set, one line."""
    return [
        {
            "name": name,
            **asdict(task().spec),
            "arguments": {f.name: f.default for f in fields(cast("Any", task))},
            "summary": task.summary,
            "version": task.version,
        }
        for name, task in tasks.items()
    ]
