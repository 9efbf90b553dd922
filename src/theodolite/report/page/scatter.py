"""One series as a Plotly trace: its points in the series' colour and symbol, and bars for its intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theodolite.report.colours import PALETTE
from theodolite.report.figure import Figure, Series
from theodolite.report.numbers import drawable
from theodolite.report.page.hover import hover, inert
from theodolite.report.page.series_style import Style

Values = list[float | int | None]


def heights(figure: Figure, series: Series) -> tuple[Values, Values | None, Values | None]:
    """Of the points and of the lower and upper ends of their intervals, None where a plot cannot show one."""
    y, low, high = (
        None if values is None else [drawable(value, log=figure.log_y) for value in values]
        for values in (series.y, series.low, series.high)
    )
    assert y is not None
    return y, low, high


def scatter(figure: Figure, series: Series, style: Style, meta: dict[str, Any], **trace: Any) -> dict[str, Any]:
    """`trace` holds mode, x and y; `meta`, what a download needs and Plotly must not interpret."""
    colour = PALETTE[style.colour]
    named = {"name": series.name, "colour": style.colour, "dashed": series.dashed, "role": "line"}
    return {
        "type": "scatter",
        "name": inert(series.name),
        "text": [hover(figure, series, i) for i in range(len(series.y))],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": colour, "width": 2, "dash": style.dash},
        "marker": {
            "color": colour,
            "size": 8,
            "symbol": f"{style.symbol}-open" if series.dashed else style.symbol,
            "line": {"color": colour, "width": 1.5 if series.dashed else 0},
        },
        "meta": {**named, **{key: value for key, value in meta.items() if value is not None}},
        **trace,
    }


def error_bars(y: Values, low: Values | None, high: Values | None, style: Style, **look: float) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": _distance(y, high),
        "arrayminus": _distance(low, y),
        "color": PALETTE[style.colour],
        **look,
    }


def _distance(start: Sequence[Any] | None, end: Sequence[Any] | None) -> list[float | None]:
    if start is None or end is None:
        return [None] * len(start or end or ())
    return [None if a is None or b is None else max(b - a, 0) for a, b in zip(start, end, strict=True)]
