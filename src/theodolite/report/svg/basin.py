"""The picture of a map's basins: one square per start, coloured by where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#eeca3b", "#72b7b2", "#ff9da6", "#9d755d")
_SIDE, _MARGIN = 480, 44
_STRIP = 64  # high, where starts are on a line
# Where a start diverges the page is seen; what does neither has its own shade on either.
_STYLE = (
    "<style>.basin text{fill:#222}.basin .page{fill:#fff}.basin .neither{fill:#333}"
    "@media screen and (prefers-color-scheme:dark){.basin text{fill:#e6e8ea}.basin .page{fill:#15181b}"
    ".basin .neither{fill:#c8ccd0}}</style>"
)


def draw_basin(
    labels: Sequence[Sequence[int]],
    names: Sequence[str],
    within: tuple[float, float],
    title: str,
    *,
    narrow: bool = False,
) -> str:
    """An SVG. `labels` index `names`, −1 diverges, −2 neither; rows from low to high, or one row for starts on a line.
    Runs of one label are one bar. `narrow`: the legend stands below and not beside."""
    line = len(labels) == 1
    side = _STRIP if line else _SIDE
    cell, high = _SIDE / len(labels[0]), side / len(labels)
    bars = []
    for number, row in enumerate(labels):
        top = _MARGIN + side - (number + 1) * high
        for start, end, label in _runs(row):
            if label != -1:
                place = f'x="{_MARGIN + start * cell:.2f}" y="{top:.2f}"'
                size = f'width="{(end - start) * cell:.2f}" height="{high + 0.2:.2f}"'
                bars.append(f"<rect {place} {size} {_colour(label)}/>")
    used = sorted({label for row in labels for label in row}, key=lambda label: (label < 0, abs(label)))
    legend = []
    for number, label in enumerate(used[:12]):
        name = names[label] if label >= 0 else "diverges" if label == -1 else "neither repeats nor diverges"
        y = 14 + (26 * number + side + 2 * _MARGIN if narrow else 22 * number + _MARGIN)
        left = _MARGIN + (0 if narrow else _SIDE + 18)
        legend.append(f'<rect x="{left}" y="{y - 11}" width="14" height="14" {_colour(label)} stroke="#888"/>')
        legend.append(f'<text x="{left + 20}" y="{y}">{escape(name)}</text>')
    width = _SIDE + 2 * _MARGIN if narrow else _MARGIN + _SIDE + 300
    height = side + 2 * _MARGIN + (26 * len(used[:12]) + 8 if narrow else 0)
    height = max(height, 0 if narrow else _MARGIN + 22 * len(used[:12]) + 8)
    least, most = (f"{end:g}".replace("-", "−") for end in within)
    bottom = _MARGIN + side + 18
    upwards = [
        f'<text x="{_MARGIN - 6}" y="{_MARGIN + side}" text-anchor="end">{least}</text>',
        f'<text x="{_MARGIN - 6}" y="{_MARGIN + 12}" text-anchor="end">{most}</text>',
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'class="basin" font-family="sans-serif" font-size="{19 if narrow else 13}">',
            _STYLE,
            '<rect width="100%" height="100%" class="page"/>',
            f'<text x="{_MARGIN}" y="{_MARGIN - 16}" font-size="{20 if narrow else 15}">{escape(title)}</text>',
            f'<rect x="{_MARGIN}" y="{_MARGIN}" width="{_SIDE}" height="{side}" class="page" stroke="#888"/>',
            '<g shape-rendering="crispEdges">',
            *bars,
            "</g>",
            f'<text x="{_MARGIN}" y="{bottom}">{least}</text>',
            f'<text x="{_MARGIN + _SIDE}" y="{bottom}" text-anchor="end">{most}</text>',
            *([] if line else upwards),
            *legend,
            "</svg>\n",
        ]
    )


def _runs(row: Sequence[int]) -> list[tuple[int, int, int]]:
    """(start, end, label) of equal neighbours."""
    found: list[tuple[int, int, int]] = []
    for place, label in enumerate(row):
        if found and found[-1][2] == label:
            found[-1] = (found[-1][0], place + 1, label)
        else:
            found.append((place, place + 1, label))
    return found


def _colour(label: int) -> str:
    """As an attribute."""
    if label >= 0:
        return f'fill="{_COLOURS[label % len(_COLOURS)]}"'
    return 'class="page"' if label == -1 else 'class="neither"'
