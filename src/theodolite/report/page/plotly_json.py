"""A figure spec as Plotly JSON, one plot per panel."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from theodolite.report.figure import Figure, Series
from theodolite.report.numbers import drawable
from theodolite.report.page.axes import x_axis, y_axis
from theodolite.report.page.dot_plot import dot_axes, dot_traces
from theodolite.report.page.hover import hover, inert
from theodolite.report.page.reference_marks import reference_marks
from theodolite.report.page.series_style import PALETTE, Style, styles

_BAND_FROM = 13  # a band where so many points or more would make error bars a thicket


def panel_plots(figure: Figure) -> list[dict[str, Any]]:
    """`{"data": …, "layout": …}` per panel, complete with titles and legend, as a saved image needs them."""
    looks = {style.name: style for style in styles(figure)}
    if figure.kind == "dots":
        axes = dot_axes(figure)
    else:
        axes = {"xaxis": x_axis(figure), "yaxis": y_axis(figure)}
    plots = []
    for panel in figure.panels:
        if figure.kind == "dots":
            data = dot_traces(figure, panel, looks)
        else:
            data = [trace for series in panel.series for trace in _traces(figure, series, looks[series.name])]
        layout = {
            "title": {"text": html.escape(panel.title or figure.title, quote=False)},
            **axes,
            **reference_marks(figure, panel, axes),
            "showlegend": True,
            "hovermode": "closest",
        }
        plots.append({"data": data, "layout": layout})
    return plots


def _traces(figure: Figure, series: Series, style: Style) -> Iterable[dict[str, Any]]:
    colour = PALETTE[style.colour]
    x = [value if isinstance(value, str) else drawable(value, log=figure.log_x) for value in series.x]
    shown_x = [inert(value) if isinstance(value, str) else value for value in x]
    y, low, high = (
        [drawable(value, log=figure.log_y) for value in values] if values is not None else None
        for values in (series.y, series.low, series.high)
    )
    assert y is not None
    # What a download needs and Plotly must not interpret.
    meta: dict[str, Any] = {"name": series.name, "colour": style.colour, "dashed": series.dashed, "role": "line"}
    if shown_x != x:
        meta["x"] = x
    if low is not None:
        meta["low"] = low
    if high is not None:
        meta["high"] = high
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": inert(series.name),
        "x": shown_x,
        "y": y,
        "text": [hover(figure, series, i) for i in range(len(series.y))],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": colour, "width": 2, "dash": style.dash},
        "marker": {
            "color": colour,
            "size": 8,
            "symbol": f"{style.symbol}-open" if series.dashed else style.symbol,
            "line": {"color": colour, "width": 1.5 if series.dashed else 0},
        },
        "connectgaps": False,
        "meta": meta,
    }
    if low is not None or high is not None:
        if len(y) >= _BAND_FROM and not any(isinstance(value, str) for value in x):
            yield from _band(shown_x, y, low, high, colour, series.name, style)
            trace["marker"]["size"] = 5
        else:
            trace["error_y"] = {
                "type": "data",
                "symmetric": False,
                "array": _distance(y, high),
                "arrayminus": _distance(low, y),
                "color": colour,
                "thickness": 1.2,
                "width": 3,
            }
    yield trace


def _band(
    x: list[Any],
    y: list[Any],
    low: list[Any] | None,
    high: list[Any] | None,
    colour: str,
    name: str,
    style: Style,
) -> Iterable[dict[str, Any]]:
    edges = [(low or y), (high or y)]
    kept = [i for i in range(len(y)) if edges[0][i] is not None and edges[1][i] is not None and x[i] is not None]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    for k, edge in enumerate(edges):
        yield {
            "type": "scatter",
            "mode": "lines",
            "x": [x[i] for i in kept],
            "y": [edge[i] for i in kept],
            "line": {"width": 0, "color": colour},
            "fill": "tonexty" if k else "none",
            "fillcolor": f"rgba({red},{green},{blue},0.18)",
            "hoverinfo": "skip",
            "showlegend": False,
            "meta": {"name": name, "colour": style.colour, "role": "band"},
        }


def _distance(start: Sequence[Any] | None, end: Sequence[Any] | None) -> list[float | None]:
    if start is None or end is None:
        return [None] * len(start or end or ())
    return [None if a is None or b is None else max(b - a, 0) for a, b in zip(start, end, strict=True)]
