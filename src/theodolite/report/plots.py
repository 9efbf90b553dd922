"""A figure spec as Plotly JSON, one plot per panel, and the legend the panels share."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from theodolite.report.numbers import drawable, format_value
from theodolite.survey.section import Figure, Series

# Okabe and Ito's colours, told apart by every common colour vision; the fifth is the page's ink. Yellow is left out:
# it cannot be seen on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("dash", "dot", "dashdot")  # several predictions for one group
_BAND_FROM = 13  # a band where so many points or more would make error bars a thicket
_TICKS_AT_POINTS = 10


@dataclass(frozen=True)
class Style:
    """How every series of one name looks in all panels."""

    name: str
    colour: int  # index into PALETTE
    symbol: str
    dash: str


def styles(figure: Figure) -> list[Style]:
    """One style per name: a group shares its colour, and a prediction has the open symbol of what it predicts."""
    colours: dict[str, int] = {}
    symbols: dict[str, str] = {}
    found: dict[str, Style] = {}
    drawn = [series for panel in figure.panels for series in panel.series]
    for series in drawn:
        colours.setdefault(_group(series), len(colours))
    dashes: Counter[str] = Counter()
    taken = 0
    for series in [*(s for s in drawn if not s.dashed), *(s for s in drawn if s.dashed)]:
        if series.name in found:
            continue
        group = _group(series)
        if series.dashed and group in symbols:
            symbol = symbols[group]
        else:
            symbol = SYMBOLS[taken % len(SYMBOLS)]
            symbols.setdefault(group, symbol)
            taken += 1
        dash = DASHES[dashes[group] % len(DASHES)] if series.dashed else "solid"
        dashes[group] += series.dashed
        found[series.name] = Style(series.name, colours[group] % len(PALETTE), symbol, dash)
    return [found[name] for name in dict.fromkeys(series.name for series in drawn)]


def panel_plots(figure: Figure) -> list[dict[str, Any]]:
    """`{"data": …, "layout": …}` per panel, complete with titles and legend, as a saved image needs them."""
    looks = {style.name: style for style in styles(figure)}
    x_axis, y_axis = _x_axis(figure), _y_axis(figure)
    plots = []
    for panel in figure.panels:
        data = [trace for series in panel.series for trace in _traces(figure, series, looks[series.name])]
        layout = {
            "title": {"text": html.escape(panel.title or figure.title, quote=False)},
            "xaxis": x_axis,
            "yaxis": y_axis,
            "showlegend": True,
            "hovermode": "closest",
        }
        plots.append({"data": data, "layout": layout})
    return plots


def _group(series: Series) -> str:
    return series.name if series.group is None else series.group


def _traces(figure: Figure, series: Series, style: Style) -> Iterable[dict[str, Any]]:
    colour = PALETTE[style.colour]
    x = [value if isinstance(value, str) else drawable(value, log=figure.log_x) for value in series.x]
    shown_x = [_inert(value) if isinstance(value, str) else value for value in x]
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
        "name": _inert(series.name),
        "x": shown_x,
        "y": y,
        "text": [_hover(figure, series, i) for i in range(len(series.y))],
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


def _hover(figure: Figure, series: Series, i: int) -> str:
    lines = [
        f"<b>{_inert(series.name)}</b>",
        f"{_inert(figure.x_label)}: {_inert(format_value(series.x[i]))}",
        f"{_inert(figure.y_label)}: {_inert(format_value(series.y[i]))}",
    ]
    if series.low is not None and series.high is not None:
        lines[-1] += f" [{format_value(series.low[i])}, {format_value(series.high[i])}]"
    if series.hover is not None:
        lines.append(_inert(series.hover[i]))
    return "<br>".join(lines)


def _inert(text: str) -> str:
    """Plotly reads a few tags and `%{…}` in its texts; a name is only ever a name."""
    return html.escape(text, quote=False).replace("%{", "%\u200b{")


def _x_axis(figure: Figure) -> dict[str, Any]:
    values = [value for panel in figure.panels for series in panel.series for value in series.x]
    axis: dict[str, Any] = {"title": {"text": _inert(figure.x_label)}, "automargin": True}
    if any(isinstance(value, str) for value in values):
        order = dict.fromkeys(_inert(value if isinstance(value, str) else format_value(value)) for value in values)
        return {**axis, "type": "category", "categoryorder": "array", "categoryarray": list(order)}
    points = sorted({p for value in values if (p := drawable(value, log=figure.log_x)) is not None})
    axis["type"] = "log" if figure.log_x else "linear"
    if points:
        axis["range"] = _range(points, figure.log_x)
        if figure.log_x:
            axis |= _decades(*axis["range"])
    if 1 < len(points) <= _TICKS_AT_POINTS and all(isinstance(point, int) for point in points):
        places = [math.log(point) if figure.log_x else point for point in points]
        closest = min(b - a for a, b in pairwise(places))
        if closest * 14 >= places[-1] - places[0]:
            axis |= {"tickmode": "array", "tickvals": points, "ticktext": [format_value(point) for point in points]}
    return axis


def _y_axis(figure: Figure) -> dict[str, Any]:
    """One range for all panels, so that heights compare across them."""
    points = [
        point
        for panel in figure.panels
        for series in panel.series
        for values in (series.y, series.low or (), series.high or ())
        for value in values
        if (point := drawable(value, log=figure.log_y)) is not None
    ]
    axis: dict[str, Any] = {"title": {"text": _inert(figure.y_label)}, "automargin": True}
    axis["type"] = "log" if figure.log_y else "linear"
    axis |= {"exponentformat": "power", "nticks": 6}
    if points:
        axis["range"] = _range(points, figure.log_y)
        if figure.log_y:
            axis |= _decades(*axis["range"])
    return axis


def _decades(least: float, most: float) -> dict[str, Any]:
    """Ticks of a log axis as full numbers: 1, 2, 5 or 1, 3 in each decade of a short span, else powers of ten."""
    if most - least < 0.7 or max(abs(least), abs(most)) > 300:
        return {}  # too short for round numbers, or too far for a float: Plotly's own ticks do better
    digits = (1, 2, 5) if most - least <= 2.7 else (1, 3) if most - least <= 4 else (1,)
    step = max(1, math.ceil((most - least) / 7))
    powers = [power for power in range(math.floor(least), math.ceil(most) + 1) if power % step == 0]
    ticks = [
        (digit * 10**power if power >= 0 else digit / 10**-power, power)
        for power in powers
        for digit in digits
        if least <= power + math.log10(digit) <= most
    ]
    texts = [format_value(tick) if -3 <= power <= 5 else f"10<sup>{power}</sup>" for tick, power in ticks]
    return {"tickmode": "array", "tickvals": [float(tick) for tick, _ in ticks], "ticktext": texts}


def _range(points: Sequence[float | int], log: bool) -> list[float]:
    places = [math.log10(point) if log else float(point) for point in points]
    least, most = min(places), max(places)
    if least == most:
        margin = 0.5 if log else max(abs(most) * 0.1, 0.5)
    else:
        margin = 0.06 * (most - least)
    return [least - margin, most + margin]
