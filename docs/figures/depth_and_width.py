"""Draws exact rank against depth at equal parameters: `python docs/figures/depth_and_width.py`, a second.

Writes depth_and_width.svg beside this file. 4·L·d² parameters in the four matrices of attention, those of 12 layers of
width 768; log₃ of the rank in units of an eighth of them, the limit of many layers.
"""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
from style import BLUE, GREY, ORANGE, headings, save

from theodolite.theory.attention import attention_bounds
from theodolite.theory.attention_growth import proven_log3
from theodolite.theory.cap import attention_cap_log3

PARAMETERS = 4 * 12 * 768**2
DEPTHS = (6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192)
FEW = 8  # tokens a side


def main() -> None:
    widths = [round(math.sqrt(PARAMETERS / (4 * depth))) for depth in DEPTHS]
    shapes = list(zip(DEPTHS, widths, strict=True))
    unit = PARAMETERS / 8
    figure, axes = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
    headings(axes, "Depth at equal parameters", "log₃ of the separation rank over an eighth of the parameters")
    cap = [attention_cap_log3(depth, width) / unit for depth, width in shapes]
    proven = [proven_log3(depth, width) / unit for depth, width in shapes]
    few = [proven_log3(depth, width, FEW) / unit for depth, width in shapes]
    published = [(attention_bounds(depth, width, 1).upper_log3 or math.nan) / unit for depth, width in shapes]
    axes.fill_between(DEPTHS, proven, cap, color=BLUE, alpha=0.12, linewidth=0)
    axes.plot(DEPTHS, cap, "-o", color=BLUE)
    axes.plot(DEPTHS, proven, "-o", color=BLUE, markerfacecolor="#ffffff")
    axes.plot(DEPTHS, few, "-o", color=ORANGE, markerfacecolor="#ffffff")
    axes.plot(DEPTHS, published, "--", color=GREY)
    axes.annotate("at most (the cap)", (24, cap[DEPTHS.index(24)]), xytext=(-96, 12), **_BESIDE, color=BLUE)
    axes.annotate(
        "at least, 2d tokens or more", (48, proven[DEPTHS.index(48)]), xytext=(14, -12), **_BESIDE, color=BLUE
    )
    axes.annotate(
        f"at least, {2 * FEW} tokens", (128, few[DEPTHS.index(128)]), xytext=(-40, 12), **_BESIDE, color=ORANGE
    )
    axes.annotate("at most, as published", (20, published[DEPTHS.index(20)]), xytext=(0, 16), **_BESIDE, color=GREY)
    axes.set(xscale="log", xlabel="depth L; the width is √(parameters / 4L)", ylim=(0, 1.05))
    ticks = (6, 12, 24, 48, 96, 192)
    axes.set_xticks(ticks, [f"{depth}\nd = {widths[DEPTHS.index(depth)]}" for depth in ticks])
    axes.minorticks_off()
    save(figure, __file__)


_BESIDE: dict[str, Any] = {"textcoords": "offset points"}


if __name__ == "__main__":
    main()
