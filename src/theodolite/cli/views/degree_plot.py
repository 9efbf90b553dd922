"""Error (or, without training, rank) against budget, one line per degree, as an SVG that stands alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from theodolite.errors import BadInput
from theodolite.instruments.degree.which_degree import DegreeRow
from theodolite.report.numbers import format_value
from theodolite.report.svg.drawing import LogAxis, Point, line, marker

_WIDTH, _HEIGHT = 800, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 210, 56, 60
_FORMS = ("circle", "square", "diamond", "triangle", "cross", "plus", "flipped", "hexagon")
# As in docs/figures/degree.py: a degree has one colour everywhere.
_COLOURS = {"2": "#D55E00", "3": "#0072B2", "4": "#009E73", "5": "#CC79A7", "6": "#000000", "e": "#E69F00"}
_OTHERS = ("#56B4E9", "#7A5195", "#8C564B", "#6B7280")
_DASHES = {"d-1": "5 3", "d+1": "1 3"}
_APART = 7.0  # pixels between degrees at one budget, so that intervals do not hide each other
_SPREAD = 56.0  # pixels for all degrees at one budget
_LINE = 22  # of the legend
_STYLE = (
    "text{font:13px 'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;fill:#1b1f23}"
    ".title{font-size:15px;font-weight:bold}.soft{fill:#4f5861;font-size:12px}.rule{stroke:#d5d9dd;fill:none}.series{fill:none}"
)


def draw_degrees(rows: Sequence[DegreeRow]) -> str:
    """Median errors with intervals where rows were trained, else ranks; a rank that is a lower bound has an arrow."""
    trained = any(row.error is not None for row in rows)
    shown = [row for row in rows if _height(row, trained) is not None]
    if not shown:
        raise BadInput("no row has a rank or an error to draw: use a smaller budget, or --train")
    return "\n".join(_picture(shown, trained)) + "\n"


def _height(row: DegreeRow, trained: bool) -> float | None:
    value = row.error if trained else row.rank
    return float(value) if value is not None and math.isfinite(value) and value > 0 else None


def _picture(rows: Sequence[DegreeRow], trained: bool) -> Iterator[str]:
    series: dict[str, list[DegreeRow]] = {}
    several = len({row.count for row in rows}) > 1
    place = {count: number for number, count in enumerate(dict.fromkeys(row.count for row in rows))}
    for row in sorted(rows, key=lambda r: (r.degree is None, r.degree or 0, place[r.count], r.degrees)):
        series.setdefault(f"{row.name} ({row.count})" if several else row.name, []).append(row)
    others = dict.fromkeys(own[0].name for own in series.values() if own[0].name not in _COLOURS)
    colours = {**_COLOURS, **{name: _OTHERS[place % len(_OTHERS)] for place, name in enumerate(others)}}
    title = f"{'Test error' if trained else 'Separation rank'} against budget, by the degree of a block"
    height = max(_HEIGHT, _TOP + _LINE * len(series) + 20)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
        f'aria-label="{escape(title, quote=True)}">'
    )
    yield f"<style>{_STYLE}</style>"
    yield f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
    yield f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>'
    yield f'<text class="soft" x="{_LEFT}" y="43">{escape(_subtitle(rows, trained))}</text>'
    budgets = sorted({row.budget for row in rows})
    x = LogAxis(budgets[0] / 1.25, budgets[-1] * 1.25, _LEFT, _WIDTH - _RIGHT)
    y = _vertical(rows, trained)
    yield from _grid(budgets, x, y, "median test error (log scale)" if trained else "rank (log scale)")
    apart = min(_APART, _SPREAD / len(series))
    for number, (name, own) in enumerate(series.items()):
        shift = apart * (number - (len(series) - 1) / 2)
        look = (colours[own[0].name], _FORMS[number % len(_FORMS)], _DASHES.get(own[0].count, "") if several else "")
        ordered = sorted(own, key=lambda row: row.budget)
        yield from _series(name, ordered, look, _TOP + 10 + _LINE * number, shift, x, y, trained)
    yield "</svg>"


def _subtitle(rows: Sequence[DegreeRow], trained: bool) -> str:
    first = rows[0]
    if not trained:
        bound = "" if all(row.exact for row in rows) else "; an arrow marks a lower bound"
        return f"{first.family}, width {first.width}{bound}"
    details = next(row.training for row in rows if row.training is not None)
    kind = "range" if any(row.interval_kind == "range" for row in rows) else "95 %"
    wide = next((row.width for row in rows if row.matrices == row.budget), first.width)
    return f"width {wide}, {details['task']}, {details['seeds']} seeds, {details['steps']} steps; bars: {kind}"


def _vertical(rows: Sequence[DegreeRow], trained: bool) -> LogAxis:
    values = [height for row in rows if (height := _height(row, trained)) is not None]
    if trained:
        values += [end for row in rows for end in row.interval or () if math.isfinite(end) and end > 0]
    margin = max((max(values) / min(values)) ** 0.08, 1.01)
    return LogAxis(min(values) / margin, max(values) * margin, _HEIGHT - _BOTTOM, _TOP)


def _grid(budgets: Sequence[int], x: LogAxis, y: LogAxis, label: str) -> Iterator[str]:
    yield line([(x.start, y.end), (x.start, y.start), (x.end, y.start)], "rule")
    for budget in budgets:
        yield f'<text x="{x(budget):.1f}" y="{y.start + 20:.1f}" text-anchor="middle">{budget}</text>'
    middle, bottom = (x.start + x.end) / 2, y.start + 44
    below = "budget: square matrices in blocks (log scale)"
    yield f'<text x="{middle:.1f}" y="{bottom:.1f}" text-anchor="middle">{below}</text>'
    for tick in _ticks(y):
        yield line([(x.start, y(tick)), (x.end, y(tick))], "rule")
        yield f'<text x="{x.start - 8:.1f}" y="{y(tick) + 4:.1f}" text-anchor="end">{format_value(tick)}</text>'
    height = (y.start + y.end) / 2
    yield f'<text transform="translate(18,{height:.1f}) rotate(-90)" text-anchor="middle">{label}</text>'


def _ticks(axis: LogAxis) -> list[float]:
    """Equal steps over a short span; over a longer one 1, 2, 5 of each decade, or the decades alone."""
    span = math.log10(axis.high / axis.low)
    if span < 0.8:
        rough = (axis.high - axis.low) / 4
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
        first = math.ceil(axis.low / step)
        return [float(f"{step * number:.6g}") for number in range(first, math.floor(axis.high / step) + 1)]
    powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    digits = (1, 2, 5) if span < 2.5 else (1,)
    return [value for power in powers for digit in digits if axis.shows(value := digit * 10.0**power)]


def _series(
    name: str,
    rows: Sequence[DegreeRow],
    look: tuple[str, str, str],
    place: float,
    shift: float,
    x: LogAxis,
    y: LogAxis,
    trained: bool,
) -> Iterator[str]:
    """`look` is colour, form and dash; `place` is where the legend has its line."""
    colour, form, dash = look
    points: list[tuple[DegreeRow, Point]] = []
    for row in rows:
        height = _height(row, trained)
        if height is not None:
            points.append((row, (x(row.budget) + shift, y(height))))
    yield f'<g stroke="{colour}" stroke-width="1.5">'
    if len(points) > 1:
        yield f'<g stroke-dasharray="{dash}">' if dash else "<g>"
        yield line([point for _, point in points], "series")
        yield "</g>"
    for row, (across, down) in points:
        if trained and row.interval is not None:
            ends = [y(min(max(end, y.low), y.high)) for end in row.interval if math.isfinite(end)]
            yield line([(across, end) for end in ends], "series") if len(ends) == 2 else ""
        elif not trained and not row.exact:
            yield line([(across, down), (across, down - 22)], "series")
            yield line([(across - 4, down - 16), (across, down - 22), (across + 4, down - 16)], "series")
    yield f'</g><g fill="{colour}">'
    for row, point in points:
        yield marker(form, point, "mark", _hover(row, trained))
    yield marker(form, (_WIDTH - _RIGHT + 22, place), "mark", name)
    yield f'</g><text x="{_WIDTH - _RIGHT + 34}" y="{place + 4}">degree {escape(name)}</text>'


def _hover(row: DegreeRow, trained: bool) -> str:
    value = row.error if trained else row.rank
    return f"degree {row.name}, depth {row.depth}, {row.parameters:,} parameters: {format_value(value)}"
