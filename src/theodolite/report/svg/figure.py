"""A figure as SVG: a drawing per panel for a page, which sets them side by side, or all of it in one file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from theodolite.report.answer import own
from theodolite.report.figure import Figure, Panel
from theodolite.report.svg.axes import Axis, x_axis, y_axis
from theodolite.report.svg.dot_plot import dot_rows, dots_height, names_width
from theodolite.report.svg.frame import Frame
from theodolite.report.svg.ink import ALONE, ON_PAGE, Ink, ground, opening, text, width_of
from theodolite.report.svg.points import series_line, swatch
from theodolite.report.svg.reference_marks import ROW, reference_marks, rows_above
from theodolite.report.svg.series_style import Style, styles

_SIZES = {1: (420, 180), 2: (330, 160)}  # by number of panels: width, and height inside the axes
_SMALL = (280, 140)
_RIGHT, _BOTTOM = 12, 42
_TITLE = 18  # a line of the title
_LINE = 20  # of a legend


def panel_svgs(figure: Figure, alone: bool = False) -> list[str]:
    """A drawing for each panel, all of one size, with title and axes; `alone`: in colours on white."""
    ink = ALONE if alone else ON_PAGE
    width, _ = _SIZES.get(len(figure.panels), _SMALL)
    looks = {style.name: style for style in styles(figure)}
    titles = [_wrapped(panel.title, width) for panel in figure.panels]
    rows, top = max((rows_above(figure, panel) for panel in figure.panels), default=0), _top(figure, width)
    drawings = []
    for panel, title in zip(figure.panels, titles, strict=True):
        frame, height = _frame(figure, panel, width, top)
        told = f"{panel.title}: {figure.alt}" if panel.title else figure.alt
        parts = [opening(width, height, told, more=' class="plot" tabindex="0"')]
        parts += _title(title, own(panel.title), ink)
        below, labels = reference_marks(figure, panel, frame, ink)
        parts += [*below, *_axes(figure, frame, top - ROW * rows - 8, ink)]
        if figure.kind == "dots":
            parts += dot_rows(figure, panel, looks, frame, ink)
        else:
            order = {name: i for i, name in enumerate(looks)}
            mine = sorted(panel.series, key=lambda series: looks[series.name].own)  # the user's own on top
            parts += [series_line(figure, s, looks[s.name], order[s.name], frame, ink) for s in mine]
        drawings.append("".join([*parts, *labels, "</svg>"]))
    return drawings


def legend(figure: Figure) -> list[tuple[Style, str]]:
    """Each series' style with a small drawing of it; empty where there is nothing to tell apart."""
    found = styles(figure)
    return [(style, swatch(style, ON_PAGE)) for style in found] if len(found) > 1 else []


