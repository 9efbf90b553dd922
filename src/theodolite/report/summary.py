"""What one section of a report says: a headline, and what is drawn below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from theodolite.report.answer import Answer
from theodolite.report.chart import Chart
from theodolite.report.figure import Figure
from theodolite.report.multiples import Multiples
from theodolite.report.table import Table


@dataclass(frozen=True)
class Summary:
    """`headline` answers the section's question in one or two sentences made from the numbers."""

    headline: str
    tables: Sequence[Table] = field(default_factory=tuple)
    figures: Sequence[Figure] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
    answers: Sequence[Answer] = field(default_factory=tuple)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by net: a few values to stand at its name
    charts: Sequence[Chart | Multiples] = field(default_factory=tuple)
