"""What of a table can be used as a target and as variables, and what is refused, in a sentence that names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from theodolite.errors import BadInput
from theodolite.structure.data.columns import Column
from theodolite.structure.data.source import Array

_NAMED = 5  # columns at fault that a sentence names
_LARGEST = 1e30  # of numbers: squares and float32 stay in range
_COUNTS = 60  # different whole numbers that look like counts
_TWO_VALUES = (
    "the target '{name}' has two values, {low} and {high}: it is fitted by squared error, so that the prediction says "
    "how likely {high} is; CompositionalClassifier predicts classes."
)


def check_target(column: Column, where: Callable[[int], str]) -> tuple[Array, tuple[str, ...]]:
    """The target as numbers, and notes on what they stand for."""
    name = column.name
    if column.is_text:
        return _two_classes(column, where)
    if column.text is not None:
        raise BadInput(
            f"the target '{name}' is not numeric ({where(column.place)} has {column.text!r}): it must be numbers"
        )
    if fault := _fault(column, where):
        large = np.isfinite(column.numbers).all()
        what = f"bring it below {_LARGEST:g} by another unit" if large else "remove rows whose target is not known"
        raise BadInput(f"the target '{name}' has {fault}: {what}")
    values = np.unique(column.numbers)
    if len(values) == 2:
        low, high = (f"{value:g}" for value in values)
        return column.numbers, (_TWO_VALUES.format(name=name, low=low, high=high),)
    if column.kind == "date":
        return column.numbers, (f"the target '{name}' is a date and is explained as days since 1970.",)
    if values[0] >= 0 and len(values) <= _COUNTS and np.all(values == np.round(values)):
        return column.numbers, (
            f"the target '{name}' looks like counts: it is fitted by squared error, so that the prediction is the "
            "expected count.",
        )
    return column.numbers, ()


def _two_classes(column: Column, where: Callable[[int], str]) -> tuple[Array, tuple[str, ...]]:
    """A target of two words as 0 and 1."""
    words = column.labels()
    if None in words:
        raise BadInput(
            f"the target '{column.name}' has no value in {where(words.index(None))}: remove rows whose target is not "
            "known"
        )
    classes = sorted({str(word) for word in words})
    if len(classes) == 1:
        raise BadInput(f"the target '{column.name}' is {classes[0]!r} in every row: there is nothing to explain")
    if len(classes) > 2:
        raise BadInput(
            f"the target '{column.name}' is not numeric and has {len(classes)} classes ({where(column.place)} has "
            f"{column.text!r}): explain one against the rest by a column of 0 and 1, or use CompositionalClassifier"
        )
    y = np.array([float(word == classes[-1]) for word in words])
    note = f"the target '{column.name}' is 1 for {classes[-1]!r}, else 0: a prediction is the share of {classes[-1]!r}."
    return y, (note,)


def check_columns(columns: Sequence[Column], where: Callable[[int], str]) -> None:
    """All columns at fault in one sentence, so that nobody has to come back once for each."""
    faults = {one.name: fault for one in columns if one.kind != "category" and (fault := _fault(one, where, gaps=True))}
    if faults:
        shown = list(faults.items())[:_NAMED]
        named = "; ".join(f"'{name}' has {fault}" for name, fault in shown)
        rest = f"; {len(faults) - _NAMED} more columns likewise" if len(faults) > _NAMED else ""
        raise BadInput(
            f"numbers up to {_LARGEST:g}, words and dates can be used, but {named}{rest}: fill or remove these, or "
            f"leave the columns out (of the table, or with discover's --drop {quoted(shown[0][0])}, drop= in Python)"
        )


def _fault(column: Column, where: Callable[[int], str], gaps: bool = False) -> str:
    """What keeps a column from being used, as it follows “has”; empty where nothing does. It may have `gaps`."""
    if column.text is not None:
        return f"text such as {column.text[:24]!r} in {where(column.place)} among numbers"
    numbers = np.ascontiguousarray(column.numbers)  # a column of a large array is read once
    bad = np.flatnonzero(~(np.abs(numbers) <= _LARGEST) & ~(np.isnan(numbers) & gaps))
    if not len(bad):
        return ""
    value = numbers[bad[0]]
    kind = "no value" if np.isnan(value) else "an infinite value" if np.isinf(value) else f"{value:g}"
    more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    return f"{kind} in {where(int(bad[0]))}{more}"


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    return name if name.replace("_", "").replace("-", "").isalnum() else f"'{name}'"
