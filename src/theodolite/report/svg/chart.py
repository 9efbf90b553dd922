"""A chart of squares as one SVG drawing: in the page with its colours, or alone in a file with its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from theodolite.report.answer import own
from theodolite.report.chart import Board, Chart, Square
from theodolite.report.svg.ink import ALONE, ON_PAGE, Ink, ground, opening, text

_WIDE, _HIGH = 47, 27  # of a square
_BETWEEN = 26  # boards
_LETTER, _SMALL = 6.6, 6.1  # of a name and of a note, about
_SLANT = 0.82  # of a slanted name's length goes up


_COLOURS = 3  # of boards
_GAP = 9  # between groups of rows


def board_svgs(chart: Chart) -> list[str]:
    """A drawing for each board: side by side on a page, below each other on a phone."""
    alone = [replace(chart, boards=[one], alt=f"{one.title}: {chart.alt}") for one in chart.boards]
    return [chart_svg(one, first=number) for number, one in enumerate(alone)]


def chart_svg(chart: Chart, alone: bool = False, first: int = 0) -> str:
    """`alone`: for a file of its own, on white. `first`: how many boards come before these."""
    colours = ALONE if alone else ON_PAGE
    left = 14 + _LETTER * max(len(name) for name in chart.rows)
    names = 12 + _SLANT * _LETTER * max(len(name) for name in chart.columns)
    top = 44 + names
    board = max(_WIDE * len(chart.columns), *(_SMALL * len(one.note) for one in chart.boards))
    overhang = _LETTER * 0.6 * len(chart.columns[-1])  # the last slanted name leaves the board
    width = left + len(chart.boards) * (board + _BETWEEN) - _BETWEEN + overhang
    tops = [top + _HIGH * row + _GAP * sum(gap <= row for gap in chart.gaps) for row in range(len(chart.rows))]
    height = tops[-1] + _HIGH + 8
    parts = [opening(width, height, chart.alt)]
    if alone:
        parts.append(ground(width, height))
    for y, name in zip(tops, chart.rows, strict=True):
        parts.append(_name(left - 8, y + _HIGH / 2 + 4, name, colours, "end"))
    for number, one in enumerate(chart.boards):
        colour = colours.series[0 if chart.one_scale else (first + number) % _COLOURS]
        parts += _board(one, chart.columns, left + number * (board + _BETWEEN), tops, colour, colours)
    return "".join([*parts, "</svg>"])


def _board(
    board: Board, columns: Sequence[str], x: float, tops: Sequence[float], colour: str, colours: Ink
) -> list[str]:
    ink = colours.ink
    parts = [
        f'<text x="{x:.1f}" y="16" fill="{ink}" font-size="14" font-weight="bold">{escape(board.title)}</text>',
        text(x, 33, board.note, colours.soft, "start", 11),
    ]
    for column, name in enumerate(columns):
        at, y = x + _WIDE * (column + 0.5), tops[0] - 6
        turned = f' transform="rotate(-55 {at:.1f} {y:.1f})"'
        parts.append(_name(at, y, name, colours, "start", turned))
    for top, squares in zip(tops, board.squares, strict=True):
        for column, square in enumerate(squares):
            parts.append(_square(square, x + _WIDE * column, top, colour, colours))
    return parts


def _square(square: Square, x: float, y: float, colour: str, colours: Ink) -> str:
    known = square.share is not None
    full = 0.04 + 0.56 * min(1.0, max(0.0, square.share)) if square.share is not None else 0.0
    box = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{_WIDE - 2}" height="{_HIGH - 2}" rx="3"'
    hover = f"<title>{escape(square.hover)}</title>" if square.hover else ""
    ink = colours.ink if known else colours.soft
    edge = {
        "plain": f'stroke="{colours.rule}"' + ("" if known else ' stroke-dasharray="2 3"'),
        "open": f'stroke="{colours.soft}" stroke-dasharray="3 3"',
        "against": f'stroke="{colours.series[1]}" stroke-width="2.5"',
    }[square.edge]
    return (
        f'<g>{hover}<rect {box} fill="{colour}" fill-opacity="{full:.2f}" {edge}/>'
        f"{text(x + _WIDE / 2, y + _HIGH / 2 + 4, square.text, ink, 'middle', 11)}</g>"
    )


def _name(x: float, y: float, name: str, colours: Ink, anchor: str, turned: str = "") -> str:
    """The user's own network in its colour."""
    mine = own(name)
    return text(x, y, name, colours.own if mine else colours.ink, anchor, more=turned + ' font-weight="bold"' * mine)
