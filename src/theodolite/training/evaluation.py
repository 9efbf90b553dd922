"""Scores by length: many lengths share a call, padded on the right to the longest of their bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.tasks.contract import Batch, Task, evaluated
from theodolite.training.program import Program
from theodolite.training.scoring import finite_members, losses, row_scores

_STRETCH = 1.25  # longest over shortest in a bucket
# What one call may hold. A net that goes token by token pays for every token, however many rows there are; the others
# gain nothing from more rows than a CPU's cache holds. A CUDA device is filled, attention maps included.
_POSITIONS = {"cpu": 1 << 18, "cuda": 1 << 23}  # row·token
_CELLS = {"cpu": 1 << 21, "cuda": 1 << 28}  # row·token·(token + 64)


@dataclass(frozen=True)
class Evaluation:
    """Per member: `scores` and `exact`, the share of rows with no position wrong (both member, length), the mean
    `loss`, and whether all its outputs were `finite`."""

    lengths: tuple[int | None, ...]
    scores: Tensor
    exact: Tensor
    loss: Tensor
    finite: Tensor

    @property
    def mean(self) -> Tensor:
        return self.scores.mean(dim=1)


def evaluate(program: Program, lengths: Sequence[int | None], rows: int, generator: torch.Generator) -> Evaluation:
    """`rows` rows at every length for every member: fresh ones, or of what is held out."""
    task, members = evaluated(program.members.pairing.task), len(program.members)
    scores, exact = (torch.zeros(members, len(lengths), device=program.device) for _ in range(2))
    loss = torch.zeros(members, device=program.device)
    finite = torch.ones(members, dtype=torch.bool, device=program.device)
    for bucket in _buckets(program, lengths, rows):
        batch, present = _draw(task, [lengths[i] for i in bucket], rows, members, generator)
        where = torch.tensor(bucket, device=program.device)
        most = max(1, int(1 / _filled(program, *batch.inputs.shape[1:3]))) if task.spec.kind == "sequence" else None
        for start, stop, outputs in program.outputs(batch.inputs, present, most):
            own = Batch(*(t[start:stop] for t in (batch.inputs, batch.targets, batch.mask)))
            apart = Batch(*(_apart(t, rows) for t in (own.inputs, own.targets, own.mask)))
            found = row_scores(task.spec, _apart(outputs, rows), apart).view(len(outputs), -1, rows)
            scores[start:stop, where] = found.mean(dim=2)
            exact[start:stop, where] = (found == 1).float().mean(dim=2)
            lost = losses(task.spec, _apart(outputs, rows), apart).view(len(outputs), -1)
            loss[start:stop] += lost.sum(dim=1) / len(lengths)  # every length counts the same
            if present is not None:
                outputs = outputs.masked_fill(~present[start:stop, ..., None], 0)
            finite[start:stop] &= finite_members(outputs)
    return Evaluation(tuple(lengths), scores, exact, loss, finite)


def _apart(tensor: Tensor, rows: int) -> Tensor:
    """Every length of a member on its own: (member · length, row, …)."""
    return tensor.unflatten(1, (-1, rows)).flatten(0, 1)


def _buckets(program: Program, lengths: Sequence[int | None], rows: int) -> list[list[int]]:
    """Places in `lengths` that share a call: near in length, and small enough for one member."""
    if not program.members.pairing.pads:
        return [[i] for i in range(len(lengths))]
    tokens = token_counts(program.members.pairing.task, lengths)
    # On CUDA a loop over tokens takes as long for all lengths as for the longest.
    together = program.device.type == "cuda" and program.members.pairing.token_by_token
    buckets: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=tokens.__getitem__):
        if buckets:
            last = buckets[-1]
            near = together or tokens[place] <= _STRETCH * tokens[last[0]] + 4
            if near and _filled(program, (len(last) + 1) * rows, tokens[place]) <= 1:
                last.append(place)
                continue
        buckets.append([place])
    return buckets


def token_counts(task: Task, lengths: Sequence[int | None]) -> list[int]:
    """Tokens per length; every task's grow linearly, so two of them tell all."""
    first, last = min(lengths, key=_number), max(lengths, key=_number)
    generator = torch.Generator().manual_seed(0)
    low, high = (task.sample(1, 1, length, generator).inputs.shape[2] for length in (first, last))
    slope = (high - low) / max(1, _number(last) - _number(first))
    return [round(low + slope * (_number(length) - _number(first))) for length in lengths]


def _number(length: int | None) -> int:
    return length or 0


def _filled(program: Program, rows: int, tokens: int) -> float:
    """The share of a call's room that these rows of one member take."""
    kind = program.device.type
    if program.members.pairing.token_by_token:
        return rows * tokens / _POSITIONS[kind]
    return rows * tokens * (tokens + 64) / _CELLS[kind]


def _draw(
    task: Task, lengths: Sequence[int | None], rows: int, members: int, generator: torch.Generator
) -> tuple[Batch, Tensor | None]:
    """One batch with the rows of every length, padded with the first symbol where they differ."""
    drawn = [task.sample(members, rows, length, generator) for length in lengths]
    if task.spec.kind == "vector":
        return drawn[0], None
    tokens = max(b.inputs.shape[2] for b in drawn)
    grow = lambda t: F.pad(t, (0, tokens - t.shape[2]) if t.dim() == 3 else (0, 0, 0, tokens - t.shape[2]))
    batch = Batch(*(torch.cat([grow(getattr(b, n)) for b in drawn], dim=1) for n in ("inputs", "targets", "mask")))
    if all(b.inputs.shape[2] == tokens for b in drawn):
        return batch, None
    counts = torch.tensor([b.inputs.shape[2] for b in drawn], device=batch.inputs.device)
    present = torch.arange(tokens, device=batch.inputs.device) < counts.repeat_interleave(rows)[:, None]
    return batch, present.expand(members, -1, -1)
