"""The contract of a task: its shapes, a vectorised generator of batches, and a solver nobody would use in training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast, dataclass_transform, runtime_checkable

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.notebook import Entries
from theodolite.registry import Registry, unknown


@dataclass(frozen=True)
class TaskSpec:
    """Shapes and scoring. `vocab` is None for real inputs; `lengths` are those of training, None for vectors.

    `chance` is the score of the best constant answer: for a task on sequences the share of scored positions it is
    right at, averaged over the training lengths, all equally likely. `limit` is the largest length the task exists
    for, None where any will do. `variance` is that of real targets, None where a batch tells it.
    """

    kind: Literal["sequence", "vector"]
    features: int
    outputs: int
    vocab: int | None
    lengths: tuple[int, int] | None
    loss: Literal["cross-entropy", "hinge", "square"]
    chance: float
    solved: float
    limit: int | None = None
    variance: float | None = None

    @property
    def score(self) -> Literal["accuracy", "explained variance"]:
        """What `chance` and `solved` are shares of; explained variance is 1 − MSE / variance of the targets."""
        return "explained variance" if self.loss == "square" else "accuracy"


@dataclass(frozen=True)
class Batch:
    """What a net reads, what it should answer, and where the answer counts.

    Sequences: `inputs` (members, batch, token), int64 ids, or (members, batch, token, features), float32. Vectors:
    `inputs` (members, batch, features), float32. `targets` and `mask` (members, batch, token), or (members, batch,
    outputs) for vectors. Targets are int64 class ids for cross-entropy, ±1 for hinge and real numbers for square, both
    float32; `mask` is true where one is scored.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor


@runtime_checkable
class Task(Protocol):
    """A frozen dataclass whose fields, all with defaults, are what `--task-arg` sets; every field changes the data."""

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


class Named:
    """What `register` writes into a task: its name, one line on it, and the version of its data."""

    name: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[int]


@runtime_checkable
class Split(Protocol):
    """A task on data that exist once: `held_out` is the same task on the part that is never trained on."""

    @property
    def held_out(self) -> Task: ...


@runtime_checkable
class AtHand(Protocol):
    """A task on data of certain lengths: no others are drawn or scored."""

    @property
    def lengths_at_hand(self) -> tuple[int, ...]: ...


tasks: Registry[type[Task]] = Registry("task")
readers: Registry[type[Task]] = Registry("task")  # on data that somebody has, where `tasks` draw their own
Kind = TypeVar("Kind", bound=Named)


@dataclass_transform(frozen_default=True)
def register(name: str, summary: str, version: int = 1) -> Callable[[type[Kind]], type[Kind]]:
    """Decorator that makes a task, a frozen dataclass, of a class and registers it."""
    return _registering(tasks, name, summary, version)


@dataclass_transform(frozen_default=True)
def register_reader(name: str, summary: str, version: int = 1) -> Callable[[type[Kind]], type[Kind]]:
    """As `register`, of a task on data that somebody has."""
    return _registering(readers, name, summary, version)


def _registering(
    registry: Registry[type[Task]], name: str, summary: str, version: int
) -> Callable[[type[Kind]], type[Kind]]:
    def add(kind: type[Kind]) -> type[Kind]:
        kind.name, kind.summary, kind.version = name, summary, version
        made = dataclass(frozen=True)(kind)
        registry.add(name, cast("type[Task]", made))
        return made

    return add


def task_kind(name: str) -> type[Task]:
    return readers[name] if name in readers else tasks[name]


def evaluated(task: Task) -> Task:
    """What a network is scored on: the part that is held out, where there is one."""
    return task.held_out if isinstance(task, Split) else task


def lengths_between(task: Task, shortest: int, longest: int) -> Sequence[int]:
    """The lengths that the task has in this range, both ends among them."""
    if isinstance(task, AtHand):
        return [length for length in task.lengths_at_hand if shortest <= length <= longest]
    return range(shortest, longest + 1)


def list_tasks() -> Entries[dict[str, Any]]:
    """Every registered task: name, shapes and scoring at its defaults, fields that can be set, one line.

    Examples:
        >>> [task["name"] for task in list_tasks() if "parity" in task["name"]]
        ['parity', 'parity-check']
    """
    listed = []
    for name, kind in sorted(tasks.items()):
        task = kind()
        listed.append(
            {
                "name": name,
                **{k: v for k, v in asdict(task.spec).items() if k != "variance"},
                "score": task.spec.score,
                "arguments": settings(task),
                "summary": task.summary,
                "version": task.version,
            }
        )
    return Entries("tasks", listed)


def make_task(name: str, arguments: Mapping[str, Any]) -> Task:
    """The registered task with these fields; an unknown field and a value of another type are refused."""
    return with_fields(name, task_kind(name), arguments)


def with_fields(name: str, kind: type[Task], arguments: Mapping[str, Any]) -> Task:
    """A task of this kind; `name` is what messages call it."""
    defaults = {f.name: f.default for f in fields(cast("Any", kind))}
    values = {}
    for argument, value in arguments.items():
        if argument not in defaults:
            raise BadInput(f"for the task '{name}': {unknown('field', argument, defaults)}")
        values[argument] = _typed(name, argument, value, defaults[argument])
    return kind(**values)


def check_length(task: Task, length: int | None) -> int:
    """The length to draw: the longest of training where none is given; 1 for vectors, which have none to give."""
    spec = task.spec
    if spec.lengths is None:
        if length is not None:
            raise BadInput(f"the task '{task.name}' reads vectors, which have no length: leave out the length {length}")
        return 1
    if length is None:
        return spec.lengths[1]
    if length < 1 or (spec.limit is not None and length > spec.limit):
        range_ = "1 or more" if spec.limit is None else f"1 to {spec.limit}"
        raise BadInput(f"the task '{task.name}' has no inputs of length {length}: use {range_}")
    return length


def check_at_least(name: str, least: int, **sizes: int) -> None:
    """Refuse a field of the task that is too small to make one."""
    for field, size in sizes.items():
        if size < least:
            raise BadInput(f"{field}={size} is too small for the task '{name}': use {least} or more")


def settings(task: Task) -> dict[str, Any]:
    """The fields of a task with their values."""
    return {f.name: getattr(task, f.name) for f in fields(cast("Any", task))}


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _typed(task: str, argument: str, value: Any, default: Any) -> Any:
    """The value as the type of the default; whole numbers serve where real ones are asked for."""
    wanted = type(default)
    if wanted is float and type(value) is int and abs(value) <= 2**53:  # those a float holds exactly
        value = float(value)
    if wanted in _KINDS and (type(value) is not wanted or (wanted is float and not math.isfinite(value))):
        raise BadInput(
            f"the field '{argument}' of the task '{task}' is {_KINDS[wanted]} such as {default!r}, not {value!r}"
        )
    return value
