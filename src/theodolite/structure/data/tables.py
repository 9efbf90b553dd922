"""Reading what a scientist has, a file, a data frame or arrays, as numbers to search; what cannot be used is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.errors import BadInput
from theodolite.registry import unknown
from theodolite.structure.data.columns import Column, is_frame, of_array, of_file, of_frame, of_pair, row_place
from theodolite.structure.data.source import Array

LEAST_ROWS = 50  # a fifth of them is held out for the test, a part of the rest to choose by
_NAMED = 5  # columns at fault that a sentence names
_LARGEST, _FINEST = 1e30, 1e-30  # of numbers, and of the spread of a column: squares and float32 stay in range
_TOGETHER = 0.99  # correlation of two columns that deserves a note
_COPIED = 1e-12  # of the variance: what is left of a column beside a linear function of another


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
    called x1, x2, … Constant columns, and linear functions of a single earlier one, are left out with a note.
    """
    if variables is not None and (isinstance(data, str | Path) or is_frame(data)):
        raise BadInput("the columns of a table have names of their own: give variables with arrays or a black box only")
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
    for column in kept:
        _check_spread(f"'{column.name}'", column.numbers)
    _check_spread(f"the target '{wanted}'", y)
    notes += tuple(
        f"'{column.name}' alone gives the target by a straight line: if it was computed from it, leave it out with "
        f"--drop {_quoted(column.name)} (drop= in Python)."
        for column in kept
        if _is_linear(column.numbers, y)
    )
    if not kept:
        raise BadInput("every column beside the target is constant: give at least one variable that varies")
    x = np.stack([column.numbers for column in kept], axis=1)
    variables = tuple(column.name for column in kept)
    return Samples(x, y, variables, wanted, notes + _inseparable(x, variables))


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
        large = np.isfinite(column.numbers).all()
        what = f"bring it below {_LARGEST:g} by another unit" if large else "remove rows whose target is not known"
        raise BadInput(f"the target '{column.name}' has {fault}: {what}")
    return column.numbers


def _check_columns(columns: Sequence[Column], where: Callable[[int], str]) -> None:
    """All columns at fault in one sentence, so that nobody has to come back once for each."""
    faults = {column.name: fault for column in columns if (fault := _fault(column, where))}
    if faults:
        shown = list(faults.items())[:_NAMED]
        named = "; ".join(f"'{name}' has {fault}" for name, fault in shown)
        rest = f"; {len(faults) - _NAMED} more columns likewise" if len(faults) > _NAMED else ""
        raise BadInput(
            f"only numbers up to {_LARGEST:g} can be used, but {named}{rest}: fill or remove these, or leave the "
            f"columns out with --drop {_quoted(shown[0][0])} (drop= in Python)"
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
    """The columns without constant ones and those that an earlier one gives, and a note on each of these."""
    kept: list[Column] = []
    notes = []
    for column in columns:
        if np.ptp(column.numbers) == 0:
            notes.append(f"'{column.name}' is {column.numbers[0]:g} in every row and was left out.")
            continue
        same = next((other for other in kept if _is_linear(other.numbers, column.numbers)), None)
        if same is None:
            kept.append(column)
        else:
            exact = np.array_equal(same.numbers, column.numbers)
            what = "an exact copy" if exact else "a linear function"
            notes.append(f"'{column.name}' is {what} of '{same.name}' and was left out.")
    return kept, tuple(notes)


def _inseparable(x: Array, variables: Sequence[str]) -> tuple[str, ...]:
    """A note on columns that go together so closely that their parts in a graph cannot be told apart."""
    together = np.atleast_2d(np.abs(np.corrcoef(x, rowvar=False)))
    pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(together, 1) > _TOGETHER)]
    named = ", ".join(f"'{variables[i]}' and '{variables[j]}'" for i, j in pairs[:_NAMED])
    more = f" and {len(pairs) - _NAMED} more pairs" if len(pairs) > _NAMED else ""
    if not pairs:
        return ()
    return (
        f"{named}{more} go together (correlation above {_TOGETHER}), so the graph may take one for the other: consider "
        f"--drop {_quoted(variables[pairs[0][1]])} (drop= in Python).",
    )


def _is_linear(a: Array, b: Array) -> bool:
    """Whether b is α + βa, up to rounding, by the line through the ends of a; neither is constant."""
    if np.array_equal(a, b):
        return True
    ends = [int(np.argmin(a)), int(np.argmax(a))]
    slope = (b[ends[1]] - b[ends[0]]) / (a[ends[1]] - a[ends[0]])
    allowed = _COPIED * np.var(b)
    few, every = slice(8), slice(None)  # most pairs of columns are told apart by a few rows
    return all(
        np.mean((b[rows] - b[ends[0]] - slope * (a[rows] - a[ends[0]])) ** 2) <= allowed for rows in (few, every)
    )


def _check_spread(what: str, numbers: Array) -> None:
    if np.ptp(numbers) < _FINEST:
        raise BadInput(f"{what} varies by only {np.ptp(numbers):.3g}: multiply it by a constant, as in a smaller unit")


def _quoted(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f"'{name}'"
