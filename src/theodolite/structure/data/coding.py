"""Categories, dates and gaps as numbers: learnt from the training rows, applied to any others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from theodolite.errors import BadInput
from theodolite.registry import unknown
from theodolite.structure.data.columns import Column, row_place
from theodolite.structure.data.source import Array

SCHEMA = 1
LEAST = 10  # rows of a category, or of gaps, that get a number of their own
FOLDS = 5  # in which training rows of small categories get means of other rows
MANY = 50  # rows a category, on average, beyond which the own target tells next to nothing
PER_CATEGORY = 25  # rows on average: a mean of fewer says too much of the very rows it is of
_SHOWN = 6
_KINDS = ("number", "category", "date")


@dataclass(frozen=True)
class ColumnCoding:
    """How one column becomes a number: as it stands, as days since 1970, or by the number of its category.

    `other` is the number of a category that is not listed; `gap` stands where there is no value, which `flag` tells
    by a variable of its own, the column's name and “missing”; `low` and `high` are the ends of what was learnt from.
    """

    name: str
    kind: Literal["number", "category", "date"]
    gap: float
    flag: bool = False
    low: float = 0.0
    high: float = 0.0
    categories: Mapping[str, float] = field(default_factory=dict)
    other: float = 0.0

    def encode(self, column: Column) -> Array:
        if self.kind != "category":
            return np.where(np.isnan(column.numbers), self.gap, column.numbers)
        codes = [self.gap if word is None else self.categories.get(word, self.other) for word in column.labels()]
        return np.asarray(codes, dtype=np.float64)

    def missing(self, column: Column) -> Array:
        if self.kind != "category":
            return np.isnan(column.numbers).astype(np.float64)
        return np.array([float(word is None) for word in column.labels()])

    def to_json(self) -> dict[str, Any]:
        words = {"categories": dict(self.categories), "other": self.other}
        ends = {"flag": self.flag, "low": self.low, "high": self.high}
        return {"name": self.name, "kind": self.kind, "gap": self.gap, **(words if self.kind == "category" else ends)}


@dataclass(frozen=True)
class Coding:
    """The columns of a table in their order, each as one variable, and a second one where gaps are told."""

    columns: tuple[ColumnCoding, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        named = [(one.name, gap_name(one.name)) if one.flag else (one.name,) for one in self.columns]
        return tuple(name for names in named for name in names)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.columns)

    def encode(self, columns: Sequence[Column]) -> Array:
        """Rows (row, variable) of these columns, found by name where there are others or another order."""
        by_name = {column.name: column for column in columns}
        made: list[Array] = []
        for one in self.columns:
            if one.name not in by_name:
                raise BadInput(f"a variable is missing: {unknown('column', one.name, list(by_name))}")
            column = by_name[one.name]
            if one.kind != "category" and column.text is not None:
                entry = f"{column.text[:24]!r} in {row_place(column.place)}"
                raise BadInput(f"'{one.name}' has {entry}, where the network learnt from {_MEANT[one.kind]}: mend it")
            made.append(one.encode(column))
            if one.flag:
                made.append(one.missing(column))
        return np.stack(made, axis=1)

    def notes(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """What a reader must know of those of these columns that are not plain numbers, a sentence each."""
        gaps = {column.name: int(np.isnan(column.numbers).sum()) for column in columns}
        return tuple(
            _note(one, gaps[one.name]) for one in self.columns if one.kind != "number" or gaps.get(one.name, 0)
        )

    def unlike(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """How many of these rows are unlike any that was learnt from, and in what, a sentence a column."""
        by_name = {column.name: column for column in columns}
        return tuple(
            f"{count:,} of {len(by_name[one.name].numbers):,} rows have a '{one.name}' {what}: no row learnt from has."
            for one in self.columns
            for count, what in [_strange(one, by_name[one.name])]
            if count
        )

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "columns": [one.to_json() for one in self.columns]}

    @classmethod
    def from_json(cls, document: Any) -> Coding:
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise BadInput(f"this is no coding of columns: it must be a JSON object with schema {SCHEMA}")
        try:
            found = cls(tuple(ColumnCoding(**one) for one in document["columns"]))
        except (KeyError, TypeError) as error:
            raise BadInput(f"the coding of columns is damaged ({error}): save the discovery again") from None
        odd = [one for one in found.columns if one.kind not in _KINDS or not _finite(one)]
        if odd or not found.columns:
            raise BadInput("the coding of columns is damaged: save the discovery again")
        return found


_MEANT = {"number": "numbers", "date": "dates"}


def gap_name(name: str) -> str:
    return f"{name} missing"


def learn_coding(columns: Sequence[Column], y: Array) -> Coding:
    """Two categories are 0 and 1, ordered ones 0, 1, 2, …; of others each is the mean target of its rows, and those
    with few rows are taken together. A gap is the median, or a category of its own where there are enough."""
    names = {column.name for column in columns}
    seen: set[bytes] = set()
    coded = []
    for column in columns:
        if column.kind == "category":
            coded.append(_categories(column, y))
            continue
        gaps = np.isnan(column.numbers)
        known = column.numbers[~gaps]
        flag = LEAST <= int(gaps.sum()) < len(gaps) and gap_name(column.name) not in names
        flag = flag and gaps.tobytes() not in seen  # columns that miss together need one flag
        if flag:
            seen.add(gaps.tobytes())
        middle, low, high = (float(f(known)) if len(known) else 0.0 for f in (np.median, np.min, np.max))
        coded.append(ColumnCoding(column.name, column.kind, middle, flag, low, high))
    return Coding(tuple(coded))


def encode_training(coding: Coding, columns: Sequence[Column], y: Array) -> Array:
    """The rows that the coding was learnt from. Where the mean of a category is of few rows, it would tell each of them
    its own target; they get the mean over the other folds instead."""
    x = coding.encode(columns)
    by_name = {column.name: column for column in columns}
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    for one in coding.columns:
        column = by_name[one.name]
        if one.kind != "category" or column.order or len(one.categories) < 3 or len(y) > MANY * len(one.categories):
            continue
        kept = {word: place for place, word in enumerate(one.categories)}
        place = np.array([len(kept) + 1 if w is None else kept.get(w, len(kept)) for w in column.labels()])
        for number in range(FOLDS):
            seen, own = fold != number, fold == number
            counts = np.bincount(place[seen], minlength=len(kept) + 2)
            sums = np.bincount(place[seen], y[seen], len(kept) + 2)
            means = np.where(counts > 0, sums / np.maximum(counts, 1), y[seen].mean())
            x[own, coding.variables.index(one.name)] = means[place[own]]
    return x


def plain_coding(names: Sequence[str], middle: Array) -> Coding:
    """Of columns that are numbers without gaps, anywhere: what a black box reads."""
    ends = np.finfo(np.float64).max
    kind: Literal["number"] = "number"
    coded = [ColumnCoding(name, kind, float(m), False, -ends, ends) for name, m in zip(names, middle, strict=True)]
    return Coding(tuple(coded))


def frequent(column: Column) -> dict[str | None, int]:
    """The categories that have rows enough for a number of their own, gaps among them, and their rows."""
    counts = Counter(column.labels())
    most = max(2, len(column.numbers) // PER_CATEGORY)
    return {word: count for word, count in counts.most_common(most) if count >= LEAST}


def _categories(column: Column, y: Array) -> ColumnCoding:
    if column.order:
        numbers = {word: float(place) for place, word in enumerate(column.order)}
        middle = float(np.median(list(numbers.values())))
        return ColumnCoding(column.name, "category", middle, categories=numbers, other=middle)
    kept = {word: place for place, word in enumerate(frequent(column))}
    place = np.array([kept.get(word, len(kept)) for word in column.labels()])
    rare = place == len(kept)
    if len(kept) == 2 and not rare.any():
        known: dict[str | None, float] = {word: float(place) for place, word in enumerate(sorted(kept, key=str))}
        other = 0.5
    else:
        sums, counts = np.bincount(place, y, len(kept) + 1), np.bincount(place, minlength=len(kept) + 1)
        known = {word: float(sums[number] / counts[number]) for word, number in kept.items()}
        other = float(y[rare].mean() if rare.sum() >= LEAST else y.mean())
    gap = known.pop(None, other)
    words_of = {f"{word}": number for word, number in known.items()}
    return ColumnCoding(column.name, "category", gap, categories=words_of, other=other)


def _note(one: ColumnCoding, gaps: int) -> str:
    name = f"'{one.name}'"
    if one.kind == "category":
        ranked = sorted(one.categories.items(), key=lambda item: item[1])
        shown = ", ".join(f"{word} {value:.3g}" for word, value in ranked[:_SHOWN])
        more = f" and {len(ranked) - _SHOWN} more" if len(ranked) > _SHOWN else ""
        return f"{name} is a category and enters as one number each: {shown}{more}; any other {one.other:.3g}."
    told = f", and '{gap_name(one.name)}' says where" if one.flag else ""
    filled = f"{gaps:,} missing values enter as the median{told}" if gaps else ""
    if one.kind == "date":
        return f"{name} is a date and enters as days since 1970{'; ' * bool(gaps)}{filled}."
    return f"{name}: {filled}."


def _strange(one: ColumnCoding, column: Column) -> tuple[int, str]:
    if one.kind == "category":
        strange = [word for word in column.labels() if word is not None and word not in one.categories]
        return len(strange), f"such as {strange[0]!r}" if strange else ""
    outside = (column.numbers < one.low) | (column.numbers > one.high)
    return int(outside.sum()), f"outside {one.low:.4g} to {one.high:.4g}"


def _finite(one: ColumnCoding) -> bool:
    values = [one.gap, one.other, one.low, one.high, *one.categories.values()]
    return all(isinstance(value, int | float) and np.isfinite(value) for value in values)
