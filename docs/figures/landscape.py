"""Draws where the gradient leads anywhere: the loss of cos⟨w, x⟩ on cos⟨v, x⟩, and how its signal falls, in seconds.

`python docs/figures/landscape.py` writes landscape.svg beside this file.
Left: F(w) = E[(cos⟨w, x⟩ − cos⟨v, x⟩)²] over two weights, v = (2, 2), x standard normal, in closed form; grey where the
gradient is below 1 % of its largest norm. Right: the largest variance of the gradient over v, over all w, by dimension.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from style import BLUE, GREY, ORANGE, RULE, headings, save

from theodolite.claims.expressivity.landscape import FLAT, Landscape, cosine_landscape
from theodolite.theory.gradient import largest_cosine_variance

REACH, POINTS = 6.0, 121
DIMENSIONS, RADII = (2, 4, 6, 8, 10, 12, 14, 16), (2.0, 4.0, 8.0)


def left_panel(axes: Axes, found: Landscape) -> None:
    headings(
        axes, "Two minima, and nothing that leads there", "loss of cos⟨w, x⟩ on cos⟨v, x⟩, v = (2, 2): darker is lower"
    )
    slope = np.array(found.slope)
    shown = np.ma.masked_where(slope < FLAT * slope.max(), found.loss)
    colours = LinearSegmentedColormap.from_list("blue", [BLUE, "#ffffff"])
    colours.set_bad(RULE)
    axes.imshow(shown.T, cmap=colours, origin="lower", extent=(-REACH, REACH, -REACH, REACH))
    for (x, y, _), name in zip(sorted(found.minima), ("−v", "v"), strict=True):
        axes.plot(x, y, "o", color=ORANGE, markeredgecolor="#ffffff")
        axes.annotate(name, (x, y), xytext=(6, 3), textcoords="offset points", color="#ffffff")
    axes.set(xlabel="first weight", ylabel="second weight", xticks=range(-6, 7, 3), yticks=range(-6, 7, 3))
    axes.grid(False)


def right_panel(axes: Axes) -> None:
    headings(axes, "The signal falls with every dimension", "largest variance of the gradient over all w, ‖v‖ = r")
    for radius in RADII:
        values = [largest_cosine_variance(d, radius)[0] for d in DIMENSIONS]
        axes.plot(DIMENSIONS, values, "-o", color=BLUE)
        end = (DIMENSIONS[-1], values[-1])
        axes.annotate(f"r = {radius:g}", end, xytext=(9, 0), textcoords="offset points", va="center", color=BLUE)
    axes.set(yscale="log", xlabel="dimensions d", xlim=(1.5, 18.5), ylim=(1e-12, 1), xticks=DIMENSIONS)
    axes.set_yticks([1e-12, 1e-9, 1e-6, 1e-3, 1])


def main() -> None:
    found = cosine_landscape((2.0, 2.0), REACH, POINTS)
    wide = cosine_landscape((2.0, 2.0), 2 * REACH, 2 * POINTS - 1).flat
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4.5), layout="constrained")
    left_panel(left, found)
    right_panel(right)
    figure.supxlabel(
        f"Grey: the gradient is below 1 % of its largest norm ({found.flat:.0%} of this square, {wide:.0%} of one "
        "twice as wide). Closed forms.",
        x=0.02, ha="left", color=GREY, fontsize="medium",
    )  # fmt: skip
    save(figure, __file__)


if __name__ == "__main__":
    main()
