"""From a model and a new table to predictions with intervals; rows unlike those it learnt from are counted."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.errors import BadInput
from theodolite.notebook import Shown
from theodolite.structure.conformal import COVERAGE, half_width
from theodolite.structure.data.coding import Coding
from theodolite.structure.data.columns import is_frame
from theodolite.structure.data.tables import read_columns
from theodolite.structure.stacking import WeightedMean

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Predictions(Shown):
    """`value` of every row, between `low` and `high` in the share `coverage` of rows like those learnt from; of a
    target of two values, whose prediction is a share, there are no such ends."""

    target: str
    value: Array
    low: Array | None
    high: Array | None
    coverage: float
    notes: tuple[str, ...] = ()
    index: Any = field(default=None, repr=False)  # of the data frame that was given

    def columns(self) -> dict[str, Array]:
        if self.low is None or self.high is None:
            return {self.target: self.value}
        return {self.target: self.value, f"{self.target} low": self.low, f"{self.target} high": self.high}

    def to_frame(self) -> Any:
        """A pandas data frame, with the index of the one that was given."""
        try:
            import pandas
        except ImportError:
            raise BadInput("a data frame needs pandas: install it, or use the arrays value, low and high") from None
        return pandas.DataFrame(self.columns(), index=self.index)

    def to_csv(self) -> str:
        text = io.StringIO(newline="")
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(self.columns())
        lines.writerows([f"{number:.10g}" for number in row] for row in zip(*self.columns().values(), strict=True))
        return text.getvalue()

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "coverage": self.coverage,
            "rows": [
                dict(zip(("value", "low", "high"), row, strict=False))
                for row in zip(*(numbers.tolist() for numbers in self.columns().values()), strict=True)
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Predictor:
    """What predicts, how columns of a table become its inputs, and its errors on rows that it did not see (none where
    these give no interval)."""

    model: WeightedMean
    coding: Coding
    target: str
    residuals: Array = field(repr=False)

    def predict(self, data: Any, *, coverage: float = COVERAGE, header: bool = True) -> Predictions:
        columns = read_columns(data, names=self.coding.names, header=header)
        value = self.model.predict(self.coding.encode(columns))
        width = half_width(self.residuals, coverage)
        low, high = (value - width, value + width) if len(self.residuals) else (None, None)
        index = data.index if is_frame(data) and hasattr(data, "index") else None
        notes = self.coding.unlike(columns)
        return Predictions(self.target, value, low, high, coverage, notes, index)


def predict(folder: str | Path, data: Any, *, coverage: float = COVERAGE, header: bool = True) -> Predictions:
    """What the model that `discover --out` left in a folder says of new rows; nothing in the folder is ever run.

    Parameters:
        folder: what `discover --out` or `saving.save` wrote
        data: a table with the columns that it learnt from, in any order: a path to .csv, .tsv or .parquet, a
            data frame, or an array of these columns in theirs
        coverage: the share of rows whose target the intervals hold
        header: whether the file has names of columns

    Examples:
        >>> import tempfile
        >>> from theodolite import discover
        >>> from theodolite.structure.saving import save
        >>> rows = np.random.default_rng(0).uniform(-1, 1, (60, 2))
        >>> found = discover((rows, rows[:, 0] + rows[:, 1]), effort="quick", boosting=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save(found, folder)
        ...     told = predict(folder, [[0.5, 0.25]])
        >>> round(float(told.value[0]), 2)
        0.75
    """
    from theodolite.structure.saving import load_predictor

    return load_predictor(folder).predict(data, coverage=coverage, header=header)
