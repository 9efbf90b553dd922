"""How the figures of this folder look: a white ground of their own, grey rules, text that stays text."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREY, INK, RULE = "#1d5c9e", "#b94a00", "#6b7280", "#1f2933", "#e5e7eb"

mpl.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "theodolite",  # the same names in every run
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": GREY,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": RULE,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "lines.linewidth": 1.4,
        "lines.markersize": 5,
    }
)


def headings(axes: Axes, title: str, subtitle: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold", pad=24)
    axes.text(0, 1.03, subtitle, transform=axes.transAxes, color=GREY)


def save(figure: Figure, script: str) -> None:
    """As an SVG beside the script that drew it; nothing in it depends on the day."""
    path = Path(script).with_suffix(".svg")
    undated = {"Date": None, "Creator": None}
    figure.savefig(path, facecolor="#ffffff", bbox_inches="tight", pad_inches=0.15, metadata=undated)
