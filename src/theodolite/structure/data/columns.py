"""Columns of numbers, categories and dates out of words, data frames and arrays, as they stand there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from theodolite.errors import BadInput
from theodolite.structure.data.source import Array

MISSING = {"", "na", "n/a", "nan", "null", "none", "<na>", "nat"}
_FIGURES = re.compile(r"[-+]?[$€£]?\d[\d.,' ]*[%$€£]?")  # amounts as people write them: 1,234 or 12 %
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Column:
    """Numbers, NaN where there was none; `text`, the first entry that is no number, and `place`, where it stands.

    Of a category `entries` are what stands there (`order`: from the least, where they have an order); of dates the
    numbers are days since 1970, of durations days.
    """

    name: str
    numbers: Array
    text: str | None = None
    place: int = 0
    kind: Literal["number", "category", "date"] = "number"
    entries: Sequence[Any] | None = field(default=None, repr=False)
    order: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether it holds words among which no numbers stand, or few."""
        return self.kind == "category" and self.text is not None

    def labels(self) -> list[str | None]:
        """What stands in every row as a word, None where nothing does."""
        return [label(entry) for entry in (self.numbers if self.entries is None else self.entries)]

    def as_category(self) -> Column:
        return replace(self, kind="category")

    def take(self, rows: NDArray[np.int64]) -> Column:
        entries = None if self.entries is None else [self.entries[row] for row in rows]
        return replace(self, numbers=self.numbers[rows], entries=entries)


def label(entry: Any) -> str | None:
    """A category as it is named: a number in its shortest form, however it was written."""
    word = str(entry).strip()
    if word.lower() in MISSING:
        return None
    try:
        number = float(word if "_" not in word else "text")
    except ValueError:
        return word
    return str(int(number)) if number.is_integer() else repr(number)


def row_place(row: int) -> str:
    """Where a row stands that has no line of a file: counted from 0, as the data's own index does."""
    return f"row {row}"


def of_strings(name: str, entries: Sequence[str]) -> Column:
    try:
        if any("_" in entry for entry in entries):  # Python reads 20_01 as a number; a table means a word
            raise ValueError
        return Column(name, np.array(entries, dtype=np.float64))
    except ValueError:
        return _one_by_one(name, entries)


def _one_by_one(name: str, entries: Sequence[Any]) -> Column:
    """Numbers, truth values as 0 and 1, NaN for what is missing; else dates; else categories, unless numbers are the
    rule and the first entry that is none of these an exception."""
    numbers = np.full(len(entries), np.nan)
    words: list[int] = []
    for place, entry in enumerate(entries):
        word = str(entry).strip().lower()
        if word in _TRUTH:
            numbers[place] = _TRUTH[word]
        elif word not in MISSING:
            try:
                numbers[place] = float(word if "_" not in word else "text")
            except ValueError:
                words.append(place)
    if not words:
        return Column(name, numbers, entries=entries)
    first = str(entries[words[0]])
    figures = sum(_FIGURES.fullmatch(str(entries[place]).strip()) is not None for place in words)
    if len(words) - figures <= np.isfinite(numbers).sum() + figures:
        return Column(name, numbers, first, words[0], entries=entries)
    days = _days(entries, words) if np.isnan(numbers).all() else None
    if days is not None:
        return Column(name, days, kind="date", entries=entries)
    return Column(name, numbers, first, words[0], "category", entries)


def _days(entries: Sequence[Any], places: Sequence[int]) -> Array | None:
    """Days since 1970 of dates as ISO 8601 writes them; None where an entry is no date."""
    found = np.full(len(entries), np.nan)
    for place in places:
        try:
            moment = datetime.fromisoformat(str(entries[place]).strip())
        except ValueError:
            return None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        found[place] = moment.timestamp() / 86400
    return found


def is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "__getitem__") and not isinstance(data, np.ndarray)


def of_frame(frame: Any) -> list[Column]:
    names = [str(name) for name in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"two columns are called '{twice}': give every column a name of its own")
    if not names or not len(frame):
        raise BadInput("the data frame is empty: give one with rows of numbers")
    return [_of_series(name, frame[key]) for name, key in zip(names, frame.columns, strict=True)]


def _of_series(name: str, series: Any) -> Column:
    kind = getattr(series, "dtype", None)
    found = of_values(name, np.asarray(series))
    known = getattr(kind, "categories", None)
    if known is None or callable(known):
        return found
    order = tuple(str(label(one)) for one in known) if getattr(kind, "ordered", False) else ()
    return replace(found.as_category(), text=str(next(iter(known), "")), order=order)


def of_values(name: str, values: np.ndarray) -> Column:
    if values.dtype.kind in "biuf":
        return Column(name, values.astype(np.float64, copy=False))
    if values.dtype.kind in "mM":
        since = values.astype("datetime64[us]") if values.dtype.kind == "M" else values.astype("timedelta64[us]")
        days = np.where(np.isnat(since), np.nan, since.astype(np.int64) / 86_400e6)
        return Column(name, days, kind="date")
    return _one_by_one(name, list(values))


def of_pair(x: Any, y: Any, variables: Sequence[str] | None, target: str | int | None) -> list[Column]:
    """The columns of x, then y under the name of the target, its own, or 'y'."""
    columns = of_frame(x) if is_frame(x) else of_array(x, variables)
    values = _plain(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or len(values) != len(columns[0].numbers):
        raise BadInput(
            f"y has the shape {values.shape} where x has {len(columns[0].numbers)} rows: give one value for each row"
        )
    name = str(target) if target is not None else str(getattr(y, "name", None) or "y")
    taken = {column.name for column in columns}
    while name in taken:
        name += "_"
    return [*columns, of_values(name, values)]


def of_array(data: Any, variables: Sequence[str] | None) -> list[Column]:
    values = _plain(data)
    if values.ndim != 2:
        given = f"an array of shape {values.shape}" if values.ndim else f"a {type(data).__name__}"
        raise BadInput(f"{given} is no table: give a path, a data frame, a pair (x, y) or an array of rows and columns")
    if not values.size:
        raise BadInput("the array is empty: give one with rows of numbers")
    if variables is not None and len(variables) != values.shape[1]:
        raise BadInput(f"{len(variables)} variables are named for {values.shape[1]} columns: name each column once")
    names = [f"x{i + 1}" for i in range(values.shape[1])] if variables is None else [str(name) for name in variables]
    return [of_values(name, values[:, i]) for i, name in enumerate(names)]


def _plain(data: Any) -> np.ndarray:
    if hasattr(data, "detach"):
        data = data.detach().cpu()
    try:
        return np.asarray(data)
    except ValueError:
        raise BadInput("the rows of the data have different lengths: give an array of rows and columns") from None
