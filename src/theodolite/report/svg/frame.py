"""The room of one plot: from values to pixels, and from what is drawn to the labels that keep away from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from theodolite.report.figure import Panel
from theodolite.report.svg.axes import Axis
from theodolite.report.svg.drawing import Point

_STEPS = 16  # a line between two points is looked at in so many places


@dataclass(frozen=True)
class Frame:
    """`left` to `right` and `top` to `bottom` are pixels of the picture; `x` and `y` the axes that lie along them."""

    left: float
    top: float
    right: float
    bottom: float
    x: Axis
    y: Axis

    def across(self, value: object) -> float | None:
        share = self.x.share(value)
        return None if share is None else self.left + share * (self.right - self.left)

    def down(self, value: object) -> float | None:
        share = self.y.share(value)
        return None if share is None else self.bottom - share * (self.bottom - self.top)

    def at(self, x: object, y: object) -> Point | None:
        across, down = self.across(x), self.down(y)
        return None if across is None or down is None else (across, down)


def drawn(panel: Panel, frame: Frame) -> Iterator[Point]:
    """Where the panel's points, the ends of their intervals and the lines between the points lie."""
    for series in panel.series:
        last: Point | None = None
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            for ends in (series.low, series.high):
                if ends is not None and (end := frame.at(x, ends[i])) is not None:
                    yield end
            here = frame.at(x, y)
            if here is not None:
                yield here
                if last is not None:
                    for step in range(1, _STEPS):
                        share = step / _STEPS
                        yield last[0] + share * (here[0] - last[0]), last[1] + share * (here[1] - last[1])
            last = here
