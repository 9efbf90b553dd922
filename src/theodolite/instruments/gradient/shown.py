"""The signal of parities by the number of their bits, as a figure."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.report import Figure, Panel, Series


def degrees_figure(by_degree: Sequence[float]) -> Figure:
    """`by_degree[k]` of parities of k bits; one of which the gradient says nothing has no point."""
    values = [value if value > 0 else None for value in by_degree]
    alt = "Mean signal of parities over the number of their bits, on a logarithmic axis"
    series = Series("signal", list(range(len(by_degree))), values)
    return Figure("", alt, "bits of the parity", "signal", [Panel("", [series])], log_y=True)
