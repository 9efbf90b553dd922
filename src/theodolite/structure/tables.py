"""Reading what a scientist has, a file, a data frame or arrays, as numbers to search; what cannot be used is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.errors import BadInput
from theodolite.registry import unknown
from theodolite.structure.columns import Column, is_frame, of_array, of_file, of_frame, of_pair, row_place
from theodolite.structure.source import Array

LEAST_ROWS = 50  # a fifth of them is held out for the test, a part of the rest to choose by
_NAMED = 5  # columns at fault that a sentence names
_LARGEST = 1e100  # squares of larger numbers overflow


@dataclass(frozen=True)
class Samples:
    """Points `x` (row, variable) and values `y` (row,), all finite. `notes` say in sentences what was left out."""

    x: Array
    y: Array
    variables: tuple[str, ...]
    target: str
    notes: tuple[str, ...] = ()


def read_samples(
    data: Any,
    target: str | int | None = None,
    *,
    variables: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool = True,
) -> Samples:
    """`data` is a path (.csv, .tsv or .parquet, the first two also .gz), a data frame, a pair (x, y) or a 2-D array.

    `variables` names the columns of arrays; `drop` leaves columns out; without a `header` in a file its columns are
    called x1, x2, … Constant columns and exact copies of earlier ones are left out with a note.
    """
    if isinstance(data, str | Path):
        columns, where = of_file(Path(data), header)
    elif isinstance(data, tuple) and len(data) == 2:
        columns, where = of_pair(data[0], data[1], variables, target), row_place
        target = len(columns) - 1
    elif is_frame(data):
        columns, where = of_frame(data), row_place
    else:
        columns, where = of_array(data, variables), row_place
    return _samples(columns, target, drop, where)


def _samples(
    columns: Sequence[Column], target: str | int | None, drop: Sequence[str], where: Callable[[int], str]
) -> Samples:
    names = [column.name for column in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"two columns are called '{twice}': give every column a name of its own")
    wanted = _target(target, names)
    for name in drop:
        if name not in names:
            raise BadInput(f"nothing to drop: {unknown('column', name, names)}")
        if name == wanted:
            raise BadInput(f"the target '{wanted}' cannot be dropped: drop other columns, or choose another target")
    by_name = {column.name: column for column in columns if column.name not in drop}
    y = _check_target(by_name.pop(wanted), where)
    if not by_name:
        raise BadInput(f"there is no column beside the target '{wanted}': give at least one variable to explain it by")
    _check_columns(list(by_name.values()), where)
    if len(y) < LEAST_ROWS:
        raise BadInput(f"{len(y)} rows are too few to hold some out for a test: give at least {LEAST_ROWS}")
    if np.ptp(y) == 0:
        raise BadInput(f"the target '{wanted}' is {y[0]:g} in every row: there is nothing to explain")
    leak = next((column.name for column in by_name.values() if np.array_equal(column.numbers, y)), None)
    if leak is not None:
        raise BadInput(f"'{leak}' is an exact copy of the target '{wanted}': leave it out with --drop {_quoted(leak)}")
    kept, notes = _informative(list(by_name.values()))
    if not kept:
        raise BadInput("every column beside the target is constant: give at least one variable that varies")
    x = np.stack([column.numbers for column in kept], axis=1)
    return Samples(x, y, tuple(column.name for column in kept), wanted, notes)


def _target(target: str | int | None, names: Sequence[str]) -> str:
    if target is None:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise BadInput(f"say which column is to be explained with --target (target= in Python): columns are {shown}")
    if isinstance(target, int) and not isinstance(target, bool):
        if not -len(names) <= target < len(names):
            raise BadInput(f"there is no column {target} among {len(names)}: count from 0")
        return names[target]
    if target not in names:
        raise BadInput(f"the target is missing: {unknown('column', str(target), names)}")
    return str(target)


def _check_target(column: Column, where: Callable[[int], str]) -> Array:
    if column.text is not None:
        raise BadInput(
            f"the target '{column.name}' is not numeric ({where(column.place)} has {column.text!r}): it must be numbers"
        )
    if fault := _fault(column, where):
        raise BadInput(f"the target '{column.name}' has {fault}: remove rows whose target is not known")
    return column.numbers


def _check_columns(columns: Sequence[Column], where: Callable[[int], str]) -> None:
    """All columns at fault in one sentence, so that nobody has to come back once for each."""
    faults = {column.name: fault for column in columns if (fault := _fault(column, where))}
    if faults:
        shown = list(faults.items())[:_NAMED]
        named = "; ".join(f"'{name}' has {fault}" for name, fault in shown)
        rest = f"; {len(faults) - _NAMED} more columns likewise" if len(faults) > _NAMED else ""
        raise BadInput(
            f"only finite numbers can be used, but {named}{rest}: fill or remove these, or leave the columns out with "
            f"--drop {_quoted(shown[0][0])} (drop= in Python)"
        )


def _fault(column: Column, where: Callable[[int], str]) -> str:
    """What keeps a column from being used, as it follows “has”; empty where nothing does."""
    if column.text is not None:
        return f"text such as {column.text[:24]!r} in {where(column.place)}"
    bad = np.flatnonzero(~(np.abs(column.numbers) <= _LARGEST))
    if not len(bad):
        return ""
    value = column.numbers[bad[0]]
    kind = "no value" if np.isnan(value) else "an infinite value" if np.isinf(value) else f"{value:g}"
    more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    return f"{kind} in {where(int(bad[0]))}{more}"


def _informative(columns: Sequence[Column]) -> tuple[list[Column], tuple[str, ...]]:
    """The columns without constant ones and copies of earlier ones, and a note on each of these."""
    kept: list[Column] = []
    notes = []
    first: dict[bytes, str] = {}
    for column in columns:
        content = (column.numbers + 0.0).tobytes()  # −0 and 0 are the same number
        if np.ptp(column.numbers) == 0:
            notes.append(f"'{column.name}' is {column.numbers[0]:g} in every row and was left out.")
        elif content in first:
            notes.append(f"'{column.name}' is an exact copy of '{first[content]}' and was left out.")
        else:
            first[content] = column.name
            kept.append(column)
    return kept, tuple(notes)


def _quoted(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f"'{name}'"
