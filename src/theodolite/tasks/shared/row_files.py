"""Lines of a JSON-lines or CSV file as rows of symbols or numbers, and of what is asked."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput

Cell = str | tuple[float, ...]  # of inputs: a symbol, or the numbers of a token


@dataclass(frozen=True)
class Row:
    """One line of the file: what is read, what is asked at each place, and where an answer counts."""

    line: int
    inputs: tuple[Cell, ...]
    targets: tuple[str | float, ...]
    mask: tuple[bool, ...]


def parsed(file: str) -> list[Row]:
    records = list(_records(Path(file)))
    if not records:
        raise BadInput(f"'{file}' holds no rows: give one with inputs and targets a line")
    fields = {name: {line: record[name] for line, record in records} for name in ("inputs", "targets")}
    inputs = {line: _cells(value) for line, value in fields["inputs"].items()}
    if _are_numbers(file, inputs):
        inputs = {line: _vectors(file, line, cells) for line, cells in inputs.items()}
        _check_widths(file, inputs)
    else:
        inputs = {line: _symbols(value) for line, value in fields["inputs"].items()}
    targets = {line: _cells(value) for line, value in fields["targets"].items()}
    real = _are_numbers(file, targets)
    if not real:
        targets = {line: _symbols(value) for line, value in fields["targets"].items()}
    everywhere = all(len(targets[line]) == len(inputs[line]) for line in inputs)
    rows = []
    for line, record in records:
        asked = [_number(file, line, one) for one in targets[line]] if real else targets[line]
        alone = asked[0] if real and len(asked) == 1 else record["targets"]
        rows.append(_row(file, line, inputs[line], asked if everywhere else alone, record.get("mask"), everywhere))
    return rows


def _row(file: str, line: int, inputs: Sequence[Cell], asked: Any, mask: Any, everywhere: bool) -> Row:
    if not inputs:
        raise BadInput(f"line {line} of '{file}' has no inputs: remove it")
    if everywhere:
        counts = [True] * len(inputs) if mask is None else [_true(file, line, one) for one in _symbols(mask)]
        if len(counts) != len(inputs):
            raise BadInput(
                f"line {line} of '{file}' has {len(inputs)} inputs and a mask of {len(counts)}: make them equal"
            )
        return Row(line, tuple(inputs), tuple(asked), tuple(counts))
    if isinstance(asked, list):
        raise BadInput(
            f"line {line} of '{file}' has {len(inputs)} inputs and {len(asked)} targets: give one for each, or one "
            "answer alone in every line, which is asked for at the last"
        )
    if mask is not None:
        raise BadInput(f"line {line} of '{file}' has one answer and a mask: give a target for every input, or no mask")
    last = (False,) * (len(inputs) - 1)
    answer = asked if isinstance(asked, float) else str(asked).strip()
    return Row(line, tuple(inputs), (answer,) * len(inputs), (*last, True))


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


class _Word(str):
    """A word of a text, which may be a number; an entry of a list that is a text is a symbol whatever it says."""


def _cells(value: Any) -> list[Any]:
    """The parts of a line as they stand: of a list, of a text with spaces between them, or one number alone."""
    if isinstance(value, list):
        return value
    return [_Word(word) for word in value.split()] if isinstance(value, str) else [value]


def _are_numbers(file: str, lines: Mapping[int, Sequence[Any]]) -> bool:
    """Whether a column holds numbers, no symbols: one has a point, or is a list of numbers. Then anything else is
    refused, but for words of which only a few look like numbers with a point."""
    cells = [(line, one) for line, found in lines.items() for cell in found for one in _within(cell)]
    plain = any(isinstance(cell, float | list) for found in lines.values() for cell in found)
    pointed = sum(isinstance(one, _Word) and "." in one and _float(one) is not None for _, one in cells)
    mixed = any(isinstance(one, str) and _float(one) is None for _, one in cells)
    if not plain and (not pointed or (mixed and 2 * pointed <= len(cells))):
        return False
    for line, one in cells:
        _number(file, line, one)
    return True


def _within(cell: Any) -> list[Any]:
    return cell if isinstance(cell, list) else [cell]


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _number(file: str, line: int, one: Any) -> float:
    plain = isinstance(one, int | float) and not isinstance(one, bool)
    found = float(one) if plain else _float(one) if isinstance(one, _Word) else None
    if found is None or not math.isfinite(found):
        raise BadInput(
            f"line {line} of '{file}' has {one!s} among numbers: give numbers alone, or symbols that are no numbers"
        )
    return found


def _vectors(file: str, line: int, cells: Sequence[Any]) -> list[tuple[float, ...]]:
    return [tuple(_number(file, line, one) for one in _within(cell)) for cell in cells]


def _check_widths(file: str, lines: Mapping[int, Sequence[Sequence[float]]]) -> None:
    wide = next((len(cell) for cells in lines.values() for cell in cells), 1)
    for line, cells in lines.items():
        for cell in cells:
            if len(cell) != wide or not wide:
                raise BadInput(
                    f"line {line} of '{file}' has {len(cell)} numbers at one place, others have {wide}: make them equal"
                )
