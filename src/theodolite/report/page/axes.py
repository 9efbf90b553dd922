"""Ranges and ticks of both axes; all panels of a figure share them, so that heights compare across panels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from theodolite.report.figure import Figure
from theodolite.report.numbers import drawable, format_value
from theodolite.report.page.hover import inert

_TICKS_AT_POINTS = 10


def x_axis(figure: Figure) -> dict[str, Any]:
    values = [value for panel in figure.panels for series in panel.series for value in series.x]
    axis: dict[str, Any] = {"title": {"text": inert(figure.x_label)}, "automargin": True}
    if any(isinstance(value, str) for value in values):
        order = dict.fromkeys(inert(value if isinstance(value, str) else format_value(value)) for value in values)
        return {**axis, "type": "category", "categoryorder": "array", "categoryarray": list(order)}
    points = sorted({p for value in values if (p := drawable(value, log=figure.log_x)) is not None})
    axis["type"] = "log" if figure.log_x else "linear"
    if points:
        axis["range"] = _range(points, figure.log_x)
        if figure.log_x:
            axis |= _decades(*axis["range"])
    if 1 < len(points) <= _TICKS_AT_POINTS and all(isinstance(point, int) for point in points):
        kept = _apart(points, figure.log_x, 1 / 14 if len(figure.panels) < 3 else 1 / 9)
        if len(kept) >= min(len(points), 4):
            axis |= {"tickmode": "array", "tickvals": kept, "ticktext": [format_value(point) for point in kept]}
            axis["tickangle"] = 0
    return axis


def y_axis(figure: Figure) -> dict[str, Any]:
    """One range for all panels, so that heights compare across them."""
    points = [point for value in _heights(figure) if (point := drawable(value, log=figure.log_y)) is not None]
    axis: dict[str, Any] = {"title": {"text": inert(figure.y_label)}, "automargin": True}
    axis["type"] = "log" if figure.log_y else "linear"
    axis |= {"exponentformat": "power", "nticks": 6}
    if points:
        axis["range"] = _range(points, figure.log_y)
        if figure.log_y:
            axis |= _decades(*axis["range"])
    return axis


def _apart(points: Sequence[int | float], log: bool, share: float) -> list[int | float]:
    """The points whose ticks have room: each at least `share` of the whole away from the one before; the last stays."""
    place = (lambda point: math.log(point)) if log else float
    least = share * (place(points[-1]) - place(points[0]))
    kept = [points[0]]
    for point in points[1:-1]:
        if min(place(point) - place(kept[-1]), place(points[-1]) - place(point)) >= least:
            kept.append(point)
    return [*kept, points[-1]]


def _heights(figure: Figure) -> Iterator[Any]:
    for panel in figure.panels:
        for series in panel.series:
            yield from (*series.y, *(series.low or ()), *(series.high or ()))
        yield from (line.value for line in (*figure.lines, *panel.lines) if line.axis == "y")


def _decades(least: float, most: float) -> dict[str, Any]:
    """Ticks of a log axis as full numbers: 1, 2, 5 or 1, 3 in each decade of a short span, else powers of ten."""
    if most - least < 0.7 or max(abs(least), abs(most)) > 300:
        return {}  # too short for round numbers, or too far for a float: Plotly's own ticks do better
    digits = (1, 2, 5) if most - least <= 2.7 else (1, 3) if most - least <= 4 else (1,)
    step = max(1, math.ceil((most - least) / 7))
    powers = [power for power in range(math.floor(least), math.ceil(most) + 1) if power % step == 0]
    ticks = [
        (digit * 10**power if power >= 0 else digit / 10**-power, power)
        for power in powers
        for digit in digits
        if least <= power + math.log10(digit) <= most
    ]
    texts = [format_value(tick) if -3 <= power <= 5 else f"10<sup>{power}</sup>" for tick, power in ticks]
    return {"tickmode": "array", "tickvals": [float(tick) for tick, _ in ticks], "ticktext": texts}


def _range(points: Sequence[float | int], log: bool) -> list[float]:
    places = [math.log10(point) if log else float(point) for point in points]
    least, most = min(places), max(places)
    if least == most:
        margin = 0.5 if log else max(abs(most) * 0.1, 0.5)
    else:
        margin = 0.06 * (most - least)
    return [least - margin, most + margin]
