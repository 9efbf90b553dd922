"""Reading what a scientist has, a file, a data frame or arrays, as columns to search; what cannot be used is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.errors import BadInput
from theodolite.registry import unknown
from theodolite.structure.data.coding import Coding, encode_training, frequent
from theodolite.structure.data.columns import Column, is_frame, of_array, of_frame, of_pair, row_place
from theodolite.structure.data.faults import check_columns, check_target, quoted
from theodolite.structure.data.files import of_file
from theodolite.structure.data.source import Array

LEAST_ROWS = 50  # a fifth of them is held out for the test, a part of the rest to choose by
_NAMED = 5  # columns at fault that a sentence names
_FINEST = 1e-30  # spread of a column: float32 stays in range
_TOGETHER = 0.99  # correlation of two columns that deserves a note
_FEW = 8  # rows
_COPIED = 1e-12  # of the variance: what is left of a column beside a linear function of another


@dataclass(frozen=True)
class Samples:
    """Points `x` (row, variable) and values `y` (row,), all finite. `notes` say in sentences what was left out."""

    x: Array
    y: Array
    variables: tuple[str, ...]
    target: str
    notes: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.int64]) -> Samples:
        return replace(self, x=self.x[rows], y=self.y[rows])


@dataclass(frozen=True)
class Table:
    """Columns as they stand in a table, and the target `y` (row,) as finite numbers."""

    columns: tuple[Column, ...]
    y: Array
    target: str
    notes: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.int64]) -> Table:
        return replace(self, columns=tuple(column.take(rows) for column in self.columns), y=self.y[rows])

    def coded(self, coding: Coding, *, learnt: bool = False) -> Samples:
        """The same as numbers, with a note on what is not the number that stands there; `learnt`: the coding is of
        these very rows."""
        x = encode_training(coding, self.columns, self.y) if learnt else coding.encode(self.columns)
        variables = coding.variables
        notes = (*self.notes, *coding.notes(self.columns), *_inseparable(x, variables))
        return Samples(x, self.y, variables, self.target, notes)


def read_table(
    data: Any,
    target: str | int | None = None,
    *,
    variables: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    header: bool = True,
    draw: Callable[[int], NDArray[np.int64] | None] | None = None,
) -> Table:
    """`data` is a path (.csv, .tsv or .parquet, the first two also .gz), a data frame, a pair (x, y) or a 2-D array.

    `variables` names the columns of arrays; `drop` leaves columns out; `categories` are columns whose numbers are
    names; without a `header` in a file its columns are called x1, x2, … `draw` says, of so many rows, which to keep
    (None: all); what cannot be used is looked for in all of them. Constant columns, linear functions of a single
    earlier one, and categories that nearly every row has for itself, are left out with a note.
    """
    columns, target, where = _columns(data, target, variables, header)
    return _table(columns, target, drop, categories, where, draw or (lambda count: None))


def read_columns(data: Any, *, names: Sequence[str] | None = None, header: bool = True) -> list[Column]:
    """The columns of a table whose target is not asked for, or not known; `names` are those of an array's."""
    of_array = not isinstance(data, str | Path) and not is_frame(data)
    return _columns(data, None, names if of_array else None, header)[0]


def _columns(
    data: Any, target: str | int | None, variables: Sequence[str] | None, header: bool
) -> tuple[list[Column], str | int | None, Callable[[int], str]]:
    if variables is not None and (isinstance(data, str | Path) or is_frame(data)):
        raise BadInput("the columns of a table have names of their own: give variables with arrays or a black box only")
    if isinstance(data, str | Path):
        return (found := of_file(Path(data), header))[0], target, found[1]
    if isinstance(data, tuple) and len(data) == 2:
        columns = of_pair(data[0], data[1], variables, target)
        return columns, len(columns) - 1, row_place
    return of_frame(data) if is_frame(data) else of_array(data, variables), target, row_place


