"""Rows of somebody's own: inputs, targets and masks of a file, as ids or numbers, by length, and split."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.shared.row_files import Row, parsed

_FEWEST = 2  # different inputs of one length: one of them is held out
_SHARE = 10  # one in so many is held out


@dataclass(frozen=True)
class Part:
    """Rows of one length: (row, token), of inputs that are numbers (row, token, number)."""

    inputs: Tensor
    targets: Tensor
    mask: Tensor

    def __len__(self) -> int:
        return len(self.inputs)

    def to(self, device: torch.device) -> Part:
        return Part(self.inputs.to(device), self.targets.to(device), self.mask.to(device))


@dataclass(frozen=True)
class Rows:
    """By length, the rows that are trained on and those that are held out. A row shorter than its group's length is
    filled up where nothing counts, with a symbol of its own or with zeros.

    `vocab` and `answers` are None where inputs or targets are numbers: those are centred and divided by their spread
    over the rows that are trained on. `features`: symbols, or numbers of a token."""

    vocab: int | None
    features: int
    answers: int | None
    trained: Mapping[int, Part]
    held_out: Mapping[int, Part]
    chance: float
    solved: Mapping[tuple[float, ...], tuple[float, ...]]  # targets by inputs, as they are in the parts


def digest_of(file: str) -> str:
    path = Path(file)
    if not path.is_file():
        raise BadInput(f"there is no file '{file}': give the path of a .jsonl or .csv file of rows")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@lru_cache(maxsize=8)
def read_rows(file: str, digest: str, longest: int) -> Rows:
    """`digest` is of the file's content; rows above `longest` (0: none are) are never trained on."""
    if digest_of(file) != digest:
        raise BadInput(f"the file '{file}' has changed while it was in use: start again")
    groups = _grouped(parsed(file))
    sides = {length: _split(group, longest and length > longest) for length, group in groups.items()}
    trained = [row for own, _ in sides.values() for row in own]
    if not trained:
        raise BadInput(f"no row of '{file}' is of length {longest} or less: give a larger longest")
    filled = any(len(row.inputs) < length for length, group in groups.items() for row in group)
    inputs = _coding([cell for row in trained for cell in row.inputs])
    asked = [t for row in trained for t, counts in zip(row.targets, row.mask, strict=True) if counts]
    targets = _coding(asked)
    if len(set(asked)) < 2:
        raise BadInput(f"every target in '{file}' is '{asked[0] if asked else ''}': there is nothing to learn")
    for _, held in sides.values():
        _check_known(file, held, inputs, targets)
    fill: Any = inputs.fill if isinstance(inputs, _Numbers) else len(inputs.codes)
    parts = [{n: _part(s[k], n, inputs, targets, fill) for n, s in sides.items() if s[k]} for k in (0, 1)]
    symbols = None if isinstance(inputs, _Numbers) else len(inputs.codes) + filled
    answers = None if isinstance(targets, _Numbers) else len(targets.codes)
    chance = 0.0 if answers is None else _chance(parts[0], answers)
    features = len(inputs.mean) if isinstance(inputs, _Numbers) else len(inputs.codes) + filled
    return Rows(symbols, features, answers, parts[0], parts[1], chance, _solved(parts))


@dataclass(frozen=True)
class _Symbols:
    codes: Mapping[Any, int]

    def __call__(self, one: Any) -> int:
        return self.codes.get(one, 0)


