"""The lengths beyond training that a command asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from theodolite.errors import BadInput
from theodolite.tasks.contract import AtHand, Task

_UNSEEN = 16  # lengths beyond training that are evaluated unless others are asked for
_BEYOND = 5  # up to this many times the longest of training
_LONGEST = 100_000  # of all lengths that can be asked for


def unseen_lengths(task: Task, asked: str | Sequence[int] | None) -> tuple[int, ...]:
    """Lengths beyond training: `41-500`, `41-500/20` (every 20th), `50,100` or `none`.

    Unless asked for, 16 of them, up to five times the longest of training.
    """
    spec = task.spec
    if spec.lengths is None:
        return ()
    _, longest = spec.lengths
    if asked is None and isinstance(task, AtHand):
        beyond = [n for n in task.lengths_at_hand if n > longest]
        places = range(_UNSEEN) if len(beyond) > _UNSEEN else range(len(beyond))
        return tuple(sorted({beyond[round(i * (len(beyond) - 1) / max(1, len(places) - 1))] for i in places}))
    if asked is None:
        most = min(_BEYOND * longest, spec.limit or _BEYOND * longest)
        if most <= longest:
            return ()
        step = (most - longest) / _UNSEEN
        return tuple(sorted({longest + max(1, round(step * (i + 1))) for i in range(_UNSEEN)} & {*range(most + 1)}))
    lengths = tuple(sorted(set(_lengths(asked))))
    wrong = [n for n in lengths if n <= longest]
    if wrong:
        raise BadInput(f"length {wrong[0]} of '{task.name}' is one of training (to {longest}): give longer ones")
    if isinstance(task, AtHand) and (missing := sorted(set(lengths) - set(task.lengths_at_hand))):
        raise BadInput(
            f"'{task.name}' has no rows of length {missing[0]}: choose among {_listed(task.lengths_at_hand)}"
        )
    if spec.limit is not None and lengths and lengths[-1] > spec.limit:
        raise BadInput(f"'{task.name}' has no length {lengths[-1]}: it ends at {spec.limit}")
    return lengths


def _listed(lengths: Sequence[int]) -> str:
    shown = [str(n) for n in lengths]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:6], "…", *shown[-3:]])


def _lengths(asked: str | Sequence[int]) -> list[int]:
    if not isinstance(asked, str):
        return [int(n) for n in asked]
    if asked.strip() == "none":
        return []
    lengths: list[int] = []
    for part in asked.split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+)(?:/(\d+))?)?\s*", part)
        if found is None or int(found[3] or 1) < 1:
            raise BadInput(f"'{part}' is not a length or a range of lengths: write 41-500, 41-500/20 or 50,100")
        first, last = int(found[1]), int(found[2] or found[1])
        if last > _LONGEST:
            raise BadInput(f"length {last} is too long: give lengths up to {_LONGEST}")
        lengths += range(first, last + 1, int(found[3] or 1))
    if not lengths:
        raise BadInput(f"'{asked}' holds no length: write 41-500, 41-500/20, 50,100 or none")
    return lengths
