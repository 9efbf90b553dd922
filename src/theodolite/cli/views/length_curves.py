"""Scores over lengths of what `learn` trained: a plot for every network and task, a curve for every member."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from theodolite.errors import BadInput
from theodolite.lab.cell import Row
from theodolite.report import Curve, Multiples, Plot
from theodolite.report.svg.multiples import multiples_svg


def length_curves(rows: Sequence[Row]) -> str:
    """The figure as SVG; members are faint, the median of them is not, and lengths of training are shaded."""
    told = [row for row in rows if not row.error and row.result.get("by_length")]
    if not told:
        raise BadInput("there are no scores over lengths to draw: choose a task on sequences, or leave --plot out")
    nets = list(dict.fromkeys(_net(row) for row in told))
    tasks = list(dict.fromkeys(str(row.cell.config["task"]) for row in told))
    plots = [[_plot([r for r in told if (_net(r), r.cell.config["task"]) == (n, t)]) for t in tasks] for n in nets]
    lengths = [length for row in told for length, _ in row["by_length"]]
    return multiples_svg(
        Multiples(
            title="Score by length",
            alt=f"Curves of the score over the length of the input, {', '.join(nets)} on {', '.join(tasks)}",
            rows=nets,
            columns=[task.rpartition(":")[2] for task in tasks],
            plots=plots,
            x=(min(lengths), max(*lengths, min(lengths) + 1)),
            y=(0.0, 1.0),
            x_label="length",
            y_label="score",
        ),
        alone=True,
    )


def _net(row: Row) -> str:
    """By its own name, and by its checkpoint where it was not drawn."""
    config = row.cell.config
    name = str(config["net"]).rpartition(":")[2]
    return f"{name} {config['checkpoint'][:6]}" if "checkpoint" in config else name


def _plot(rows: Sequence[Row]) -> Plot | None:
    if not rows:
        return None
    curves = [dict(row["by_length"]) for row in rows]
    common = [length for length in curves[0] if all(length in curve for curve in curves)]
    middle = Curve(common, [statistics.median(curve[length] for curve in curves) for length in common])
    faint = [Curve(list(curve), list(curve.values()), faint=True) for curve in curves] if len(curves) > 1 else []
    first, last = rows[0]["trained_lengths"]
    solved = sum(row["status"] == "solved" for row in rows)
    return Plot(
        [*faint, middle],
        shaded=(first, last),
        level=rows[0]["chance"],
        text=f"{solved}/{len(rows)}",
        hover=f"{_net(rows[0])} on {rows[0].cell.config['task']}: {solved} of {len(rows)} members solve it",
    )
