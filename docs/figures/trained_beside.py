"""Draws what a depth costs in seconds, and what one head does to the valley: `python docs/figures/trained_beside.py`.

Reads the newest study of depth against width and what was measured beside it in `benchmarks/results/`, and writes
trained_beside.svg beside this file.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from style import BLUE, ORANGE, headings, save

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
TICKS = (1, 2, 3, 4, 6, 8, 12, 24)
SHOWN = 2_000_000  # above it depth 1 had stumbled, and the loss that all reach says little
AT = 120_000  # the size of the heads


def main() -> None:
    study, beside = (_newest(name) for name in ("scale-study", "scale-beside"))
    figure = plt.figure(figsize=(9.2, 3.7), layout="constrained")
    clock, heads = figure.subplots(1, 2)
    _clock(clock, [row for row in beside["clock"] if row["size"] <= SHOWN])
    points = next(size["points"] for size in study["sizes"] if size["size"] == AT)
    _heads(heads, points, beside["heads-1"]["sizes"][0]["points"])
    save(figure, __file__)


def _clock(axes: Axes, rows: list[dict[str, Any]]) -> None:
    headings(axes, "Seconds to the same loss", "that all depths of a size reach, four networks at once")
    sizes = [(size, list(own)) for size, own in groupby(rows, key=lambda row: row["size"])]
    shades = plt.get_cmap("viridis")(np.linspace(0.05, 0.8, len(sizes) + 1))
    for (size, own), shade in zip(sizes, shades, strict=False):
        depths, seconds = ([row[name] for row in own] for name in ("depth", "seconds"))
        axes.plot(depths, seconds, "-o", color=shade, label=_named(size))
    axes.set(xscale="log", yscale="log", xlabel="depth, at equal parameters", ylabel="seconds", ylim=(1, 60))
    axes.set_yticks((1, 2, 5, 10, 20, 50), ("1", "2", "5", "10", "20", "50"))
    _depths(axes, TICKS)
    axes.legend(edgecolor="#ffffff", framealpha=1, title="parameters in the blocks", loc="lower right", ncols=2)


def _heads(axes: Axes, sixteen: list[dict[str, Any]], one: list[dict[str, Any]]) -> None:
    headings(axes, "One head or several", "120k parameters; bars: least to greatest of four seeds")
    deepest = max(point["depth"] for point in one)
    for points, colour, name in ((one, ORANGE, "one head"), (sixteen, BLUE, "heads of about 16 numbers")):
        own = [point for point in points if point["depth"] <= deepest]
        means = [point["bits_per_byte"] for point in own]
        below = [point["bits_per_byte"] - min(point["seeds"]) for point in own]
        above = [max(point["seeds"]) - point["bits_per_byte"] for point in own]
        axes.errorbar([point["depth"] for point in own], means, [below, above], fmt="-o", color=colour, label=name)
    axes.set(xscale="log", xlabel="depth, at equal parameters", ylabel="bits a byte")
    _depths(axes, [depth for depth in TICKS if depth <= deepest])
    axes.legend(edgecolor="#ffffff", framealpha=1, loc="upper right")


def _newest(name: str) -> dict[str, Any]:
    path = max(RESULTS.glob(f"{name}-*.json"), key=lambda path: path.stem[-10:])
    return json.loads(path.read_text(encoding="utf-8"))


def _depths(axes: Axes, ticks: Any) -> None:
    axes.set_xticks(ticks, [str(depth) for depth in ticks])
    axes.minorticks_off()


def _named(count: int) -> str:
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count // 1000}k"


if __name__ == "__main__":
    main()
