"""Draws the error against the budget, degree by degree, from a document of benchmarks/degree.py.

`python docs/figures/degree.py benchmarks/results/degree-….json` writes degree.svg beside this file: one panel a
problem, matrices of width 16; a dot is the geometric mean over seeds, its bar the 95 % interval.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, StrMethodFormatter
from style import GREY, save

LOOKS = {  # degree: colour, line
    "2": ("#D55E00", "-"),
    "3": ("#0072B2", "-"),
    "4": ("#009E73", "-"),
    "5": ("#CC79A7", "-"),
    "3,2": ("#56B4E9", "--"),
    "e": ("#E69F00", ":"),
}
NAMES = {"3,2": "3 and 2 mixed"}
WIDTH, COLUMNS = 16, 4
NARROW = 1.2  # a range of errors below this factor would show nothing but noise


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rows = [row for row in document["rows"] if row["matrix_width"] == WIDTH and row["degree"] in LOOKS]
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    lines = -(-len(problems) // COLUMNS)
    figure, grid = plt.subplots(lines, COLUMNS, figsize=(10, 2.4 * lines + 0.9), layout="constrained", squeeze=False)
    for axes, problem in zip(grid.flat, problems, strict=False):
        panel(axes, problem, [row for row in rows if row["problem"] == problem])
    for axes in grid.flat[len(problems) :]:
        axes.set_axis_off()
    figure.suptitle("Test error against the budget, by the degree of the blocks", x=0.01, ha="left", fontweight="bold")
    note = (
        f"budget in matrices of {WIDTH} × {WIDTH}; geometric mean of {document['seeds']} seeds with 95 % interval; "
        "share of the variance left (digits: of wrong classes)"
    )
    figure.legend(
        *grid.flat[0].get_legend_handles_labels(),
        loc="outside lower left", ncols=len(LOOKS), frameon=False, title=note, alignment="left",
    ).get_title().set_color(GREY)  # fmt: skip
    save(figure, __file__)


def panel(axes: Axes, problem: str, rows: list[dict[str, Any]]) -> None:
    budgets = sorted({row["budget"] for row in rows})
    degrees = [degree for degree in LOOKS if any(row["degree"] == degree for row in rows)]
    for place, degree in enumerate(degrees):
        colour, line = LOOKS[degree]
        own = sorted((row for row in rows if row["degree"] == degree), key=lambda row: row["budget"])
        # side by side, so that bars do not hide each other
        x = [budgets.index(row["budget"]) + 0.09 * (place - (len(degrees) - 1) / 2) for row in own]
        means = np.exp([row["mean_log_error"] for row in own])
        low, high = np.exp([row["log_interval"] for row in own]).T
        name = ("degree " if place == 0 else "") + NAMES.get(degree, degree)
        axes.errorbar(
            x, means, [means - low, high - means], color=colour, fmt="o", linestyle=line, markersize=3, label=name
        )
    axes.set_title(problem, loc="left", fontweight="bold", fontsize="medium")
    axes.set_xticks(range(len(budgets)), [str(budget) for budget in budgets])
    axes.set(yscale="log", xlabel="budget")
    low, high = axes.get_ylim()
    if high < NARROW * low:
        middle = math.sqrt(low * high)
        axes.set_ylim(middle / math.sqrt(NARROW), middle * math.sqrt(NARROW))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5) if high > 2.5 * low else range(1, 10)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


if __name__ == "__main__":
    main()
