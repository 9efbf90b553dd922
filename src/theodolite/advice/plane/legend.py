"""The legend of the depth–width plane: a sample of everything that is drawn, with what it means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape

from theodolite.advice.plane.style import LINEAGES, Layout
from theodolite.report.svg.drawing import Point, line, marker

Sample = Callable[[Point], str]

ROW = 20


def legend(layout: Layout, drawn: frozenset[str], names: dict[str, str]) -> Iterator[str]:
    """Below the plane, of what is `drawn` by its classes; `names` are what the marks are called."""
    entries = [entry for kind, entry in _entries(names) if kind in drawn]
    rows = math.ceil(len(entries) / layout.columns)
    column = (layout.width - layout.left - layout.right) / layout.columns
    left, top = (layout.left + 8, layout.bottom + 66) if layout.columns > 1 else (26, layout.bottom + 66)
    yield '<g class="key">'
    for place, (sample, text) in enumerate(entries):
        x, y = left + column * (place // rows), top + ROW * (place % rows)
        yield sample((x, y - 4.0))
        yield f'<text class="legend" x="{x + 20:.1f}" y="{y}">{escape(text)}</text>'
    yield "</g>"


def legend_height(layout: Layout, drawn: frozenset[str], names: dict[str, str]) -> int:
    rows = math.ceil(sum(kind in drawn for kind, _ in _entries(names)) / layout.columns)
    return 66 + ROW * rows


def _entries(names: dict[str, str]) -> Iterator[tuple[str, tuple[Sample, str]]]:
    for form, name in names.items():
        yield form, (_mark(form, "mark"), name)
    yield "move", (_stroke("move"), "from yours to the advised one")
    yield "used", (_area("used"), "width over depth in use at a size")
    yield "median", (_stroke("median"), "the median of those in use")
    yield "fit", (_stroke("fit"), "published fit, depths 6 to 48")
    yield "outside", (_stroke("fit outside"), "the same, extrapolated")
    yield "band", (_area("band"), "its published ±")
    yield "boundary", (_stroke("boundary"), "L = log3 d, Theorem 7.1 on its left")
    yield "size", (_stroke("size"), "equal N = 12·L·d² parameters")
    yield "several", (_several, "so many models of one shape")
    for place, (name, form, _) in enumerate(LINEAGES):
        yield f"series-{place}", (_mark(form, f"model series-{place}"), name)


def _mark(form: str, kind: str) -> Sample:
    return lambda point: marker(form, point, kind, "", scale=0.8 if kind == "mark" else 1.0)


def _several(point: Point) -> str:
    x, y = point
    number = f'<text class="number" x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle">3</text>'
    return marker("disc", point, "several", "") + number


def _stroke(kind: str) -> Sample:
    return lambda point: line([(point[0] - 12, point[1]), (point[0] + 12, point[1])], kind)


def _area(kind: str) -> Sample:
    def sample(point: Point) -> str:
        x, y = point
        return line([(x - 12, y - 5), (x + 12, y - 5), (x + 12, y + 5), (x - 12, y + 5)], kind, closed=True)

    return sample