def _table(
    columns: Sequence[Column],
    target: str | int | None,
    drop: Sequence[str],
    categories: Sequence[str],
    where: Callable[[int], str],
    draw: Callable[[int], NDArray[np.int64] | None],
) -> Table:
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
    for name in categories:
        if name not in names:
            raise BadInput(f"nothing to take as a category: {unknown('column', name, names)}")
    by_name = {column.name: column for column in columns if column.name not in drop}
    y, notes = check_target(by_name.pop(wanted), where)
    if not by_name:
        raise BadInput(f"there is no column beside the target '{wanted}': give at least one variable to explain it by")
    by_name = {name: one.as_category() if name in categories else one for name, one in by_name.items()}
    check_columns(list(by_name.values()), where)
    if len(y) < LEAST_ROWS:
        raise BadInput(f"{len(y)} rows are too few to hold some out for a test: give at least {LEAST_ROWS}")
    if np.ptp(y) == 0:
        raise BadInput(f"the target '{wanted}' is {y[0]:g} in every row: there is nothing to explain")
    if (drawn := draw(len(y))) is not None:
        notes += (f"{len(drawn):,} of {len(y):,} rows were drawn; ask for more with --rows (rows= in Python).",)
        y, by_name = y[drawn], {name: column.take(drawn) for name, column in by_name.items()}
        if np.ptp(y) == 0:
            raise BadInput(f"the target '{wanted}' is {y[0]:g} in all {len(y):,} rows drawn: ask for more with --rows")
    numeric = [column for column in by_name.values() if column.kind != "category"]
    leak = next((column.name for column in numeric if np.array_equal(column.numbers, y)), None)
    if leak is not None:
        raise BadInput(f"'{leak}' is an exact copy of the target '{wanted}': leave it out with --drop {quoted(leak)}")
    kept, left_out = _informative(list(by_name.values()))
    numeric = [column for column in kept if column.kind != "category"]
    for column in numeric:
        _check_spread(f"'{column.name}'", column.numbers[~np.isnan(column.numbers)])
    _check_spread(f"the target '{wanted}'", y)
    notes += left_out + tuple(
        f"'{column.name}' alone gives the target by a straight line: if it was computed from it, leave it out with "
        f"--drop {quoted(column.name)} (drop= in Python)."
        for column in numeric
        if _is_linear(column.numbers, y)
    )
    if not kept:
        raise BadInput("every column beside the target is constant: give at least one variable that varies")
    return Table(tuple(kept), y, wanted, notes)


def _target(target: str | int | None, names: Sequence[str]) -> str:
    if target is None:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise BadInput(f"say which column is to be explained with --target (target= in Python): columns are {shown}")
    if isinstance(target, int) and not isinstance(target, bool):
        if not -len(names) <= target < len(names):
            raise BadInput(f"there is no column {target} among {len(names)}: count from 0")
        return names[target]
    several = [str(one) for one in target] if isinstance(target, list | tuple) else str(target).split(",")
    if target not in names and len(several) > 1 and all(one.strip() in names for one in several):
        raise BadInput(
            f"{len(several)} targets are explained one by one: give one of {', '.join(several)} as the target"
        )
    if target not in names:
        raise BadInput(f"the target is missing: {unknown('column', str(target), names)}")
    return str(target)


def _informative(columns: Sequence[Column]) -> tuple[list[Column], tuple[str, ...]]:
    """The columns that can tell anything beside those before them, and a note on each of the others."""
    kept: list[Column] = []
    notes = []
    for column in columns:
        if column.kind == "category":
            said = _useless(column)
        else:
            known = column.numbers[~np.isnan(column.numbers)]
            said = "has no values" if not len(known) else f"is {known[0]:g} in every row" if np.ptp(known) == 0 else ""
            if not said:
                numeric = [other for other in kept if other.kind != "category"]
                same = next((other for other in numeric if _is_linear(other.numbers, column.numbers)), None)
                if same is not None:
                    exact = np.array_equal(same.numbers, column.numbers, equal_nan=True)
                    said = f"is {'an exact copy' if exact else 'a linear function'} of '{same.name}'"
        if said:
            notes.append(f"'{column.name}' {said} and was left out.")
        else:
            kept.append(column)
    return kept, tuple(notes)


def _useless(column: Column) -> str:
    """What makes a category useless; empty where nothing does."""
    words = column.labels()
    different = set(words)
    if len(different) < 2:
        return f"is {words[0]!r} in every row" if words[0] is not None else "has no values"
    if column.order:
        return ""
    if not set(frequent(column)) - {None}:
        return f"has {len(different):,} different entries in {len(words):,} rows, too few rows each,"
    return ""


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
        f"--drop {quoted(variables[pairs[0][1]])} (drop= in Python).",
    )


def _is_linear(a: Array, b: Array) -> bool:
    """Whether b is α + βa, up to rounding, by the line through the ends of a; neither is constant. What has gaps is
    a function only of an exact copy."""
    few = slice(_FEW)  # most pairs of columns are told apart by a few rows
    if np.isnan(a[few]).any() or np.isnan(b[few]).any():
        return np.array_equal(a, b, equal_nan=True)
    if not _on_a_line(a[few], b[few]):
        return False
    if np.array_equal(a, b, equal_nan=True):
        return True
    return not (np.isnan(a).any() or np.isnan(b).any()) and _on_a_line(a, b)


def _on_a_line(a: Array, b: Array) -> bool:
    ends = [int(np.argmin(a)), int(np.argmax(a))]
    if a[ends[0]] == a[ends[1]]:
        return True  # nothing is seen
    slope = (b[ends[1]] - b[ends[0]]) / (a[ends[1]] - a[ends[0]])
    size = max(float(np.var(b)), _FINEST * _FINEST) + np.finfo(np.float64).eps * float(np.max(np.abs(b))) ** 2
    return float(np.mean((b - b[ends[0]] - slope * (a - a[ends[0]])) ** 2)) <= _COPIED * size


def _check_spread(what: str, numbers: Array) -> None:
    if np.ptp(numbers) < _FINEST:
        raise BadInput(f"{what} varies by only {np.ptp(numbers):.3g}: multiply it by a constant, as in a smaller unit")
