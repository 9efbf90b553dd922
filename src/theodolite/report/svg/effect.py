"""One effect as an SVG drawing in the page's colours: a curve with its band, or a map, and where there are data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise

from theodolite.report.numbers import format_value
from theodolite.report.svg.ink import opening

_WIDE, _HIGH = 300, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 8, 40
_STRIP = 18  # of the histogram below a curve
_STEPS = 20  # shades of a map, each way
_WORD = 9  # letters of a category that are shown


def curve_svg(
    name: str,
    values: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    seen: Sequence[float],
    words: Sequence[str] | None = None,
) -> str:
    """`words` name the values of a category, which then stand apart; `seen` are values of the data."""
    bottom, top = _padded(min(*low, *mean), max(*high, *mean))
    down = lambda y: _TOP + (top - y) / (top - bottom) * (_HIGH - _TOP - _BOTTOM - _STRIP)
    places = list(range(len(values))) if words else list(values)
    first, last = _padded(places[0], places[-1], 0.5 / max(1, len(places) - 1) if words else 0.02)
    across = lambda x: _LEFT + (x - first) / (last - first) * (_WIDE - _LEFT - _RIGHT)
    told = f"effect of {name}, from {min(mean):.3g} to {max(mean):.3g}"
    parts = [
        opening(_WIDE, _HIGH, told, 10.5),
        *_y_axis([bottom, 0.0, top] if bottom < 0 < top else [bottom, top], down),
    ]
    if bottom < 0 < top:
        parts.append(_line(_LEFT, down(0), _WIDE - _RIGHT, down(0), "var(--rule)"))
    if words:
        for x, m, lo, hi in zip(places, mean, low, high, strict=True):
            parts.append(_line(across(x), down(lo), across(x), down(hi), "var(--series-0)", 5, 0.35))
            parts.append(f'<circle cx="{across(x):.1f}" cy="{down(m):.1f}" r="4" fill="var(--series-0)"/>')
    else:
        band = [(across(x), down(y)) for x, y in zip(places, high, strict=True)]
        band += [(across(x), down(y)) for x, y in zip(reversed(places), reversed(low), strict=True)]
        parts.append(f'<path d="{_path(band)}Z" fill="var(--series-0)" fill-opacity="0.22"/>')
        line = [(across(x), down(y)) for x, y in zip(places, mean, strict=True)]
        parts.append(f'<path d="{_path(line)}" fill="none" stroke="var(--series-0)" stroke-width="2"/>')
    if words:
        counted = [sum(1 for one in seen if one == value) for value in values]
        ends = [(x - 0.3, x + 0.3) for x in places]
    else:
        counted, ends = _histogram(seen, values[0], values[-1])
    base, most = _HIGH - _BOTTOM, max(1, *counted)
    for count, (start, end) in zip(counted, ends, strict=True):
        if count:
            height = _STRIP * 0.85 * count / most
            x, width = across(start), across(end) - across(start)
            parts.append(_box(x, base - height, max(1.0, width - 1), height, "var(--soft)", 0.45))
    labels = zip(places, words, strict=True) if words else zip(_ends(values), map(_number, _ends(values)), strict=True)
    parts += _x_axis(name, [(across(x), word) for x, word in labels])
    return "".join([*parts, "</svg>"])


def map_svg(
    names: tuple[str, str],
    values: tuple[Sequence[float], Sequence[float]],
    mean: Sequence[Sequence[float]],
    seen: Sequence[Sequence[float]],
    words: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None),
) -> str:
    """Orange is above the mean, blue below, each as far as the largest; dots are rows of the data. `words` name the
    values of a category, which then stand at equal distances, its dots side by side."""
    (xs, x_seen), (ys, y_seen) = (
        _apart(values[k], [row[k] for row in seen]) if words[k] else (values[k], [row[k] for row in seen])
        for k in (0, 1)
    )
    largest = max(abs(one) for row in mean for one in row) or 1.0
    x_edges, y_edges = _edges(xs), _edges(ys)
    across = lambda x: _LEFT + (x - x_edges[0]) / (x_edges[-1] - x_edges[0]) * (_WIDE - _LEFT - _RIGHT)
    down = lambda y: _TOP + (y_edges[-1] - y) / (y_edges[-1] - y_edges[0]) * (_HIGH - _TOP - _BOTTOM)
    flat = [one for row in mean for one in row]
    parts = [
        opening(_WIDE, _HIGH, f"effect of {names[0]} and {names[1]}, from {min(flat):.3g} to {max(flat):.3g}", 10.5)
    ]
    for i, row in enumerate(mean):
        for j, one in enumerate(row):
            share = round(_STEPS * abs(one) / largest) / _STEPS
            kind = "var(--series-1)" if one > 0 else "var(--series-0)"
            colour = f"color-mix(in srgb, {kind} {85 * share:.0f}%, var(--page))"  # opaque: cells may overlap
            x, y = across(x_edges[i]), down(y_edges[j + 1])
            wide, high = across(x_edges[i + 1]) - x, down(y_edges[j]) - y
            if share:
                parts.append(_box(x, y, wide + 0.6, high + 0.6, colour, 1.0))
    parts += [
        f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="1.3" fill="var(--ink)" fill-opacity="0.5"/>'
        for x, y in zip(x_seen, y_seen, strict=True)
        if x_edges[0] <= x <= x_edges[-1] and y_edges[0] <= y <= y_edges[-1]
    ]
    parts.append(
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDE - _LEFT - _RIGHT}" height="{_HIGH - _TOP - _BOTTOM}" fill="none" '
        'stroke="var(--rule)"/>'
    )
    parts += _y_axis(_ends(ys) if words[1] is None else ys, down, words[1])
    middle = (_TOP + _HIGH - _BOTTOM) / 2
    parts.append(
        f'<text x="11" y="{middle:.0f}" fill="var(--ink)" text-anchor="middle" '
        f'transform="rotate(-90 11 {middle:.0f})">{escape(_shortened(names[1], 22))}</text>'
    )
    x_words = [*map(_number, _ends(xs))] if words[0] is None else words[0]
    x_places = _ends(xs) if words[0] is None else xs
    parts += _x_axis(names[0], [(across(x), word) for x, word in zip(x_places, x_words, strict=True)])
    return "".join([*parts, "</svg>"])


def _apart(values: Sequence[float], seen: Sequence[float]) -> tuple[list[float], list[float]]:
    """Places of a category's values, one after another, and of rows of the data, spread around theirs; rows of a value
    that is not shown are outside."""
    place = {value: float(number) for number, value in enumerate(values)}
    spread = (0.6 * ((0.618034 * number) % 1 - 0.5) for number in range(len(seen)))
    return list(place.values()), [place.get(one, -9.0) + by for one, by in zip(seen, spread, strict=True)]


def _y_axis(
    numbers: Sequence[float], down: Callable[[float], float], words: Sequence[str] | None = None
) -> Iterator[str]:
    for number, word in zip(numbers, map(_number, numbers) if words is None else words, strict=True):
        yield (
            f'<text x="{_LEFT - 4}" y="{down(number) + 4:.1f}" fill="var(--soft)" text-anchor="end">'
            f"{escape(_shortened(word, _WORD - 2))}</text>"
        )


def _x_axis(name: str, labels: Sequence[tuple[float, str]]) -> Iterator[str]:
    base = _HIGH - _BOTTOM
    yield _line(_LEFT, base, _WIDE - _RIGHT, base, "var(--rule)")
    turned = len(labels) > 4
    for place, (x, word) in enumerate(labels):
        anchor = "middle" if len(labels) != 2 else ("start" if place == 0 else "end")
        if turned and place % max(1, len(labels) // 4):
            continue  # as many as there is room for
        yield (
            f'<text x="{x:.1f}" y="{base + 14}" fill="var(--soft)" text-anchor="{anchor}">'
            f"{escape(_shortened(word, _WORD))}</text>"
        )
    middle = (_LEFT + _WIDE - _RIGHT) / 2
    yield (
        f'<text x="{middle:.0f}" y="{_HIGH - 8}" fill="var(--ink)" text-anchor="middle" font-size="11.5">'
        f"{escape(_shortened(name, 40))}</text>"
    )


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: float = 1, opacity: float = 1) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" '
        f'stroke-width="{width}" stroke-opacity="{opacity}"/>'
    )


def _box(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}"/>'
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _histogram(seen: Sequence[float], low: float, high: float) -> tuple[list[int], list[tuple[float, float]]]:
    bins = 24
    width = (high - low) / bins or 1.0
    counts = [0] * bins
    for one in seen:
        if low <= one <= high:
            counts[min(bins - 1, int((one - low) / width))] += 1
    return counts, [(low + place * width, low + (place + 1) * width) for place in range(bins)]


def _edges(values: Sequence[float]) -> list[float]:
    """The borders of the cells around the values."""
    if len(values) == 1:
        return [values[0] - 0.5, values[0] + 0.5]
    between = [(a + b) / 2 for a, b in pairwise(values)]
    return [2 * values[0] - between[0], *between, 2 * values[-1] - between[-1]]


def _padded(low: float, high: float, share: float = 0.06) -> tuple[float, float]:
    margin = share * (high - low) or 0.5
    return low - margin, high + margin


def _ends(values: Sequence[float]) -> list[float]:
    return [values[0], values[-1]]


def _number(value: float) -> str:
    return format_value(float(f"{value:.3g}"))


def _shortened(word: str, longest: int) -> str:
    return word if len(word) <= longest else word[: longest - 1] + "…"
