"""A task of one's own, `file.py:Name`: a class with a `spec` and a `sample`, checked before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from theodolite.errors import BadInput, TheodoliteError
from theodolite.nets.from_file import is_file, named_in_file
from theodolite.tasks.contract import Batch, Task, TaskSpec, lengths_between, make_task, task_kind, with_fields

_MEMBERS, _ROWS = 2, 16  # of the batches that are looked at
_LENGTHS, _MANY, _OFF = 8, 256, 0.1  # lengths, rows of each and the error that is let pass in a chance level


@dataclass(frozen=True)
class NamedTask:
    """A task, and where it is found if it is a user's: `code` is that of its file and all that it imports."""

    task: Task
    code: str | None = None
    location: str | None = None


def task_of(name: str, arguments: Mapping[str, Any]) -> NamedTask:
    """The registered task, or the one in a file, with these fields."""
    if not is_file(name):
        return NamedTask(make_task(name, arguments))
    path, _, inside = name.rpartition(":")
    named = named_in_file(name)
    task = with_fields(named.name, _kind(named.found, named.name), arguments)
    check_task(task)
    return NamedTask(task, named.code, f"{Path(path).resolve()}:{inside}")


def check_name(name: str) -> None:
    """Refuse a task that nobody knows; one of a file is looked at when it is made."""
    if not is_file(name):
        task_kind(name)


def _kind(found: Any, name: str) -> type[Task]:
    """The user's class as a frozen dataclass, whose batches are read as a task's are."""
    if not isinstance(found, type):
        raise BadInput(f"'{name}' is a {type(found).__name__}: name a class with a spec and a sample")
    missing = [part for part in ("spec", "sample") if not hasattr(found, part)]
    if missing:
        raise BadInput(f"the task '{name}' has no '{missing[0]}': see 'theodolite new task' for one that has")
    base = found if is_dataclass(found) else dataclass(frozen=True)(found)
    summary = (found.__doc__ or name).strip().splitlines()[0]
    facts = {"name": name, "summary": summary, "version": getattr(found, "version", 1), "spec": property(_spec)}
    own = type(found.__name__, (base,), {**facts, "sample": _sample, "__module__": found.__module__, "_own": found})
    return cast("type[Task]", own)


def _spec(self: Any) -> TaskSpec:
    """What the class states, as a TaskSpec or as a mapping of its fields."""
    try:
        stated = self._own.spec
        if isinstance(stated, property) and stated.fget is not None:
            stated = stated.fget(self)
        elif callable(stated):
            stated = stated(self)
        if isinstance(stated, TaskSpec):
            return stated
        if not isinstance(stated, Mapping):
            raise BadInput(f"the spec of '{self.name}' is a {type(stated).__name__}: return a TaskSpec or a dict")
        fields = {"kind": "sequence", "loss": "cross-entropy", "solved": 0.99, "lengths": None, "vocab": None, **stated}
        return TaskSpec(**{"features": fields["vocab"], **fields})
    except TheodoliteError:
        raise
    except Exception as error:
        if "'chance'" in str(error):
            raise BadInput(
                f"the task '{self.name}' has no chance level: state the best constant answer's score"
            ) from error
        raise BadInput(f"the spec of '{self.name}' cannot be had: {type(error).__name__}: {error}") from error


