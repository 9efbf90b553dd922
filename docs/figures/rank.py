"""Measures the ranks of the README's figure and draws them, in two minutes.

`python docs/figures/rank.py` writes rank.svg beside this file.
Left: self-attention over its width, one line a depth. Right: over the number of tokens, attention beside a
convolutional circuit. A filled dot is the left-right partition, a ring the interleaved one.
"""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from style import BLUE, GREY, INK, ORANGE, headings, save

from theodolite import rank
from theodolite.theory.attention import attention_bounds

PARTITIONS = ("left-right", "interleaved")
WIDTHS = {1: (2, 3, 4, 5, 6), 2: (2, 3, 4, 5, 6), 3: (2, 3)}  # depth: widths
TOKENS = (4, 8, 16)
RING: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 9, "markerfacecolor": "none"}


def measure() -> tuple[dict, dict, dict]:
    """Exact ranks by (depth, width, partition), and by (tokens, partition) for attention and for the circuit."""
    by_width = {
        (depth, width, partition): _exact(
            "self-attention", partition, depth=depth, width=width, tokens=2 * max(width, 3)
        )
        for depth, widths in WIDTHS.items()
        for width in widths
        for partition in PARTITIONS
    }
    attention, circuit = (
        {(tokens, p): _exact(net, p, tokens=tokens, **shape) for tokens in TOKENS for p in PARTITIONS}
        for net, shape in (("self-attention", {"depth": 2, "width": 3}), ("conv-circuit", {"width": 2}))
    )
    return by_width, attention, circuit


def _exact(net: str, partition: str, **shape: int) -> int:
    result = rank(net, partition=partition, repeats=1, **shape)
    if not result.saturated:
        raise SystemExit(f"{net} {shape} {partition}: the caption says that every rank equals its cap")
    return result.rank


def left_panel(axes: Axes, ranks: dict) -> None:
    headings(axes, "Self-attention", "separation rank, one head, 2d tokens (6 at d = 2)")
    bound = [float(attention_bounds(2, width, 1).upper or math.nan) for width in WIDTHS[2]]
    axes.plot(WIDTHS[2], bound, "--", color=GREY)
    axes.annotate("published upper bound, depth 2", (4, 3e8), xytext=(4.1, 5e7), color=GREY)
    for depth, widths in WIDTHS.items():
        values = [ranks[depth, width, "left-right"] for width in widths]
        axes.plot(widths, values, "-o", color=BLUE)
        axes.plot(widths, [ranks[depth, width, "interleaved"] for width in widths], **RING, color=BLUE)
        beside(axes, widths[-1], values[-1], f"depth {depth}: {values[-1]:,}", BLUE)
    axes.set(yscale="log", xlabel="width d", xlim=(1.6, 7.4), ylim=(1, 1e12), xticks=WIDTHS[1])
    axes.set_yticks([1, 1e3, 1e6, 1e9, 1e12])


def right_panel(axes: Axes, attention: dict, circuit: dict) -> None:
    headings(
        axes, "Which tokens stand on which side", "separation rank; attention of depth 2, width 3; circuit of width 2"
    )
    for ranks, colour, name in ((attention, BLUE, "attention"), (circuit, ORANGE, "circuit")):
        halves, mixed = ([ranks[tokens, partition] for tokens in TOKENS] for partition in PARTITIONS)
        axes.plot(TOKENS, halves, "-o", color=colour)
        axes.plot(TOKENS, mixed, **RING | {"linestyle": "-"}, color=colour)
        ends = {halves[-1]: "both"} if halves == mixed else {halves[-1]: "left-right", mixed[-1]: "interleaved"}
        for value, partition in ends.items():
            beside(axes, TOKENS[-1], value, f"{name}, {value:,}\n{partition}", colour)
    axes.set(yscale="log", xlabel="tokens", xlim=(3.6, 30), ylim=(1, 1e3))
    axes.set_xscale("log", base=2)
    axes.set_xticks(TOKENS, [str(tokens) for tokens in TOKENS])


def beside(axes: Axes, x: float, y: float, words: str, colour: str) -> None:
    axes.annotate(words, (x, y), xytext=(9, 0), textcoords="offset points", va="center", color=colour)


def main() -> None:
    by_width, attention, circuit = measure()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4.5), layout="constrained")
    left_panel(left, by_width)
    right_panel(right, attention, circuit)
    kinds = [Line2D([], [], marker="o", linestyle="none", color=INK), Line2D([], [], **RING, color=INK)]
    note = "Measured exactly over GF(p); every rank shown equals its proven cap."
    figure.legend(kinds, PARTITIONS, loc="outside lower left", ncols=2, frameon=False, title=note, alignment="left")
    save(figure, __file__)


if __name__ == "__main__":
    main()
