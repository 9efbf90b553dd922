"""What a point says when the pointer or the keyboard comes to it."""

from __future__ import annotations

from theodolite.report.figure import Figure, Series
from theodolite.report.numbers import format_value


def read_out(figure: Figure, series: Series, i: int, *, brief: bool = False) -> str:
    """The series, both values with the interval, and the point's own note, on lines of their own; `brief`, on one."""
    if brief:
        return f"{series.name}: {format_value(series.y[i])} at {format_value(series.x[i])}"
    lines = [
        series.name,
        f"{figure.x_label}: {format_value(series.x[i])}",
        f"{figure.y_label}: {format_value(series.y[i])}",
    ]
    if series.low is not None and series.high is not None:
        lines[-1] += f" [{format_value(series.low[i])}, {format_value(series.high[i])}]"
    if series.hover is not None:
        lines.append(series.hover[i])
    return "\n".join(lines)
