"""Draws the error against the budget, degree by degree, from a document of benchmarks/degree.py.

`python docs/figures/degree.py benchmarks/results/degree-….json` writes degree.svg beside this file: one panel a
problem, matrices of width 16; a dot is the geometric mean over seeds, its bar the 95 % interval.
"""

from __future__ import annotations

import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any

LOOKS = {  # degree: colour, dash
    "2": ("#D55E00", ""),
    "3": ("#0072B2", ""),
    "4": ("#009E73", ""),
    "5": ("#CC79A7", ""),
    "3,2": ("#56B4E9", "4 3"),
    "e": ("#E69F00", "1 3"),
}
NAMES = {"3,2": "3 and 2 mixed"}
INK, GREY, RULE = "#1f2933", "#6b7280", "#e5e7eb"
FONT = "font-family='DejaVu Sans, Verdana, Helvetica, Arial, sans-serif'"
WIDTH = 16
COLUMNS, PANEL, HEIGHT, TOP = 4, 245, 232, 84


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(__file__).with_suffix(".svg").write_text(draw(document), encoding="utf-8")


def draw(document: dict[str, Any]) -> str:
    rows = [row for row in document["rows"] if row["matrix_width"] == WIDTH and row["degree"] in LOOKS]
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    lines = -(-len(problems) // COLUMNS)
    width, height = COLUMNS * PANEL + 24, TOP + lines * HEIGHT + 12
    title = "Test error against the budget, by the degree of the blocks"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        "role='img'>",
        f"<title>{title}</title>",
        f"<rect x='.5' y='.5' width='{width - 1}' height='{height - 1}' rx='8' fill='#ffffff' stroke='#d1d5db'/>",
        _text(20, 28, title, INK, size=15, weight="bold"),
        _text(
            20,
            46,
            f"budget in matrices of {WIDTH} × {WIDTH}; geometric mean of {document['seeds']} seeds with 95 % interval; "
            "share of the variance left (digits: of wrong classes)",
            GREY,
            size=11,
        ),
        *_legend([degree for degree in LOOKS if any(row["degree"] == degree for row in rows)]),
    ]
    for place, problem in enumerate(problems):
        left, top = 12 + (place % COLUMNS) * PANEL, TOP + (place // COLUMNS) * HEIGHT
        parts += _panel(problem, [row for row in rows if row["problem"] == problem], left, top)
    return "\n".join([*parts, "</svg>\n"])


def _legend(degrees: list[str]) -> list[str]:
    parts, x = [], 20.0
    for degree in degrees:
        colour, dash = LOOKS[degree]
        name = NAMES.get(degree, degree)
        parts.append(f"<path d='M{x:.1f} 62H{x + 22:.1f}' stroke='{colour}' stroke-width='2'{_dashed(dash)}/>")
        parts.append(f"<circle cx='{x + 11:.1f}' cy='62' r='3' fill='{colour}'/>")
        parts.append(_text(x + 28, 66, ("degree " if x == 20 else "") + name, INK, size=12))
        x += 48 + 7.2 * len(name) + (48 if x == 20 else 0)
    return parts


def _panel(problem: str, rows: list[dict[str, Any]], left: float, top: float) -> list[str]:
    budgets = sorted({row["budget"] for row in rows})
    low = min(math.exp(row["log_interval"][0]) for row in rows)
    high = max(math.exp(row["log_interval"][1]) for row in rows)
    if high < 1.2 * low:  # a range so narrow would show nothing but noise
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(1.2), middle * math.sqrt(1.2)
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    inside = (left + 44, left + PANEL - 8, top + 26, top + HEIGHT - 40)
    span = math.log(high / low) or 1.0

    def x(budget: int, shift: float = 0.0) -> float:
        share = (budgets.index(budget) + 0.5) / len(budgets)
        return inside[0] + share * (inside[1] - inside[0]) + shift

    def y(error: float) -> float:
        return inside[3] - (inside[3] - inside[2]) * math.log(error / low) / span

    parts = [_text(left + 8, top + 14, problem, INK, size=12, weight="bold")]
    for tick in ticks:
        parts.append(f"<path d='M{inside[0]:.1f} {y(tick):.1f}H{inside[1]:.1f}' stroke='{RULE}'/>")
        parts.append(_text(inside[0] - 5, y(tick) + 4, f"{tick:g}", GREY, "end", 10))
    for budget in budgets:
        parts.append(_text(x(budget), inside[3] + 16, str(budget), GREY, "middle", 10))
    parts.append(_text((inside[0] + inside[1]) / 2, inside[3] + 30, "budget", GREY, "middle", 10))
    degrees = [degree for degree in LOOKS if any(row["degree"] == degree for row in rows)]
    for place, degree in enumerate(degrees):
        colour, dash = LOOKS[degree]
        own = sorted((row for row in rows if row["degree"] == degree), key=lambda row: row["budget"])
        shift = 5.0 * (place - (len(degrees) - 1) / 2)  # side by side, so that bars do not hide each other
        points = [(x(row["budget"], shift), y(math.exp(row["mean_log_error"]))) for row in own]
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        parts.append(
            f"<path d='{path}' fill='none' stroke='{colour}' stroke-width='1.3' opacity='.75'{_dashed(dash)}/>"
        )
        for (a, b), row in zip(points, own, strict=True):
            ends = [y(math.exp(value)) for value in row["log_interval"]]
            parts.append(f"<path d='M{a:.1f} {ends[0]:.1f}V{ends[1]:.1f}' stroke='{colour}' stroke-width='1.4'/>")
            parts.append(f"<circle cx='{a:.1f}' cy='{b:.1f}' r='2.6' fill='{colour}'/>")
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers of a logarithmic axis, three or more where the range is wide enough."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    for leads in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        ticks = [float(f"{lead * 10.0**power:.3g}") for power in powers for lead in leads]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 3:
            return inside
    fine = [float(f"{low * (high / low) ** (k / 3):.2g}") for k in range(4)]
    return sorted(set(fine))


def _text(
    x: float, y: float, words: str, fill: str, anchor: str = "start", size: int = 12, weight: str = "normal"
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' fill='{fill}' font-size='{size}' font-weight='{weight}' "
        f"text-anchor='{anchor}' {FONT}>{escape(words)}</text>"
    )


def _dashed(dash: str) -> str:
    return f" stroke-dasharray='{dash}'" if dash else ""


if __name__ == "__main__":
    main()
