"""Depth against width: a table for every size, the sentences that follow from it, and the page with pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from theodolite.report import Column, Figure, Panel, Series, Summary, Table
from theodolite.report.page.page import RenderedSection, render_page
from theodolite.report.terminal.noted_rows import NotedRow, print_noted, widths
from theodolite.scaling.scale import Scaling
from theodolite.scaling.shown import said, valley_figure
from theodolite.scaling.valley import Point, Valley
from theodolite.statistics.intervals import mean_interval
from theodolite.theory.shapes import INTERCEPT, SLOPE

_HEADERS = ("depth", "width", "parameters", "bits a byte", "95 % interval", "over the best", "rate")
_TITLE = "Depth against width at equal size"
_NOTE = (
    "Bits a byte on documents held out, the mean over seeds at each shape's best rate; the interval is Student's. "
    "* marks a rate at the end of three or more tried: a better one may lie beyond. Best depths resample the seeds; "
    "comparisons are Welch's with Holm's correction over all pairs of a size."
)


def print_scaling(console: Console, found: Scaling) -> None:
    for valley in found.valleys:
        console.print(Text(f"{valley.size:,} parameters", style="bold"))
        rows = [NotedRow(_cells(point, valley)) for point in valley.points]
        print_noted(console, _HEADERS, rows, widths(_HEADERS, rows))
        console.print(Text(said(valley)))
        console.print()
    console.print(Text(line_said(found)))
    for reason in found.left_out:
        console.print(Text(f"left out: {reason}", style="dim"))
    for sentence in found.diverged:
        console.print(Text(f"{sentence}; other rates decide", style="dim"))
    console.print(Text(_NOTE, style="dim"))


def line_said(found: Scaling) -> str:
    published = f"published: ln width = {INTERCEPT} + {SLOPE} · depth, depths 6 to 48 (Levine et al. 2020)"
    if found.line is None:
        return f"No line through the best shapes: that takes three sizes with three best depths ({published})."
    line = found.line
    return (
        f"Through the best shapes: ln width = {line.intercept:.2f} ({_range(line.intercept_interval)}) + "
        f"{line.slope:.3f} ({_range(line.slope_interval)}) · depth over {line.sizes} sizes; {published}."
    )


def page(found: Scaling, provenance: Mapping[str, str]) -> str:
    """The pictures first: the valley of every size, the best shapes beside the published line, learning curves."""
    about = found.about
    amount = f"{about['seeds']} seeds, {about['tokens_per_parameter']:g} tokens a parameter"
    source = f"{about['net']} on {about['text']}, {amount}"
    summary = Summary(
        headline=_headline(found),
        tables=[_table(found)],
        figures=[valley_figure(found.valleys), *_boundary(found), _learning(found)],
        notes=[
            *(f"{v.size:,} parameters. {said(v)}" for v in found.valleys),
            line_said(found),
            _NOTE,
            *(f"Left out: {reason}." for reason in found.left_out),
            *(f"{sentence[0].upper()}{sentence[1:]}; other rates decide." for sentence in found.diverged),
        ],
    )
    return render_page(_TITLE, source, [RenderedSection("scale", _TITLE, summary)], provenance, ())


def _headline(found: Scaling) -> str:
    best = ", ".join(f"{v.best} at {v.size:,} parameters" for v in found.valleys)
    worst = max(found.valleys, key=lambda v: v.spread)
    return f"Best depth: {best}. The choice of depth is worth at most {100 * worst.spread:.1f} % of the loss here."


def _cells(point: Point, valley: Valley) -> tuple[str, ...]:
    best = min(p.mean for p in valley.points)
    interval = mean_interval(point.bits)
    return (
        str(point.shape.depth),
        str(point.shape.width),
        f"{point.shape.parameters:,}",
        f"{point.mean:.4f}",
        "–" if interval is None else f"{interval[0]:.4f}–{interval[1]:.4f}",
        f"{100 * (point.mean / best - 1):+.1f} %",
        f"{point.rate:g}{'*' if point.edge else ''}",
    )


def _table(found: Scaling) -> Table:
    columns = [
        Column("size", "size"),
        Column("depth", "depth"),
        Column("width", "width"),
        Column("parameters", "parameters", "without embedding and readout"),
        Column("bits", "bits a byte", "on documents held out, mean over seeds"),
        Column("over", "over the best, %"),
        Column("rate", "rate"),
        Column("diverged", "diverged", "networks, at all rates"),
    ]
    rows = [
        {
            "size": valley.size,
            "depth": p.shape.depth,
            "width": p.shape.width,
            "parameters": p.shape.parameters,
            "bits": p.mean,
            "over": 100 * (p.mean / min(q.mean for q in valley.points) - 1),
            "rate": p.rate,
            "diverged": p.diverged,
        }
        for valley in found.valleys
        for p in valley.points
    ]
    return Table("Every shape", columns, rows)


def _boundary(found: Scaling) -> list[Figure]:
    best = [next(p for p in v.points if p.shape.depth == v.best) for v in found.valleys]
    if len(best) < 2:
        return []
    depths = sorted({p.shape.depth for p in best} | {1, 48})
    series = [
        Series(
            "best shape",
            [p.shape.depth for p in best],
            [p.shape.width for p in best],
            hover=[f"{p.shape.size:,} parameters" for p in best],
        ),
        Series("published line", depths, [math.exp(INTERCEPT + SLOPE * d) for d in depths], dashed=True),
    ]
    if found.line is not None:
        ours = [math.exp(found.line.intercept + found.line.slope * d) for d in depths]
        series.append(Series("through ours", depths, ours, dashed=True))
    alt = "Width against depth of the best shape of every size, beside the published line"
    return [Figure("The best shapes", alt, "depth", "width", [Panel("", series)], log_y=True)]


def _learning(found: Scaling) -> Figure:
    panels = [
        Panel(
            f"{valley.size:,} parameters",
            [
                Series(f"depth {p.shape.depth}", [step for step, _ in p.curve], [bits for _, bits in p.curve])
                for p in valley.points
            ],
        )
        for valley in found.valleys
    ]
    return Figure(
        "Has the order of shapes stopped moving?",
        "Loss on held-out text over the steps of training, one line a depth",
        "steps",
        "bits a byte",
        panels,
        log_x=True,
    )


def _range(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3g} to {interval[1]:.3g}"
