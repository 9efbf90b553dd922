"""A figure spec as Plotly JSON, one plot per panel."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from theodolite.report.colours import PALETTE
from theodolite.report.figure import Figure, Series
from theodolite.report.numbers import drawable
from theodolite.report.page.axes import x_axis, y_axis
from theodolite.report.page.dot_plot import dot_axes, dot_traces
from theodolite.report.page.hover import inert
from theodolite.report.page.reference_marks import reference_marks
from theodolite.report.page.scatter import error_bars, heights, scatter
from theodolite.report.page.series_style import Style, styles

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
    x = [value if isinstance(value, str) else drawable(value, log=figure.log_x) for value in series.x]
    shown_x = [inert(value) if isinstance(value, str) else value for value in x]
    y, low, high = heights(figure, series)
    meta = {"x": x if shown_x != x else None, "low": low, "high": high}
    trace = scatter(figure, series, style, meta, mode="lines+markers", x=shown_x, y=y)
    if low is not None or high is not None:
        if len(y) >= _BAND_FROM and not any(isinstance(value, str) for value in x):
            yield from _band(shown_x, low or y, high or y, series.name, style)
            trace["marker"]["size"] = 5
        else:
            trace["error_y"] = error_bars(y, low, high, style, thickness=1.2, width=3)
    yield trace


def _band(
    x: Sequence[Any], low: Sequence[Any], high: Sequence[Any], name: str, style: Style
) -> Iterable[dict[str, Any]]:
    kept = [i for i, ends in enumerate(zip(x, low, high, strict=True)) if None not in ends]
    colour = PALETTE[style.colour]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    for edge, fill in ((low, "none"), (high, "tonexty")):
        yield {
            "type": "scatter",
            "mode": "lines",
            "x": [x[i] for i in kept],
            "y": [edge[i] for i in kept],
            "line": {"width": 0, "color": colour},
            "fill": fill,
            "fillcolor": f"rgba({red},{green},{blue},0.18)",
            "hoverinfo": "skip",
            "showlegend": False,
            "meta": {"name": name, "colour": style.colour, "role": "band"},
        }
