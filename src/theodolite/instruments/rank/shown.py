"""What is lost by truncating a function to a rank, as a figure."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.report import Figure, Line, Panel, Series


def error_figure(curve: Sequence[tuple[int, float]], epsilon: float, rank: int) -> Figure:
    """`curve` is (rank, relative error at points held out); `rank` the least one within ε."""
    series = Series("error", [r for r, _ in curve], [error if error > 0 else None for _, error in curve])
    lines = [Line(epsilon, f"ε = {epsilon:g}"), Line(rank, f"rank {rank}", "x")]
    alt = f"Relative error over the rank of the truncation: {epsilon:g} is reached at rank {rank}"
    return Figure(
        "", alt, "rank of the truncation", "error at points held out", [Panel("", [series], lines=lines)], log_y=True
    )
