"""Shaded ranges and reference lines of a panel, with labels put where they hide no point."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.report.colours import FAINT, SOFT
from theodolite.report.figure import Band, Figure, Line, Panel
from theodolite.report.numbers import drawable
from theodolite.report.page.dot_plot import dividers
from theodolite.report.page.hover import inert

# The size of a label as a share of a small panel, about 150 by 170 pixels inside its axes.
_LETTER, _HEIGHT = 0.042, 0.1
_LINE = 21  # letters before a label breaks
_ROW = 15  # pixels of the top margin for each label above the plot
_STEPS = 16  # a line between two points is looked at in so many places


@dataclass(frozen=True)
class Box:
    """A label's place in the panel, both axes from 0 to 1."""

    left: float
    right: float
    bottom: float
    top: float

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.bottom <= y <= self.top

    def meets(self, other: Box) -> bool:
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.top <= other.bottom or other.top <= self.bottom)


def reference_marks(figure: Figure, panel: Panel, axes: Mapping[str, Any]) -> dict[str, Any]:
    """Layout entries; empty without bands, lines or dividers. Colours are the page's, by what a shape is named."""
    bands, lines = (*figure.bands, *panel.bands), (*figure.lines, *panel.lines)
    dots = figure.kind == "dots"
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    if dots:
        shapes += [_shape("divider", x=(0, 1), y=(at, at), across="x") for at in dividers(figure)]
        upright = [line for line in lines if line.axis == "y"]  # values lie along the horizontal axis
        level: list[Line] = []
    else:
        upright = [line for line in lines if line.axis == "x"] if _numeric(axes["xaxis"]) else []
        level = [line for line in lines if line.axis == "y"]
        for band in bands if _numeric(axes["xaxis"]) else ():
            shapes.append(_band(band, axes["xaxis"]))
            notes.append(_above(band.label, (shapes[-1]["x0"], shapes[-1]["x1"]), axes["xaxis"], len(notes)))
    for line in upright:
        shapes.append(_shape("line", x=(line.value, line.value), y=(0, 1), across="y"))
        notes.append(_above(line.label, (line.value, line.value), axes["xaxis"], len(notes)))
    rows = len(notes)
    taken: list[Box] = []
    for line in level:
        if drawable(line.value, log=figure.log_y) is None:
            continue
        shapes.append(_shape("line", x=(0, 1), y=(line.value, line.value), across="x"))
        box, note = _beside(figure, panel, axes, line, taken)
        taken.append(box)
        notes.append(note)
    found: dict[str, Any] = {"shapes": shapes} if shapes else {}
    if notes:
        found |= {"annotations": notes, "margin": {"t": 8 + _ROW * rows}}
    return found


def _shape(name: str, x: tuple[float, float], y: tuple[float, float], across: str) -> dict[str, Any]:
    """A straight line over the whole panel along `across`."""
    return {
        "name": name,
        "type": "line",
        "layer": "below",
        "xref": "x domain" if across == "x" else "x",
        "yref": "y domain" if across == "y" else "y",
        "x0": x[0],
        "x1": x[1],
        "y0": y[0],
        "y1": y[1],
        "line": {"width": 1, "dash": "solid" if name == "divider" else "dot", "color": SOFT},
    }


def _band(band: Band, axis: Mapping[str, Any]) -> dict[str, Any]:
    least, most = (10**end if axis["type"] == "log" else end for end in axis["range"])
    return {
        "name": "band",
        "type": "rect",
        "layer": "below",
        "xref": "x",
        "yref": "y domain",
        "x0": min(max(band.low, least), most),
        "x1": max(min(band.high, most), least),
        "y0": 0,
        "y1": 1,
        "fillcolor": FAINT,
        "line": {"width": 0},
    }


def _above(label: str, ends: tuple[float, float], axis: Mapping[str, Any], row: int) -> dict[str, Any]:
    """A label over the plot, inside its width: from the left end rightwards, or from the right end leftwards."""
    low, high = (math.log10(end) if axis["type"] == "log" else end for end in ends)
    least, most = axis["range"]
    rightwards = (low + high) / 2 - least <= 0.55 * (most - least)
    return _note(label) | {
        "xref": "x",
        "x": low if rightwards else high,
        "xanchor": "left" if rightwards else "right",
        "yref": "y domain",
        "y": 1,
        "yanchor": "bottom",
        "yshift": _ROW * row,
    }


def _beside(
    figure: Figure, panel: Panel, axes: Mapping[str, Any], line: Line, taken: list[Box]
) -> tuple[Box, dict[str, Any]]:
    """A label on its line, at the end and on the side where it covers the least."""
    height = _share(line.value, axes["yaxis"])
    wrapped = textwrap.wrap(line.label, _LINE) or [""]
    width, depth = min(_LETTER * max(map(len, wrapped)) + 0.02, 0.9), _HEIGHT * len(wrapped)
    drawn = list(_ink(figure, panel, axes))

    def box(at: tuple[str, str]) -> Box:
        left = 1 - width if at[0] == "right" else 0.0
        bottom = height if at[1] == "above" else height - depth
        return Box(left, left + width, bottom, bottom + depth)

    def cost(at: tuple[str, str]) -> float:
        place = box(at)
        outside = place.bottom < 0 or place.top > 1.02
        return 1000 * (outside + sum(place.meets(other) for other in taken)) + sum(place.holds(*p) for p in drawn)

    best = min((("right", "above"), ("left", "above"), ("right", "below"), ("left", "below")), key=cost)
    note = _note(*wrapped) | {
        "xref": "x domain",
        "x": 1 if best[0] == "right" else 0,
        "xanchor": best[0],
        "align": best[0],
        "yref": "y",
        "y": math.log10(line.value) if figure.log_y else line.value,
        "yanchor": "bottom" if best[1] == "above" else "top",
    }
    return box(best), note


def _ink(figure: Figure, panel: Panel, axes: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """Where the panel's points, intervals and the lines between the points lie."""
    names = {name: i for i, name in enumerate(axes["xaxis"].get("categoryarray", ()))}
    for series in panel.series:
        last: tuple[float, float] | None = None
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            if names:
                across = (names.get(inert(str(x)), 0) + 0.5) / len(names)
            else:
                place = drawable(x, log=figure.log_x)
                across = None if place is None else _share(place, axes["xaxis"])
            for value in (series.low[i] if series.low else None, series.high[i] if series.high else None):
                if across is not None and (end := drawable(value, log=figure.log_y)) is not None:
                    yield across, _share(end, axes["yaxis"])
            point = drawable(y, log=figure.log_y)
            here = None if across is None or point is None else (across, _share(point, axes["yaxis"]))
            if here is not None:
                yield here
                if last is not None:
                    for step in range(1, _STEPS):
                        share = step / _STEPS
                        yield last[0] + share * (here[0] - last[0]), last[1] + share * (here[1] - last[1])
            last = here


def _share(value: float, axis: Mapping[str, Any]) -> float:
    least, most = axis["range"]
    return ((math.log10(value) if axis["type"] == "log" else value) - least) / (most - least)


def _numeric(axis: Mapping[str, Any]) -> bool:
    return "range" in axis


def _note(*lines: str) -> dict[str, Any]:
    text = "<br>".join(inert(line) for line in lines)
    return {"text": text, "showarrow": False, "borderpad": 1, "font": {"size": 11, "color": SOFT}}
