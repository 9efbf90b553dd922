"""Draws what depth was worth to decoders of equal size on real text: `python docs/figures/trained_depths.py`, a second.

Reads the newest study in `benchmarks/results/` and writes trained_depths.svg beside this file: loss over the best of a
size, the best shapes with the line through them beside the published one, and how the order of depths went over
training.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from style import BLUE, GREY, ORANGE, headings, save

from theodolite.theory.shapes import FITTED_DEPTHS, INTERCEPT, SLOPE

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
TICKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
Size = dict[str, Any]
_LEGEND: dict[str, Any] = {"edgecolor": "#ffffff", "framealpha": 1}


def main() -> None:
    newest = max(RESULTS.glob("scale-study-*.json"), key=lambda path: path.stem[-10:])
    sizes: list[Size] = json.loads(newest.read_text(encoding="utf-8"))["sizes"]
    shades = plt.get_cmap("viridis")(np.linspace(0.05, 0.8, len(sizes)))
    figure = plt.figure(figsize=(10, 7.6), layout="constrained")
    rows: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1])
    valleys, shapes = rows[0].subplots(1, 2)
    _valleys(valleys, sizes, shades)
    _shapes(shapes, sizes, shades)
    panels = rows[1].subplots(1, len(sizes), sharey=True)
    for axes, size in zip(panels, sizes, strict=True):
        _over_training(axes, size)
    panels[0].set_ylabel("loss over the least, %")
    save(figure, __file__)


def _valleys(axes: Axes, sizes: list[Size], shades: Any) -> None:
    headings(axes, "What a depth costs", "held-out loss over the best depth of a size, %, four seeds")
    for size, shade in zip(sizes, shades, strict=True):
        best = min(point["bits_per_byte"] for point in size["points"])
        over = lambda loss, best=best: 100 * (loss / best - 1)
        depths = [point["depth"] for point in size["points"]]
        losses = [point["bits_per_byte"] for point in size["points"]]
        reach = [[over(p["bits_per_byte"]) - over(min(p["seeds"])) for p in size["points"]]]
        reach.append([over(max(p["seeds"])) - over(p["bits_per_byte"]) for p in size["points"]])
        axes.errorbar(depths, [over(loss) for loss in losses], reach, fmt="-o", color=shade, label=_named(size))
    axes.set(xscale="log", xlabel="depth, at equal parameters", ylim=(-2, 16))
    _depths(axes, [d for d in TICKS if d <= max(p["depth"] for size in sizes for p in size["points"])])
    axes.legend(**_LEGEND, title="parameters in the blocks", loc="upper right", ncols=2)


def _shapes(axes: Axes, sizes: list[Size], shades: Any) -> None:
    headings(axes, "The best shape of a size", "bar: depths within 1 % of its loss")
    for size, shade in zip(sizes, shades, strict=True):
        widths = {point["depth"]: point["width"] for point in size["points"]}
        flat = sorted(size["flat"])
        axes.plot(flat, [widths[d] for d in flat], "-", color=shade, linewidth=5, alpha=0.35, solid_capstyle="round")
        axes.plot(size["best"], widths[size["best"]], "o", color=shade)
        axes.annotate(
            _named(size),
            (max(flat), widths[max(flat)]),
            xytext=(8, -3),
            textcoords="offset points",
            color=shade,
        )
    ours = np.polyfit([size["best"] for size in sizes], [math.log(_width(size)) for size in sizes], 1)
    reach = np.linspace(2.5, 9, 50)
    axes.plot(reach, np.exp(np.polyval(ours, reach)), "--", color=GREY, linewidth=1)
    axes.annotate("ours", (9, math.exp(np.polyval(ours, 9))), xytext=(3, 2), textcoords="offset points", color=GREY)
    low, high = FITTED_DEPTHS
    inside, before = (np.arange(a, b + 1) for a, b in ((low, high), (1, low)))
    axes.plot(inside, np.exp(INTERCEPT + SLOPE * inside), "-", color=ORANGE)
    axes.plot(before, np.exp(INTERCEPT + SLOPE * before), ":", color=ORANGE)
    axes.annotate(
        "published line,\nfitted at 6 to 48",
        (1, math.exp(INTERCEPT + SLOPE)),
        xytext=(2, 8),
        textcoords="offset points",
        color=ORANGE,
    )
    axes.set(xscale="log", yscale="log", xlabel="depth", ylabel="width", xlim=(0.9, 40), ylim=(16, 1500))
    _depths(axes, (1, 2, 4, 8, 16, 32))
    axes.set_yticks((20, 50, 100, 200, 500, 1000), ("20", "50", "100", "200", "500", "1,000"))


def _width(size: Size) -> int:
    return next(point["width"] for point in size["points"] if point["depth"] == size["best"])


def _over_training(axes: Axes, size: Size) -> None:
    curves = {point["depth"]: dict(point["curve"]) for point in size["points"]}
    steps = sorted(curves[size["best"]])
    least = [min(curve[step] for curve in curves.values()) for step in steps]
    ends = {min(curves): GREY, max(curves): ORANGE, size["best"]: BLUE}
    for depth, curve in curves.items():
        over = [100 * (curve[step] / low - 1) for step, low in zip(steps, least, strict=True)]
        axes.plot(
            [step / steps[-1] for step in steps],
            over,
            color=ends.get(depth, GREY),
            linewidth=1.6 if depth in ends else 0.5,
            label=f"depth {depth}" if depth in ends else None,
        )
    axes.set_title(f"{_named(size)}: {size['best']} best", loc="left", fontsize=9, fontweight="bold")
    axes.set(xlabel="share of training", ylim=(0, 15))
    axes.set_xticks((0, 0.5, 1), ("0", "½", "1"))
    axes.legend(**_LEGEND, fontsize=7.5, loc="upper right")


def _depths(axes: Axes, ticks: Any) -> None:
    axes.set_xticks(ticks, [str(depth) for depth in ticks])
    axes.minorticks_off()


def _named(size: Size) -> str:
    count = size["size"]
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count // 1000}k"


if __name__ == "__main__":
    main()
