"""A figure of kind `dots`: names downwards, values with their intervals along a horizontal axis.

Names are read without tilting the head, and intervals of several nets on one task never lie on top of each other.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from theodolite.report.figure import Figure, Panel
from theodolite.report.numbers import format_value
from theodolite.report.page.axes import y_axis
from theodolite.report.page.hover import inert
from theodolite.report.page.scatter import error_bars, heights, scatter
from theodolite.report.page.series_style import Style, styles

_SPREAD = 0.74  # of the room of a name, shared by its series
_NAME_WIDTH = 18  # characters before a name breaks
_ROW, _GAP, _AXIS = 13, 12, 44  # pixels


def dot_axes(figure: Figure) -> dict[str, Any]:
    """The value axis lies below; names stand at 0, −1, −2, … so that the first is on top."""
    names = _names(figure)
    values = {**y_axis(figure), "fixedrange": True}
    ticks = {
        "type": "linear",
        "range": [0.5 - len(names), 0.5],
        "tickmode": "array",
        "tickvals": [-i for i in range(len(names))],
        "ticktext": ["<br>".join(inert(line) for line in _wrapped(name)) for name in names],
        "showgrid": False,
        "automargin": True,
        "fixedrange": True,
        "title": {"text": inert(figure.x_label)},
    }
    return {"xaxis": values, "yaxis": ticks}


def dot_traces(figure: Figure, panel: Panel, looks: Mapping[str, Style]) -> list[dict[str, Any]]:
    names = {name: i for i, name in enumerate(_names(figure))}
    slots = {style.name: i for i, style in enumerate(styles(figure))}
    traces = []
    for series in panel.series:
        style = looks[series.name]
        offset = _SPREAD * ((slots[series.name] + 0.5) / len(slots) - 0.5)
        y, low, high = heights(figure, series)
        labels = [_name(value) for value in series.x]
        places = [-names[label] - offset for label in labels]
        meta = {"x": labels, "y": y, "low": low, "high": high}
        trace = scatter(figure, series, style, meta, mode="markers", x=y, y=places)
        if low is not None or high is not None:
            trace["error_x"] = error_bars(y, low, high, style, thickness=1.4, width=0)
        traces.append(trace)
    return traces


def dot_height(figure: Figure) -> int:
    """Pixels that keep the rows apart."""
    return _AXIS + len(_names(figure)) * (_GAP + max(_ROW * len(styles(figure)), 2 * _ROW))


def dividers(figure: Figure) -> list[float]:
    """Heights between neighbouring names."""
    return [-i - 0.5 for i in range(len(_names(figure)) - 1)]


def _names(figure: Figure) -> list[str]:
    return list(dict.fromkeys(_name(value) for panel in figure.panels for series in panel.series for value in series.x))


def _name(value: Any) -> str:
    return value if isinstance(value, str) else format_value(value)


def _wrapped(name: str) -> list[str]:
    return textwrap.wrap(name, _NAME_WIDTH, max_lines=3, placeholder=" …") or [""]
