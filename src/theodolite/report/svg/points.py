"""One series of a panel: its line, its intervals, and points that say what they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

from theodolite.report.figure import Figure, Series
from theodolite.report.svg.drawing import Point, marker
from theodolite.report.svg.frame import Frame
from theodolite.report.svg.ink import Ink
from theodolite.report.svg.read_out import read_out
from theodolite.report.svg.series_style import Style

_BAND_FROM = 13  # a band where so many points or more would make error bars a thicket
_NEAR = 4.5  # pixels between the points of a curve of many
_MARKED = 5  # of so many points every fifth has the form of its series


def series_line(figure: Figure, series: Series, style: Style, number: int, frame: Frame, ink: Ink) -> str:
    """`number`: of the series in the legend."""
    at = [frame.at(x, y) for x, y in zip(series.x, series.y, strict=True)]
    bars: list[str] = []
    fills: list[str] = []
    if series.low is not None or series.high is not None:
        ends = [
            [frame.at(x, end if end is not None else y) for x, y, end in zip(series.x, series.y, side, strict=True)]
            for side in (series.low or series.y, series.high or series.y)
        ]
        if len(at) >= _BAND_FROM and not frame.x.names:
            fills = [_fill(*ends)]
        else:
            bars = [_bar(low, high) for low, high in zip(*ends, strict=True) if low and high and low != high]
    many = len(at) >= _BAND_FROM
    shown = [(i, here) for i, here in enumerate(at) if here]
    dots = [
        point(figure, series, i, here, style, small=many and place % _MARKED > 0)
        for place, (i, here) in enumerate(_apart(shown) if many else shown)
    ]
    runs = [[here for here in run if here] for known, run in groupby(at, key=bool) if known]
    path = "".join(_path(run) for run in runs if len(run) > 1)
    return series_group(style, number, fills, bars, dots, ink, path)


def series_group(
    style: Style, place: int, fills: Sequence[str], bars: Sequence[str], dots: Sequence[str], ink: Ink, path: str = ""
) -> str:
    """Everything of one series, in its colour; the page's script finds it by its number in the legend."""
    colour, thick = style.paint(ink), 3.2 if style.own else 1.8
    parts = [f'<path d="{fill}" fill="{colour}" fill-opacity="0.16" stroke="none"/>' for fill in fills if fill]
    if bars:
        parts.append(f'<path d="{"".join(bars)}" stroke-width="1.3" stroke-opacity="0.6"/>')
    if path:
        dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
        parts.append(f'<path d="{path}" stroke-width="{thick}"{dash} stroke-linejoin="round"/>')
    inside = f'fill="{ink.page}" stroke-width="1.6"' if style.dash else f'fill="{colour}" stroke="none"'
    parts.append(f"<g {inside}>{''.join(dots)}</g>")
    return f'<g class="series" data-series="{place}" fill="none" stroke="{colour}">{"".join(parts)}</g>'


def point(figure: Figure, series: Series, i: int, at: Point, style: Style, *, small: bool = False) -> str:
    """A mark of the series' form; one of many is a `small` dot that says its number briefly."""
    larger = 1.25 if style.own else 1
    if small:
        place = f'cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{2.2 * larger:.1f}"'
        told = escape(read_out(figure, series, i, brief=True))
        return f'<circle class="point" {place}><title>{told}</title></circle>'
    return marker(style.symbol, at, "point", read_out(figure, series, i), scale=0.85 * larger)


def swatch(style: Style, ink: Ink) -> str:
    """How a series looks, for the legend."""
    line = "M1,7H35"
    drawn = series_group(style, 0, [], [], [marker(style.symbol, (18, 7), "", "", scale=0.9)], ink, line)
    return drawn.replace(' class="series" data-series="0"', "")


def _apart(points: Sequence[tuple[int, Point]]) -> list[tuple[int, Point]]:
    """Without those that would lie on the one before; the line goes through them, and the table of points has them."""
    kept: list[tuple[int, Point]] = []
    for i, here in points:
        if not kept or math.dist(kept[-1][1], here) >= _NEAR or i == points[-1][0]:
            kept.append((i, here))
    return kept


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _bar(low: Point, high: Point) -> str:
    (x, start), (_, end) = low, high
    caps = "".join(f"M{x - 3:.1f},{y:.1f}h6" for y in (start, end))
    return f"M{x:.1f},{start:.1f}V{end:.1f}{caps}"


def _fill(low: Sequence[Point | None], high: Sequence[Point | None]) -> str:
    kept = [(a, b) for a, b in zip(low, high, strict=True) if a and b]
    return _path([b for _, b in kept] + [a for a, _ in reversed(kept)]) + "Z" if len(kept) > 1 else ""
