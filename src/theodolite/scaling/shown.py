"""A valley in sentences and as a figure."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.report import Figure, Line, Panel, Series
from theodolite.scaling.valley import APART, FLAT, Valley
from theodolite.statistics.intervals import mean_interval


def said(valley: Valley) -> str:
    """What the losses of one size say, in sentences."""
    low, high = valley.interval
    sure = f"{low}" if low == high else f"{low} to {high}"
    several = all(len(p.bits) > 1 for p in valley.points)
    parts = [f"Best depth {valley.best} (95 %: {sure})." if several else f"Depth {valley.best} has the least loss."]
    if len(valley.flat) > 1:
        parts.append(f"Depths {_listed(valley.flat)} are within {100 * FLAT:g} % of it.")
    if not several:
        parts.append("One seed cannot tell depths from chance: train two or more.")
    elif valley.worse:
        parts.append(f"Significantly worse: {_listed(valley.worse)}.")
    else:
        parts.append("No depth is significantly worse.")
    if several and valley.enough < max(p.shape.depth for p in valley.points):
        parts.append(f"From depth {valley.enough} on, deeper does not help significantly.")
    parts.append(f"The worst shape has {100 * valley.spread:.1f} % more loss than the best.")
    if valley.unsteady:
        parts.append(
            f"Seeds of {_listed(valley.unsteady)} are more than {100 * APART:g} % apart: lower rates may serve there."
        )
    if valley.settled > 0.75:
        parts.append(f"The order was still moving at {100 * valley.settled:.0f} % of training: train longer.")
    return " ".join(parts)


def valley_figure(valleys: Sequence[Valley]) -> Figure:
    panels = []
    for valley in valleys:
        intervals = [mean_interval(p.bits) or (p.mean, p.mean) for p in valley.points]
        depths = [p.shape.depth for p in valley.points]
        series = Series(
            "bits a byte",
            depths,
            [p.mean for p in valley.points],
            [low for low, _ in intervals],
            [high for _, high in intervals],
            hover=[f"width {p.shape.width}, rate {p.rate:g}" for p in valley.points],
        )
        panels.append(Panel(f"{valley.size:,} parameters", [series], lines=[Line(valley.best, "best", "x")]))
    return Figure(
        "The valley of every size",
        "Loss against depth at equal size, one panel a size, with 95 % intervals over seeds",
        "depth",
        "bits a byte",
        panels,
        log_x=True,
    )


def _listed(depths: tuple[int, ...]) -> str:
    return ", ".join(map(str, depths))
