"""Rows as tables of other libraries, imported when asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theodolite.errors import BadInput

if TYPE_CHECKING:
    import pandas


def frame(rows: Sequence[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise BadInput("pandas is not installed: pip install 'theodolite[data]'") from None
    return pandas.DataFrame(list(rows))


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """A header and one line a row; a missing value is an empty cell."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
