"""Rows of somebody's own: inputs, targets and masks of a JSON-lines or CSV file, as ids, by length, and split."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from theodolite.errors import BadInput

PADDING = "·"
_FEWEST = 2  # different inputs of one length: one of them is held out
_SHARE = 10  # one in so many is held out


@dataclass(frozen=True)
class Row:
    """One line of the file: symbols, what is asked at each of them, and where an answer counts."""

    line: int
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    mask: tuple[bool, ...]


@dataclass(frozen=True)
class Part:
    """Rows of one length as ids: (row, token)."""

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
    filled up with a symbol of its own, where nothing counts."""

    symbols: tuple[str, ...]
    answers: tuple[str, ...]
    trained: Mapping[int, Part]
    held_out: Mapping[int, Part]
    chance: float
    solved: Mapping[tuple[int, ...], tuple[int, ...]]  # ids of targets by ids of inputs


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
    rows = _parsed(file)
    groups = _grouped(rows)
    sides = {length: _split(group, longest and length > longest) for length, group in groups.items()}
    trained = [row for own, _ in sides.values() for row in own]
    if not trained:
        raise BadInput(f"no row of '{file}' is of length {longest} or less: give a larger longest")
    symbols = _ordered({symbol for row in trained for symbol in row.inputs})
    answers = _ordered({t for row in trained for t, counts in zip(row.targets, row.mask, strict=True) if counts})
    if len(answers) < 2:
        raise BadInput(f"every target in '{file}' is '{answers[0] if answers else ''}': there is nothing to learn")
    for _, held in sides.values():
        _check_known(file, held, set(symbols), set(answers))
    if any(len(row.inputs) < length for length, group in groups.items() for row in group):
        symbols = (*symbols, PADDING)
    codes = {symbol: i for i, symbol in enumerate(symbols)}, {answer: i for i, answer in enumerate(answers)}
    parts = [{n: _ids(s[k], n, *codes) for n, s in sides.items() if s[k]} for k in (0, 1)]
    return Rows(symbols, answers, parts[0], parts[1], _chance(parts[0], len(answers)), _solved(groups, *codes))


def _parsed(file: str) -> list[Row]:
    records = list(_records(Path(file)))
    if not records:
        raise BadInput(f"'{file}' holds no rows: give one with inputs and targets a line")
    read = [(line, _symbols(record["inputs"]), record["targets"], record.get("mask")) for line, record in records]
    everywhere = all(len(_symbols(targets)) == len(inputs) for _, inputs, targets, _ in read)
    return [_row(file, line, inputs, targets, mask, everywhere) for line, inputs, targets, mask in read]


def _row(file: str, line: int, inputs: Sequence[str], targets: Any, mask: Any, everywhere: bool) -> Row:
    if not inputs:
        raise BadInput(f"line {line} of '{file}' has no inputs: remove it")
    if everywhere:
        asked = _symbols(targets)
        counts = [True] * len(inputs) if mask is None else [_true(file, line, one) for one in _symbols(mask)]
        if len(counts) != len(inputs):
            raise BadInput(
                f"line {line} of '{file}' has {len(inputs)} inputs and a mask of {len(counts)}: make them equal"
            )
        return Row(line, tuple(inputs), tuple(asked), tuple(counts))
    if isinstance(targets, list):
        raise BadInput(
            f"line {line} of '{file}' has {len(inputs)} inputs and {len(targets)} targets: give one for each, or one "
            "answer alone in every line, which is asked for at the last"
        )
    if mask is not None:
        raise BadInput(f"line {line} of '{file}' has one answer and a mask: give a target for every input, or no mask")
    last = (False,) * (len(inputs) - 1)
    return Row(line, tuple(inputs), (str(targets).strip(),) * len(inputs), (*last, True))


