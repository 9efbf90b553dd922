"""Many small plots by row and column: the same axes in all of them, so that the eye compares forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """Points from left to right; None where there is no value. A `faint` curve stands behind the others."""

    x: Sequence[float]
    y: Sequence[float | None]
    faint: bool = False


@dataclass(frozen=True)
class Plot:
    """`shaded`: a range of x, such as the lengths of training; `level`: a value of y to compare with, such as chance;
    `text` stands in its corner."""

    curves: Sequence[Curve]
    shaded: tuple[float, float] | None = None
    level: float | None = None
    text: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Multiples:
    """`plots` by row and column, None where there is nothing to show; `x` and `y` are the ends of the axes."""

    title: str
    alt: str
    rows: Sequence[str]
    columns: Sequence[str]
    plots: Sequence[Sequence[Plot | None]]
    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    log_x: bool = False
    caption: str = ""
    command: str = ""