def _sample(self: Any, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
    found = self._own.sample(self, members, batch, length, generator)
    if isinstance(found, Batch):
        return found
    if not isinstance(found, tuple) or len(found) not in (2, 3):
        raise BadInput(f"'{self.name}' drew a {type(found).__name__}: return inputs, targets and, if any, a mask")
    parts = [_tensor(self.name, part, word) for part, word in zip(found, ("inputs", "targets", "mask"), strict=False)]
    inputs, targets = parts[0], parts[1]
    mask = parts[2].bool() if len(parts) == 3 else torch.ones_like(targets, dtype=torch.bool)
    return Batch(inputs, targets, mask)


def _tensor(name: str, part: Any, word: str) -> Tensor:
    if isinstance(part, Tensor):
        return part
    try:
        return torch.as_tensor(part)
    except (TypeError, ValueError):
        raise BadInput(
            f"the {word} that '{name}' drew are no tensor, or rows of two lengths: draw one length a batch"
        ) from None


def check_task(task: Task) -> None:
    """Refuse a task whose spec and batches do not fit each other."""
    spec = task.spec
    if not isinstance(spec.chance, int | float) or not math.isfinite(spec.chance) or not 0 <= spec.chance <= 1:
        raise BadInput(f"the task '{task.name}' states the chance level {spec.chance!r}: state a share, 0 to 1")
    if spec.kind == "sequence" and (spec.lengths is None or not 1 <= spec.lengths[0] <= spec.lengths[1]):
        raise BadInput(f"the task '{task.name}' has the lengths {spec.lengths}: state (shortest, longest) of training")
    for length in {None} if spec.lengths is None else set(spec.lengths):
        _check_batch(task, length)
    if spec.score == "accuracy":
        _check_chance(task)


def _check_chance(task: Task) -> None:
    """What the best constant answer gets, averaged over a few lengths, is the chance level or near it."""
    spec = task.spec
    lengths = [None] if spec.lengths is None else lengths_between(task, *spec.lengths)
    shares = []
    for length in lengths[:: max(1, len(lengths) // _LENGTHS)]:
        batch = task.sample(1, _MANY, length, torch.Generator().manual_seed(1))
        answers = batch.targets[batch.mask]
        kinds = range(spec.outputs) if spec.loss == "cross-entropy" else (-1, 1)
        shares.append(torch.stack([(answers == kind).double().mean() for kind in kinds]))
    best = float(torch.stack(shares).mean(dim=0).max())
    if abs(best - spec.chance) > _OFF:
        raise BadInput(
            f"the task '{task.name}' states the chance level {spec.chance:.3g}, and the best constant answer gets "
            f"{best:.3g} of its batches right: state that"
        )


def _check_batch(task: Task, length: int | None) -> None:
    spec, at = task.spec, "" if length is None else f" at length {length}"
    try:
        batch = task.sample(_MEMBERS, _ROWS, length, torch.Generator().manual_seed(0))
    except TheodoliteError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise BadInput(f"the task '{task.name}' cannot be drawn{at}: {type(error).__name__}: {said}") from error
    inputs, targets, mask = batch.inputs, batch.targets, batch.mask
    numbers = (spec.features,) if spec.kind == "sequence" and spec.vocab is None else ()
    if inputs.dim() != 3 + len(numbers) or inputs.shape[:2] != (_MEMBERS, _ROWS) or inputs.shape[3:] != numbers:
        asked = (
            f"({_MEMBERS}, {_ROWS}, tokens, {spec.features})"
            if numbers
            else f"({_MEMBERS}, {_ROWS}, tokens or features)"
        )
        raise BadInput(f"'{task.name}' drew inputs of shape {tuple(inputs.shape)}{at}, and {asked} is needed")
    wanted = inputs.shape[:3] if spec.kind == "sequence" else (*inputs.shape[:2], spec.outputs)
    for word, part in (("targets", targets), ("a mask", mask)):
        if tuple(part.shape) != tuple(wanted):
            raise BadInput(f"'{task.name}' drew {word} of shape {tuple(part.shape)}{at}, and {tuple(wanted)} is needed")
    if not bool(mask.any()):
        raise BadInput(f"'{task.name}' asks for nothing{at}: its mask is false everywhere")
    if spec.vocab is not None:
        _check_range(task.name, "an input", inputs, spec.vocab, at)
    if spec.loss == "cross-entropy":
        _check_range(task.name, "a target", targets[mask], spec.outputs, at)


def _check_range(name: str, word: str, ids: Tensor, size: int, at: str) -> None:
    if ids.is_floating_point():
        raise BadInput(f"'{name}' drew {word} that is no whole number{at}: draw ids below {size}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= size:
        raise BadInput(f"'{name}' drew {word} {low if low < 0 else high}{at}, outside its range of 0 to {size - 1}")
