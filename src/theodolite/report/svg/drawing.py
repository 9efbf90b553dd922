"""Pieces of a hand-written SVG: logarithmic axes, markers of several forms, and labels that do not overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape

Point = tuple[float, float]
Box = tuple[float, float, float, float]

_FORMS = {
    "circle": "M-4.6,0a4.6,4.6 0 1 0 9.2,0a4.6,4.6 0 1 0 -9.2,0Z",
    "disc": "M-8.5,0a8.5,8.5 0 1 0 17,0a8.5,8.5 0 1 0 -17,0Z",
    "square": "M-4,-4H4V4H-4Z",
    "triangle": "M0,-5.4L5,3.8H-5Z",
    "diamond": "M0,-5.8L5.2,0L0,5.8L-5.2,0Z",
    "flipped": "M0,5.4L5,-3.8H-5Z",
    "plus": "M-1.7,-5.2H1.7V-1.7H5.2V1.7H1.7V5.2H-1.7V1.7H-5.2V-1.7H-1.7Z",
    "cross": "M-5,-3L-3,-5L0,-2L3,-5L5,-3L2,0L5,3L3,5L0,2L-3,5L-5,3L-2,0Z",
    "bar": "M-5.4,-2.2H5.4V2.2H-5.4Z",
    "hexagon": "M-5,0L-2.5,-4.4H2.5L5,0L2.5,4.4H-2.5Z",
    "star": "M0,-10L2.9,-3.1L9.5,-3.1L4.2,1.4L5.9,8.1L0,4.3L-5.9,8.1L-4.2,1.4L-9.5,-3.1L-2.9,-3.1Z",
    "ring": "M-9,0a9,9 0 1 0 18,0a9,9 0 1 0 -18,0ZM-5,0a5,5 0 1 1 10,0a5,5 0 1 1 -10,0Z",
}


@dataclass(frozen=True)
class LogAxis:
    """Maps values between `low` and `high` to pixels between `start` and `end`, by their logarithms."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return self.start + share * (self.end - self.start)

    def shows(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass
class Labels:
    """Texts placed one after the other, each beside its point where there is room, or left out."""

    frame: Box
    taken: list[Box] = field(default_factory=list)
    size: float = 12.0

    def keep_free(self, point: Point, radius: float) -> None:
        x, y = point
        self.taken.append((x - radius, y - radius, x + radius, y + radius))

    def place(
        self,
        point: Point,
        text: str,
        kind: str = "label",
        gap: float = 9.0,
        *,
        always: bool = False,
        size: float | None = None,
    ) -> str:
        """The text element, or nothing where it would cover something; `size` of letters other than the usual."""
        height = size or self.size
        width = 0.62 * height * len(text)  # a wide guess: fonts differ
        x, y = point
        places = [
            (x + gap, y + 0.35 * height, "start"),
            (x - gap, y + 0.35 * height, "end"),
            (x, y - gap, "middle"),
            (x, y + gap + 0.75 * height, "middle"),
            (x + 0.6 * gap, y - 0.8 * gap, "start"),
            (x + 0.6 * gap, y + 0.8 * gap + 0.7 * height, "start"),
            (x - 0.6 * gap, y - 0.8 * gap, "end"),
            (x - 0.6 * gap, y + 0.8 * gap + 0.7 * height, "end"),
        ]
        for left, base, anchor in places:
            shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
            box = (left - shift, base - 0.8 * height, left - shift + width, base + 0.25 * height)
            if self._free(box):
                self.taken.append(box)
                where = f'x="{left:.1f}" y="{base:.1f}" text-anchor="{anchor}"'
                return f'<text class="{kind}" {where}>{escape(text)}</text>'
        if always:
            return self.place(point, text, kind, gap + 6, always=gap < 120, size=size)
        return ""

    def _free(self, box: Box) -> bool:
        left, top, right, bottom = self.frame
        inside = left <= box[0] and top <= box[1] and box[2] <= right and box[3] <= bottom
        return inside and not any(
            box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in self.taken
        )


def marker(form: str, point: Point, kind: str, title: str, *, scale: float = 1.0) -> str:
    """A form of its own for each kind, so that colour is not the only difference; without a title it says nothing."""
    path, (x, y) = _FORMS[form], point
    place = f"translate({x:.1f},{y:.1f})" + ("" if scale == 1 else f" scale({scale:g})")
    rule = ' fill-rule="evenodd"' if form == "ring" else ""
    start = f'<path class="{kind}" d="{path}"{rule} transform="{place}"'
    return f"{start}><title>{escape(title)}</title></path>" if title else f"{start}/>"


def line(points: list[Point], kind: str, *, closed: bool = False) -> str:
    path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points) + ("Z" if closed else "")
    return f'<path class="{kind}" d="{path}"/>'
