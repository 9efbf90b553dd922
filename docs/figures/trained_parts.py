"""Draws where the valley of depth lies for other vocabularies, embeddings, heads and networks:
`python docs/figures/trained_parts.py`.

Reads the newest study of depth against width and what was measured beside it in `benchmarks/results/`, and writes
trained_parts.svg beside this file. Losses are shown above the least of each curve, in per cent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from style import BLUE, INK, ORANGE, headings, save
from trained_beside import AT, _depths, _newest

Points = Sequence[Mapping[str, Any]]
SYMBOLS = {
    "vocabulary-1024": ("vocabulary of 1,024", ORANGE, "--o"),
    "vocabulary-4096": ("vocabulary of 4,096", ORANGE, "-o"),
    "rank-8": ("embedding of rank 8", INK, "--s"),
    "rank-2": ("embedding of rank 2", INK, "-s"),
}
HEADS = {
    "heads-1": ("one head", ORANGE, "--o"),
    "heads-4": ("four heads", ORANGE, "-o"),
    "attention-half": ("attention half as wide", INK, "--s"),
    "attention-double": ("attention twice as wide", INK, "-s"),
}
NETS = {
    "lstm": ("LSTM", ORANGE, "--o"),
    "linear-transformer": ("linear attention", ORANGE, "-o"),
    "delta-net": ("DeltaNet", INK, "--s"),
    "state-space": ("state space", INK, "-s"),
}


def main() -> None:
    study, beside = _newest("scale-study"), _newest("scale-beside")
    bytes_ = next(size["points"] for size in study["sizes"] if size["size"] == AT)
    figure = plt.figure(figsize=(11.5, 3.7), layout="constrained")
    panels = figure.subplots(1, 3)
    headings(panels[0], "Vocabulary and embedding", "% of loss above the best depth, mean of four seeds")
    headings(panels[1], "Heads and width of attention", "the same; all have 120k parameters")
    headings(panels[2], "Other networks", "the same, each at the better of two rates")
    for axes, parts, most in zip(panels, (SYMBOLS, HEADS, NETS), (25, 10, 40), strict=True):
        _curve(axes, [p for p in bytes_ if p["depth"] <= 8], "decoder on bytes", BLUE, "-o")
        for name, (label, colour, form) in parts.items():
            _curve(axes, beside[name]["sizes"][0]["points"], label, colour, form)
        axes.set(
            xscale="log", xlabel="depth, at equal parameters", ylabel="% above the best", ylim=(-0.02 * most, most)
        )
        _depths(axes, (1, 2, 3, 4, 6, 8))
        axes.legend(edgecolor="#ffffff", framealpha=1, loc="upper right")
    save(figure, __file__)


def _curve(axes: Axes, points: Points, label: str, colour: str, form: str) -> None:
    least = min(point["bits_per_byte"] for point in points)
    above = [100 * (point["bits_per_byte"] / least - 1) for point in points]
    axes.plot([point["depth"] for point in points], above, form, color=colour, label=label)


if __name__ == "__main__":
    main()
