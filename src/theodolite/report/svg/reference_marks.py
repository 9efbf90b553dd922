"""Shaded ranges and reference lines of a panel, with labels put where they hide no point."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from theodolite.report.figure import Figure, Line, Panel
from theodolite.report.svg.drawing import Point
from theodolite.report.svg.frame import Frame, drawn
from theodolite.report.svg.ink import Ink, text, width_of

_SIZE = 11
_LINE = 21  # letters before a label breaks
ROW = 15  # pixels above the plot for each label there


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def holds(self, point: Point) -> bool:
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom

    def meets(self, other: Box) -> bool:
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)


def rows_above(figure: Figure, panel: Panel) -> int:
    """How many labels stand above the plot, each on a row of its own."""
    if figure.kind == "dots":
        return sum(line.axis == "y" for line in (*figure.lines, *panel.lines))
    if any(isinstance(x, str) for one in figure.panels for series in one.series for x in series.x):
        return 0  # names have no ranges
    upright = sum(line.axis == "x" for line in (*figure.lines, *panel.lines))
    return len(figure.bands) + len(panel.bands) + upright


def reference_marks(figure: Figure, panel: Panel, frame: Frame, ink: Ink) -> tuple[list[str], list[str]]:
    """What lies below the points, and the labels that lie above them."""
    lines = (*figure.lines, *panel.lines)
    below: list[str] = []
    labels: list[str] = []
    upright = [line for line in lines if line.axis == ("y" if figure.kind == "dots" else "x")]
    level = [] if figure.kind == "dots" else [line for line in lines if line.axis == "y"]
    if not frame.x.names:
        for band in (*figure.bands, *panel.bands) if figure.kind != "dots" else ():
            low, high = (_clipped(frame.across(end), frame, end) for end in (band.low, band.high))
            below.append(
                f'<rect x="{low:.1f}" y="{frame.top:.1f}" width="{max(high - low, 0):.1f}" '
                f'height="{frame.bottom - frame.top:.1f}" fill="{ink.faint}"/>'
            )
            labels.append(_above(band.label, (low, high), frame, len(labels), ink))
        for line in upright:
            x = frame.across(line.value)
            if x is not None and frame.left <= x <= frame.right:
                below.append(_rule((x, frame.top), (x, frame.bottom), ink))
                labels.append(_above(line.label, (x, x), frame, len(labels), ink))
    taken: list[Box] = []
    for line in level:
        y = frame.down(line.value)
        if y is not None:
            below.append(_rule((frame.left, y), (frame.right, y), ink))
            box, label = _beside(line, y, list(drawn(panel, frame)), frame, taken, ink)
            taken.append(box)
            labels += label
    return below, labels


def _clipped(x: float | None, frame: Frame, value: float) -> float:
    """On a log axis 0 lies left of everything."""
    if x is None:
        return frame.left if value <= 0 else frame.right
    return min(max(x, frame.left), frame.right)


def _rule(start: Point, end: Point, ink: Ink) -> str:
    path = f"M{start[0]:.1f},{start[1]:.1f}L{end[0]:.1f},{end[1]:.1f}"
    return f'<path class="reference" d="{path}" stroke="{ink.soft}" stroke-dasharray="2 3" fill="none"/>'


def _above(label: str, ends: tuple[float, float], frame: Frame, row: int, ink: Ink) -> str:
    """A label over the plot, inside its width: from the left end rightwards, or from the right end leftwards."""
    low, high = ends
    rightwards = (low + high) / 2 - frame.left <= 0.55 * (frame.right - frame.left)
    x, anchor = (low, "start") if rightwards else (high, "end")
    return text(x, frame.top - 5 - ROW * row, label, ink.soft, anchor, _SIZE, ' class="label"')


def _beside(
    line: Line, y: float, points: Sequence[Point], frame: Frame, taken: Sequence[Box], ink: Ink
) -> tuple[Box, list[str]]:
    """A label on its line, at the end and on the side where it covers the least."""
    wrapped = textwrap.wrap(line.label, _LINE) or [""]
    width = min(max(width_of(words, _SIZE) for words in wrapped) + 4, frame.right - frame.left)
    height = 13.0 * len(wrapped) + 2

    def box(at: tuple[str, str]) -> Box:
        left = frame.right - width if at[0] == "right" else frame.left
        top = y - height if at[1] == "above" else y
        return Box(left, top, left + width, top + height)

    def cost(at: tuple[str, str]) -> float:
        place = box(at)
        outside = place.top < frame.top - 4 or place.bottom > frame.bottom
        return 1000 * (outside + sum(place.meets(other) for other in taken)) + sum(map(place.holds, points))

    best = min((("right", "above"), ("left", "above"), ("right", "below"), ("left", "below")), key=cost)
    place = box(best)
    x, anchor = (place.right - 2, "end") if best[0] == "right" else (place.left + 3, "start")
    halo = f' class="label" paint-order="stroke" stroke="{ink.page}" stroke-width="3" stroke-linejoin="round"'
    return place, [
        text(x, place.top + 11 + 13 * i, words, ink.soft, anchor, _SIZE, halo) for i, words in enumerate(wrapped)
    ]