@dataclass(frozen=True)
class _Numbers:
    """Of a token as a tuple, of a target as one number."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]
    single: bool

    @property
    def fill(self) -> list[float]:
        return [0.0] * len(self.mean)

    def __call__(self, one: Any) -> list[float] | float:
        values = (one,) if self.single else one
        found = [(value - mean) / spread for value, mean, spread in zip(values, self.mean, self.spread, strict=True)]
        return found[0] if self.single else found


def _coding(cells: Sequence[Any]) -> _Symbols | _Numbers:
    """How what is in the rows of training becomes ids, or numbers about 0."""
    if not cells or isinstance(cells[0], str):
        return _Symbols({symbol: i for i, symbol in enumerate(_ordered(set(cells)))})
    single = isinstance(cells[0], float)
    columns = [cells] if single else list(zip(*cells, strict=True))
    means = tuple(math.fsum(column) / len(column) for column in columns)
    spreads = (
        math.sqrt(math.fsum((x - mean) ** 2 for x in column) / len(column))
        for column, mean in zip(columns, means, strict=True)
    )
    return _Numbers(means, tuple(spread or 1.0 for spread in spreads), single)


def _grouped(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """By length; neighbouring lengths share a group until there are different inputs enough to hold one out."""
    groups: dict[int, list[Row]] = {}
    waiting: list[Row] = []
    for length in sorted({len(row.inputs) for row in rows}):
        waiting += [row for row in rows if len(row.inputs) == length]
        if len({row.inputs for row in waiting}) >= _FEWEST:
            groups[length], waiting = waiting, []
    if waiting and not groups:
        raise BadInput("all rows have the same inputs, and one must be held out: give more rows")
    if waiting:  # the longest are too few to stand alone
        length = max(groups)
        groups[max(len(row.inputs) for row in waiting)] = groups.pop(length) + waiting
    return groups


def _split(group: Sequence[Row], unseen: object) -> tuple[list[Row], list[Row]]:
    """What is trained on and what is held out: by inputs, so that none is on both sides."""
    if unseen:
        return [], list(group)
    different = sorted(
        {row.inputs for row in group}, key=lambda x: hashlib.sha256("\0".join(map(str, x)).encode()).digest()
    )
    held = set(different[: math.ceil(len(different) / _SHARE)])
    return [row for row in group if row.inputs not in held], [row for row in group if row.inputs in held]


def _ordered(words: set[str]) -> tuple[str, ...]:
    numbers = all(word.lstrip("-").isdigit() for word in words)
    return tuple(sorted(words, key=int) if numbers else sorted(words))


def _check_known(file: str, rows: Iterable[Row], inputs: _Symbols | _Numbers, targets: _Symbols | _Numbers) -> None:
    for row in rows:
        asked = [t for t, counts in zip(row.targets, row.mask, strict=True) if counts]
        for found, coding, word in ((row.inputs, inputs, "symbol"), (asked, targets, "target")):
            if isinstance(coding, _Symbols) and (strange := sorted({str(one) for one in found} - coding.codes.keys())):
                raise BadInput(
                    f"line {row.line} of '{file}', which is held out, has the {word} '{strange[0]}' that no row in "
                    "training has: add rows with it, or take it out"
                )


def _part(
    rows: Sequence[Row], length: int, inputs: _Symbols | _Numbers, targets: _Symbols | _Numbers, fill: Any
) -> Part:
    def filled(values: list[list[Any]], rest: Any) -> Tensor:
        return torch.tensor([row + [rest] * (length - len(row)) for row in values])

    read = filled([[inputs(cell) for cell in row.inputs] for row in rows], fill)
    asked = filled([[targets(t) for t in row.targets] for row in rows], 0)
    mask = filled([[int(m) for m in row.mask] for row in rows], 0).bool()
    return Part(read, asked * mask, mask)


def _chance(trained: Mapping[int, Part], answers: int) -> float:
    """The best constant answer's share, the mean over lengths."""
    shares = []
    for part in trained.values():
        counted = torch.bincount(part.targets[part.mask], minlength=answers).double()
        shares.append(counted / max(1.0, float(counted.sum())))
    return float(torch.stack(shares).mean(dim=0).max())


def _solved(sides: Iterable[Mapping[int, Part]]) -> dict[tuple[float, ...], tuple[float, ...]]:
    return {
        tuple(read.flatten().tolist()): tuple(asked.tolist())
        for parts in sides
        for part in parts.values()
        for read, asked in zip(part.inputs, part.targets, strict=True)
    }
