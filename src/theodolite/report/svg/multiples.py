"""Many small plots as one SVG drawing: in the page with its colours, or alone in a file with its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import groupby

from theodolite.report.answer import own
from theodolite.report.multiples import Curve, Multiples, Plot
from theodolite.report.svg.ink import ALONE, ON_PAGE, Ink, ground, opening, text

_WIDE, _HIGH = 104, 56  # of a plot
_ACROSS, _DOWN = 14, 16  # between plots
_LETTER = 6.6  # of a name, about


def multiples_svg(multiples: Multiples, alone: bool = False) -> str:
    """`alone`: for a file of its own, on white. The first plot of the last row carries the numbers of the axes."""
    colours = ALONE if alone else ON_PAGE
    left = 14 + _LETTER * max(len(name) for name in multiples.rows)
    top = 26
    width = left + 30 + len(multiples.columns) * (_WIDE + _ACROSS)
    height = top + len(multiples.rows) * (_HIGH + _DOWN) + 30
    parts = [opening(width, height, multiples.alt)]
    if alone:
        parts.append(ground(width, height))
    at = [left + 30 + column * (_WIDE + _ACROSS) for column in range(len(multiples.columns))]
    down = [top + row * (_HIGH + _DOWN) for row in range(len(multiples.rows))]
    for x, name in zip(at, multiples.columns, strict=True):
        parts.append(text(x + _WIDE / 2, 15, name, colours.own if own(name) else colours.ink, "middle"))
    for y, name, plots in zip(down, multiples.rows, multiples.plots, strict=True):
        parts.append(text(left - 8, y + _HIGH / 2 + 4, name, colours.own if own(name) else colours.ink, "end"))
        for x, plot in zip(at, plots, strict=True):
            if plot is not None:
                parts += _plot(plot, multiples, x, y, colours)
    parts += _axes(multiples, at[0], down[-1], colours)
    return "".join([*parts, "</svg>"])


def _plot(plot: Plot, multiples: Multiples, left: float, top: float, colours: Ink) -> Iterator[str]:
    place = _Place(multiples, left, top)
    yield f"<g><title>{escape(plot.hover)}</title>" if plot.hover else "<g>"
    box = f'x="{left:.1f}" y="{top:.1f}" width="{_WIDE}" height="{_HIGH}"'
    yield f'<rect {box} fill="none" stroke="{colours.rule}"/>'
    if plot.shaded is not None:
        start, end = (place.x(min(max(value, multiples.x[0]), multiples.x[1])) for value in plot.shaded)
        yield f'<rect x="{start:.1f}" y="{top:.1f}" width="{end - start:.1f}" height="{_HIGH}" fill="{colours.faint}"/>'
    if plot.level is not None:
        y = place.y(plot.level)
        yield f'<path d="M{left:.1f},{y:.1f}h{_WIDE}" stroke="{colours.soft}" stroke-dasharray="2 3" fill="none"/>'
    for curve in sorted(plot.curves, key=lambda curve: not curve.faint):
        yield _curve(curve, place, colours)
    if plot.text:
        yield text(left + _WIDE - 4, top + _HIGH - 5, plot.text, colours.soft, "end", 10)
    yield "</g>"


class _Place:
    """From values to pixels of one plot."""

    def __init__(self, multiples: Multiples, left: float, top: float) -> None:
        self.across = [math.log(v) if multiples.log_x else v for v in multiples.x]
        self.up, self.log, self.left, self.top = multiples.y, multiples.log_x, left, top

    def x(self, value: float) -> float:
        low, high = self.across
        return self.left + _WIDE * ((math.log(value) if self.log else value) - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.up
        return self.top + _HIGH * (high - min(max(value, low), high)) / (high - low)


def _curve(curve: Curve, place: _Place, colours: Ink) -> str:
    """Broken where there is no value; a point alone is a dot."""
    path = []
    for known, points in groupby(zip(curve.x, curve.y, strict=True), key=lambda point: point[1] is not None):
        if known:
            drawn = [f"{place.x(x):.1f},{place.y(y):.1f}" for x, y in points if y is not None]
            path.append("M" + "L".join(drawn if len(drawn) > 1 else drawn * 2))
    thick, full = (1.0, 0.45) if curve.faint else (1.8, 1.0)
    look = f'stroke="{colours.series[0]}" stroke-width="{thick}" stroke-opacity="{full}" stroke-linecap="round"'
    return f'<path d="{"".join(path)}" fill="none" stroke-linejoin="round" {look}/>'


def _axes(multiples: Multiples, left: float, top: float, colours: Ink) -> list[str]:
    (low, high), (bottom, ceiling) = multiples.x, multiples.y
    under = top + _HIGH + 12
    return [
        text(left, under, f"{low:g}", colours.soft, "start", 10),
        text(left + _WIDE, under, f"{high:g}", colours.soft, "end", 10),
        text(left, under + 13, multiples.x_label, colours.soft, "start", 10),
        text(left - 4, top + _HIGH, f"{bottom:g}", colours.soft, "end", 10),
        text(left - 4, top + 8, f"{ceiling:g}", colours.soft, "end", 10),
        text(left - 4, top + _HIGH / 2 + 3, multiples.y_label, colours.soft, "end", 9),
    ]
