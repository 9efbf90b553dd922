"""How a claim is decided at one size: the rule in words, its statistics, the cells, and the verdict from their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from theodolite.lab.cell import Cell, Row
from theodolite.measurement import canonical

Outcome = Literal["holds", "fails", "undecided", "not run", "not a claim"]
Size = Literal["quick", "full"]


@dataclass(frozen=True)
class Verdict:
    """`predicted` and `measured` are plain values that belong together; `detail` explains them in a sentence or two."""

    outcome: Outcome
    predicted: Any
    measured: Any
    detail: str


Decide = Callable[[Sequence[Row]], Verdict]

ONE_STAGE = "one stage: nothing is added after it"


@dataclass(frozen=True)
class Statistics:
    """What a referee asks first: how large the sample is, how the comparisons that the verdict uses are corrected for
    being many, and when measuring stops."""

    sample: str
    correction: str
    stopping: str = ONE_STAGE


EXACT = Statistics("every case that the rule names", "none: exact values, nothing is estimated")


@dataclass(frozen=True)
class Rule:
    """`words` say what `decide` computes; they are written before the run. `further`, given the rows of `cells`, are
    those of a second and last stage; `decide` is given the rows of both. Where `failure_stands`, a claim that fails by
    its first stage does so whatever a second finds, and none is measured."""

    words: str
    cells: Callable[[], Sequence[Cell]] = field(repr=False)
    decide: Decide = field(repr=False)
    statistics: Statistics = EXACT
    further: Callable[[Sequence[Row]], Sequence[Cell]] | None = field(default=None, repr=False)
    failure_stands: bool = False

    def second_stage(self, rows: Sequence[Row]) -> Sequence[Cell]:
        """Given the rows of the first: none where nothing is left to find out."""
        if self.further is None or (self.failure_stands and self.decide(rows).outcome == "fails"):
            return ()
        return self.further(rows)

    def record(self, cells: Sequence[Cell]) -> str:
        """A hash of the rule, its statistics and what is measured first: it changes if one of them does."""
        text = canonical(
            {
                "rule": self.words,
                "statistics": [self.statistics.sample, self.statistics.correction, self.statistics.stopping],
                "cells": [_identity(cell) for cell in cells],
            }
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _identity(cell: Cell) -> str:
    """Its key, but for the fingerprint of the code that a net from a file imports: a record is of what is asked."""
    return Cell(cell.measure, {name: value for name, value in cell.config.items() if name != "source"}).key


def outcome(good: bool, decided: bool = True) -> Outcome:
    return "undecided" if good and not decided else "holds" if good else "fails"


def not_run(why: str) -> Decide:
    """Of a claim that has no cells: it says why."""
    return lambda rows: Verdict("not run", None, None, why)