def _records(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"'{path}' is no text in UTF-8: save it as such") from None
    if path.suffix == ".csv":
        reader = csv.DictReader(text.splitlines())
        _check_fields(path, 1, set(reader.fieldnames or ()))
        for number, record in enumerate(reader, start=2):
            yield (
                number,
                {k: v for k, v in record.items() if k is not None and v not in (None, "")}
                | {k: record.get(k) or "" for k in ("inputs", "targets")},
            )
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                raise BadInput(f"line {number} of '{path}' is no JSON: write one object a line") from None
            if not isinstance(record, dict):
                raise BadInput(f'line {number} of \'{path}\' is no object: write {{"inputs": […], "targets": […]}}')
            _check_fields(path, number, set(record))
            yield number, record


def _check_fields(path: Path, line: int, found: set[str]) -> None:
    for name in ("inputs", "targets"):
        if name not in found:
            have = ", ".join(sorted(found)) or "nothing"
            raise BadInput(
                f"line {line} of '{path}' has no '{name}' but {have}: name inputs, targets and, if any, mask"
            )


def _symbols(value: Any) -> list[str]:
    """Of a list, of a text with spaces between them, or of a text letter by letter."""
    if isinstance(value, list):
        return [str(one).lower() if isinstance(one, bool) else str(one) for one in value]
    text = str(value).strip()
    return text.split() if any(letter.isspace() for letter in text) else list(text)


def _true(file: str, line: int, word: str) -> bool:
    if word not in ("0", "1", "true", "false"):
        raise BadInput(f"line {line} of '{file}' has '{word}' in its mask: use 0 and 1, or true and false")
    return word in ("1", "true")


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
    different = sorted({row.inputs for row in group}, key=lambda x: hashlib.sha256("\0".join(x).encode()).digest())
    held = set(different[: math.ceil(len(different) / _SHARE)])
    return [row for row in group if row.inputs not in held], [row for row in group if row.inputs in held]


def _ordered(words: set[str]) -> tuple[str, ...]:
    numbers = all(word.lstrip("-").isdigit() for word in words)
    return tuple(sorted(words, key=int) if numbers else sorted(words))


def _check_known(file: str, rows: Iterable[Row], symbols: set[str], answers: set[str]) -> None:
    for row in rows:
        asked = {t for t, counts in zip(row.targets, row.mask, strict=True) if counts}
        for found, known, word in ((set(row.inputs), symbols, "symbol"), (asked, answers, "target")):
            if strange := sorted(found - known):
                raise BadInput(
                    f"line {row.line} of '{file}', which is held out, has the {word} '{strange[0]}' that no row in "
                    "training has: add rows with it, or take it out"
                )


def _ids(rows: Sequence[Row], length: int, symbols: Mapping[str, int], answers: Mapping[str, int]) -> Part:
    def filled(values: list[list[int]], rest: int) -> Tensor:
        return torch.tensor([row + [rest] * (length - len(row)) for row in values])

    inputs = filled([[symbols[s] for s in row.inputs] for row in rows], symbols.get(PADDING, 0))
    targets = filled([[answers.get(t, 0) for t in row.targets] for row in rows], 0)
    mask = filled([[int(m) for m in row.mask] for row in rows], 0).bool()
    return Part(inputs, targets * mask, mask)


def _chance(trained: Mapping[int, Part], answers: int) -> float:
    """The best constant answer's share, the mean over lengths."""
    shares = []
    for part in trained.values():
        counted = torch.bincount(part.targets[part.mask], minlength=answers).double()
        shares.append(counted / max(1.0, float(counted.sum())))
    return float(torch.stack(shares).mean(dim=0).max())


def _solved(
    groups: Mapping[int, Sequence[Row]], symbols: Mapping[str, int], answers: Mapping[str, int]
) -> dict[tuple[int, ...], tuple[int, ...]]:
    known = {}
    for length, rows in groups.items():
        for row in rows:
            rest = length - len(row.inputs)
            key = (*(symbols[s] for s in row.inputs), *[symbols.get(PADDING, 0)] * rest)
            asked = [answers[t] if m else 0 for t, m in zip(row.targets, row.mask, strict=True)]
            known[key] = (*asked, *[0] * rest)
    return known
