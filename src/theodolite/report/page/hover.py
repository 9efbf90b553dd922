"""Texts that Plotly draws: what the pointer is told, and names that stay names."""

from __future__ import annotations

import html

from theodolite.report.figure import Figure, Series
from theodolite.report.numbers import format_value


def hover(figure: Figure, series: Series, i: int) -> str:
    lines = [
        f"<b>{inert(series.name)}</b>",
        f"{inert(figure.x_label)}: {inert(format_value(series.x[i]))}",
        f"{inert(figure.y_label)}: {inert(format_value(series.y[i]))}",
    ]
    if series.low is not None and series.high is not None:
        lines[-1] += f" [{format_value(series.low[i])}, {format_value(series.high[i])}]"
    if series.hover is not None:
        lines.append(inert(series.hover[i]))
    return "<br>".join(lines)


def inert(text: str) -> str:
    """Plotly reads a few tags and `%{…}` in its texts; a name is only ever a name."""
    return html.escape(text, quote=False).replace("%{", "%\u200b{")
