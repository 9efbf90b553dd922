"""Differences of two sides task by task, as a figure."""

from __future__ import annotations

from theodolite.bench.compare import Comparison
from theodolite.report import Figure, Line, Panel, Series


def difference_figure(found: Comparison) -> Figure | None:
    """None where no task has pairs with the metric."""
    told = [(one.task, one.difference, one.interval) for one in found.tasks if one.difference is not None]
    if not told:
        return None
    ends = [interval or (difference, difference) for _, difference, interval in told]
    series = Series(
        f"{found.second} − {found.first}",
        [task for task, _, _ in told],
        [difference for _, difference, _ in told],
        [low for low, _ in ends],
        [high for _, high in ends],
    )
    return Figure(
        "",
        f"{found.metric} of {found.second} less that of {found.first}, with 95 % intervals, a row a task",
        "",
        f"difference in {found.metric}",
        [Panel("", [series], lines=[Line(0.0, "no difference")])],
        kind="dots",
    )
