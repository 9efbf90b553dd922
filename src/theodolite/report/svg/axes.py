"""Ranges and ticks of both axes; panels of a figure share them, so that heights compare, unless it says otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from theodolite.report.figure import Figure, Panel
from theodolite.report.numbers import drawable, format_value

_TICKS_AT_POINTS = 10
_FURTHEST = 300  # powers of ten beyond are no floats
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """`low` and `high` are logarithms to base ten where `log`; `ticks` are (share of the axis, text); with `names`, a
    value is one of them and stands in the middle of its slot."""

    label: str
    low: float
    high: float
    log: bool = False
    ticks: Sequence[tuple[float, str]] = ()
    names: Sequence[str] = ()

    def share(self, value: object) -> float | None:
        """From 0 to 1 along the axis, None where the value has no place on it."""
        if self.names:
            name = value if isinstance(value, str) else format_value(value)
            return (self.names.index(name) + 0.5) / len(self.names) if name in self.names else None
        point = None if isinstance(value, str) else drawable(value, log=self.log)
        if point is None:
            return None
        return ((math.log10(point) if self.log else point) - self.low) / (self.high - self.low)


def x_axis(figure: Figure, room: float = 300.0) -> Axis:
    """`room` in pixels decides how many ticks there are."""
    values = [value for panel in figure.panels for series in panel.series for value in series.x]
    if any(isinstance(value, str) for value in values):
        names = list(dict.fromkeys(value if isinstance(value, str) else format_value(value) for value in values))
        ticks = [((i + 0.5) / len(names), name) for i, name in enumerate(names)]
        return Axis(figure.x_label, 0, 1, ticks=ticks, names=names)
    points = sorted({p for value in values if (p := drawable(value, log=figure.log_x)) is not None})
    low, high = _range(points, figure.log_x)
    ticks = _ticks(low, high, figure.log_x, max(3, int(room / 60)))
    if 1 < len(points) <= _TICKS_AT_POINTS and all(isinstance(point, int) for point in points):
        widest = max(len(format_value(point)) for point in points)
        kept = _apart(points, figure.log_x, (7.2 * widest + 6) / room)
        if len(kept) >= min(len(points), 4):
            ticks = kept
    return _axis(figure.x_label, low, high, figure.log_x, ticks)


def y_axis(figure: Figure, panel: Panel, most: int = 6) -> Axis:
    """One range for all panels, or the panel's own where they measure different things; `most` ticks, about."""
    values = _heights(figure, figure.panels if figure.shared else [panel])
    points = [point for value in values if (point := drawable(value, log=figure.log_y)) is not None]
    low, high = _range(points, figure.log_y)
    return _axis(figure.y_label, low, high, figure.log_y, _ticks(low, high, figure.log_y, most))


def _axis(label: str, low: float, high: float, log: bool, ticks: Sequence[float | int]) -> Axis:
    shares = [((math.log10(tick) if log else tick) - low) / (high - low) for tick in ticks]
    return Axis(label, low, high, log, list(zip(shares, map(_written, ticks), strict=True)))


def _written(tick: float | int) -> str:
    """`10⁶` instead of `1e6`."""
    mantissa, _, power = format_value(tick).partition("e")
    if not power:
        return mantissa
    return ("" if mantissa == "1" else f"{mantissa}·") + "10" + power.translate(_RAISED)


def _apart(points: Sequence[int | float], log: bool, share: float) -> list[int | float]:
    """The points whose ticks have room: each at least `share` of the whole away from the one before; the last stays."""
    place = (lambda point: math.log(point)) if log else float
    least = share * (place(points[-1]) - place(points[0]))
    kept = [points[0]]
    for point in points[1:-1]:
        if min(place(point) - place(kept[-1]), place(points[-1]) - place(point)) >= least:
            kept.append(point)
    return [*kept, points[-1]]


def _heights(figure: Figure, panels: Sequence[Panel]) -> Iterator[object]:
    for panel in panels:
        for series in panel.series:
            yield from (*series.y, *(series.low or ()), *(series.high or ()))
        yield from (line.value for line in (*figure.lines, *panel.lines) if line.axis == "y")


def _ticks(low: float, high: float, log: bool, most: int) -> list[float]:
    """Round numbers; on a log axis 1, 2, 5 or 1, 3 in each decade of a short span, else powers of ten."""
    if not log:
        return _even(low, high, most)
    if high - low < 0.7 and abs(high) < _FURTHEST:
        return [tick for tick in _even(10**low, 10**high, most - 1) if tick > 0]
    digits = (1, 2, 5) if high - low <= 2.7 else (1, 3) if high - low <= 4 else (1,)
    step = max(1, math.ceil((high - low) / max(most, 3)))
    powers = [p for p in range(math.floor(low), math.ceil(high) + 1) if p % step == 0 and abs(p) <= _FURTHEST]
    return [float(f"{d}e{p}") for p in powers for d in digits if low <= p + math.log10(d) <= high]


def _even(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / max(most, 2)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * digit for digit in (1, 2, 2.5, 5, 10) if power * digit >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{step * number:.6g}") for number in range(first, last + 1)]


def _range(points: Sequence[float | int], log: bool) -> tuple[float, float]:
    places = [math.log10(point) if log else float(point) for point in points] or [0.0, 1.0]
    least, most = min(places), max(places)
    if least == most:
        margin = 0.5 if log else max(abs(most) * 0.1, 0.5)
    else:
        margin = 0.06 * (most - least)
    return least - margin, most + margin
