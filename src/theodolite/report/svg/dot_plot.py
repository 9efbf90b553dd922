"""A figure of kind `dots`: names downwards, values with their intervals along a horizontal axis.

Names are read without tilting the head, intervals of several nets on one task never lie on top of each other, and a
name has room for the series that have it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from theodolite.report.figure import Figure, Panel
from theodolite.report.numbers import format_value
from theodolite.report.svg.frame import Frame
from theodolite.report.svg.ink import Ink, text, width_of
from theodolite.report.svg.points import point, series_group
from theodolite.report.svg.series_style import Style, styles

_NAME_WIDTH = 18  # characters before a name breaks
_ROW, _GAP = 11, 9  # pixels


def names_of(figure: Figure) -> list[str]:
    return list(dict.fromkeys(_name(value) for panel in figure.panels for series in panel.series for value in series.x))


def names_width(figure: Figure) -> float:
    """Pixels left of the plot."""
    return max((width_of(line) for name in names_of(figure) for line in _wrapped(name)), default=0) + 12


def dots_height(figure: Figure) -> float:
    """Pixels that keep the rows apart."""
    return sum(_room(each) for each in _series_of(figure).values())


def dot_rows(figure: Figure, panel: Panel, looks: Mapping[str, Style], frame: Frame, ink: Ink) -> list[str]:
    """Names, the rules between them, and a group of dots for each series."""
    slots = {name: i for i, name in enumerate(looks)}
    found = _series_of(figure)
    middles: dict[str, float] = {}
    parts, edge = [], frame.top
    for i, (name, having) in enumerate(found.items()):
        middles[name] = edge + _room(having) / 2
        parts += _label(_wrapped(name), frame.left - 8, middles[name], ink)
        if i:
            parts.append(f'<path d="M{frame.left:.1f},{edge:.1f}H{frame.right:.1f}" stroke="{ink.faint}"/>')
        edge += _room(having)
    for series in panel.series:
        style = looks[series.name]
        bars, dots = [], []
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            having = found[_name(x)]
            down = middles[_name(x)] + _ROW * (having.index(series.name) - (len(having) - 1) / 2)
            ends = [frame.across(side[i]) for side in (series.low, series.high) if side is not None]
            known = [end for end in ends if end is not None]
            across = frame.across(y)
            if known and across is not None:
                reach = [across, *known]
                bars.append(f"M{min(reach):.1f},{down:.1f}H{max(reach):.1f}")
            if across is not None:
                dots.append(point(figure, series, i, (across, down), style))
        parts.append(series_group(style, slots[series.name], [], bars, dots, ink))
    return parts


def _series_of(figure: Figure) -> dict[str, list[str]]:
    """By name, those that have a value there, in the order of the legend."""
    order = [style.name for style in styles(figure)]
    every = [series for panel in figure.panels for series in panel.series]
    having = {name: {series.name for series in every if name in map(_name, series.x)} for name in names_of(figure)}
    return {name: sorted(found, key=order.index) for name, found in having.items()}


def _room(having: Sequence[str]) -> float:
    return _GAP + _ROW * max(len(having), 2)


def _label(lines: Sequence[str], x: float, middle: float, ink: Ink) -> list[str]:
    first = middle + 4 - 6.5 * (len(lines) - 1)
    return [text(x, first + 13 * i, line, ink.ink, "end", more=' class="tick"') for i, line in enumerate(lines)]


def _name(value: object) -> str:
    return value if isinstance(value, str) else format_value(value)


def _wrapped(name: str) -> list[str]:
    return textwrap.wrap(name, _NAME_WIDTH) or [""]