def figure_svg(figure: Figure) -> str:
    """All panels in one drawing on white, with title and legend, for a file."""
    panels = panel_svgs(figure, alone=True)
    width, _ = _SIZES.get(len(panels), _SMALL)
    columns = min(len(panels), 3) or 1
    found = styles(figure) if len(styles(figure)) > 1 else []
    places, bottom = _legend_places([style.name for style in found], columns * width - 16)
    top = 34 + bottom
    _, height = _frame(figure, figure.panels[0], width, _top(figure, width)) if panels else (None, 0)
    whole = top + height * -(-len(panels) // columns)
    parts = [opening(columns * width, whole, figure.alt), ground(columns * width, whole)]
    parts.append(text(8, 20, figure.title, ALONE.ink, size=14, more=' font-weight="bold"'))
    for style, (x, y) in zip(found, places, strict=True):
        parts.append(f'<g transform="translate({x:.0f},{y + 22:.0f})">{swatch(style, ALONE)}</g>')
        weight = ' font-weight="bold"' if style.own else ""
        parts.append(text(x + 42, y + 33, style.name, ALONE.ink, more=weight))
    for i, panel in enumerate(panels):
        place = f'<svg x="{width * (i % columns)}" y="{top + height * (i // columns):.0f}" height="{height:.0f}" '
        parts.append(panel.replace("<svg ", place, 1))
    return "".join([*parts, "</svg>"])


def _legend_places(names: Sequence[str], room: float) -> tuple[list[tuple[float, float]], float]:
    """Side by side while there is room; and how high the legend is."""
    places: list[tuple[float, float]] = []
    x, y = 8.0, 8.0
    for name in names:
        wide = 52 + width_of(name)
        if x > 8 and x + wide > room:
            x, y = 8.0, y + _LINE
        places.append((x, y))
        x += wide
    return places, y + _LINE if names else 0.0


def _top(figure: Figure, width: float) -> float:
    rows = max((rows_above(figure, panel) for panel in figure.panels), default=0)
    return _TITLE * max((len(_wrapped(panel.title, width)) for panel in figure.panels), default=0) + 20 + ROW * rows


def _frame(figure: Figure, panel: Panel, width: float, top: float) -> tuple[Frame, float]:
    """And the height of the whole drawing."""
    _, inside = _SIZES.get(len(figure.panels), _SMALL)
    if figure.kind == "dots":
        left = names_width(figure)
        values = y_axis(figure, panel)
        bottom = top + dots_height(figure)
        return Frame(left, top, width - _RIGHT, bottom, values, Axis("", 0, 1)), bottom + _BOTTOM
    y = y_axis(figure, panel)
    left = max((width_of(words) for _, words in y.ticks), default=0) + 12
    x = x_axis(figure, width - _RIGHT - left)
    slant = 0.6 * max(width_of(name) for name in x.names) if _slanted(x, width - left) else 0
    return Frame(left, top, width - _RIGHT, top + inside, x, y), top + inside + _BOTTOM + slant


def _slanted(x: Axis, room: float) -> bool:
    return bool(x.names) and max(width_of(name) for name in x.names) + 6 > room / len(x.names)


def _title(lines: Sequence[str], mine: bool, ink: Ink) -> Iterator[str]:
    for i, words in enumerate(lines):
        yield text(0, 13 + _TITLE * i, words, ink.own if mine else ink.ink, size=13, more=' font-weight="bold"')


def _wrapped(title: str, width: float) -> list[str]:
    shown = f"{title} (yours)" if own(title) else title
    return textwrap.wrap(shown, int(width / 8.6)) if shown else []


def _axes(figure: Figure, frame: Frame, head: float, ink: Ink) -> Iterator[str]:
    """Grid, ticks and the names of the axes: the vertical one's above it, so that no head is tilted."""
    dots = figure.kind == "dots"
    for share, words in frame.y.ticks if not dots else ():
        y = frame.bottom - share * (frame.bottom - frame.top)
        yield f'<path d="M{frame.left:.1f},{y:.1f}H{frame.right:.1f}" stroke="{ink.faint}"/>'
        yield text(frame.left - 6, y + 4, words, ink.soft, "end", more=' class="tick"')
    slanted = _slanted(frame.x, frame.right - frame.left)
    for share, words in frame.x.ticks:
        x = frame.left + share * (frame.right - frame.left)
        yield f'<path d="M{x:.1f},{frame.top:.1f}V{frame.bottom:.1f}" stroke="{ink.faint}"/>'
        below = frame.bottom + (12 if slanted else 16)
        turned = f' transform="rotate(-35 {x:.1f} {below:.1f})"' if slanted else ""
        yield text(x, below, words, ink.soft, "end" if slanted else "middle", more=f' class="tick"{turned}')
    corner = f"M{frame.left:.1f},{frame.top:.1f}V{frame.bottom:.1f}H{frame.right:.1f}"
    yield f'<path d="{corner}" stroke="{ink.rule}" fill="none"/>'
    if not dots:
        yield text(0, head, _named(figure.y_label, figure.log_y), ink.soft, size=11, more=' class="axis"')
    across = (figure.y_label, figure.log_y) if dots else (figure.x_label, figure.log_x)
    slant = 0.6 * max(width_of(name) for name in frame.x.names) if slanted else 0
    yield text(frame.right, frame.bottom + 33 + slant, _named(*across), ink.soft, "end", size=11, more=' class="axis"')


def _named(label: str, log: bool) -> str:
    return f"{label} (log scale)" if log else label
