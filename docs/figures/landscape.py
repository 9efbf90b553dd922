"""Draws where the gradient leads anywhere: the loss of cos⟨w, x⟩ on cos⟨v, x⟩, and how its signal falls, in seconds.

`python docs/figures/landscape.py` writes landscape.svg beside this file.
Left: F(w) = E[(cos⟨w, x⟩ − cos⟨v, x⟩)²] over two weights, v = (2, 2), x standard normal, in closed form; grey where the
gradient is below 1 % of its largest norm. Right: the largest variance of the gradient over v, over all w, by dimension.
"""

from __future__ import annotations

import math
from pathlib import Path

from theodolite.claims.expressivity.landscape import FLAT, Landscape, cosine_landscape
from theodolite.theory.gradient import largest_cosine_variance

BLUE, ORANGE, GREY, INK = "#1d5c9e", "#b94a00", "#6b7280", "#1f2933"
FONT = "font-family='DejaVu Sans, Verdana, Helvetica, Arial, sans-serif'"
REACH, POINTS = 6.0, 61
DIMENSIONS, RADII = (2, 4, 6, 8, 10, 12, 14, 16), (2.0, 4.0, 8.0)
LEFT, TOP, SIZE = 58.0, 76.0, 284.0  # of the map
RIGHT, WIDE, LOWEST = 500.0, 300.0, -12


def text(x: float, y: float, words: str, fill: str = INK, anchor: str = "start", size: int = 12) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' fill='{fill}' font-size='{size}' text-anchor='{anchor}' {FONT}>{words}</text>"
    )


def heading(x: float, title: str, subtitle: str) -> list[str]:
    return [text(x, 34, f"<tspan font-weight='bold'>{title}</tspan>", size=14), text(x, 54, subtitle, GREY)]


def blend(share: float) -> str:
    """From white at 0 to blue at 1."""
    low, high = (255, 255, 255), (29, 92, 158)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(low, high, strict=True))


def place(value: float) -> float:
    return SIZE * (value + REACH) / (2 * REACH)


def left_panel(found: Landscape) -> list[str]:
    parts = heading(
        24, "Two minima, and nothing that leads there", "loss of cos⟨w, x⟩ on cos⟨v, x⟩, v = (2, 2): darker is lower"
    )
    top = max(max(row) for row in found.loss)
    steepest = max(max(row) for row in found.slope)
    cell = SIZE / (POINTS - 1)
    frame = f"x='{LEFT}' y='{TOP}' width='{SIZE}' height='{SIZE}'"
    parts.append(f"<clipPath id='frame'><rect {frame}/></clipPath>")
    parts.append("<g clip-path='url(#frame)' shape-rendering='crispEdges'>")
    for i, x in enumerate(found.xs):
        colours = [
            "#e5e7eb" if found.slope[i][j] < FLAT * steepest else blend(round(24 * (1 - found.loss[i][j] / top)) / 24)
            for j in range(POINTS)
        ]
        start = 0
        for j in range(1, POINTS + 1):  # a run of one colour up the column is one rectangle
            if j == POINTS or colours[j] != colours[start]:
                y = TOP + SIZE - place(found.ys[j - 1]) - cell / 2
                parts.append(
                    f"<rect x='{LEFT + place(x) - cell / 2:.2f}' y='{y:.2f}' width='{cell + 0.2:.2f}' "
                    f"height='{(j - start) * cell + 0.2:.2f}' fill='{colours[start]}'/>"
                )
                start = j
    parts.append("</g>")
    for x, y, _ in found.minima:
        px, py = LEFT + place(x), TOP + SIZE - place(y)
        parts.append(f"<circle cx='{px:.1f}' cy='{py:.1f}' r='4' fill='{ORANGE}' stroke='#ffffff'/>")
        parts.append(text(px + 8, py - 6 if y > 0 else py + 16, "v" if y > 0 else "−v", "#ffffff", size=13))
    for tick in (-6, -3, 0, 3, 6):
        parts.append(text(LEFT + place(tick), TOP + SIZE + 17, str(tick).replace("-", "−"), GREY, "middle", 11))
        parts.append(text(LEFT - 7, TOP + SIZE - place(tick) + 4, str(tick).replace("-", "−"), GREY, "end", 11))
    parts.append(text(LEFT + SIZE / 2, TOP + SIZE + 36, "first weight", INK, "middle"))
    parts.append(
        f"<text transform='translate({LEFT - 34:.1f} {TOP + SIZE / 2:.1f}) rotate(-90)' fill='{INK}' font-size='12' "
        f"text-anchor='middle' {FONT}>second weight</text>"
    )
    parts.append(f"<rect x='{LEFT}' y='{TOP}' width='{SIZE}' height='{SIZE}' fill='none' stroke='{GREY}'/>")
    return parts


def right_panel() -> list[str]:
    parts = heading(
        RIGHT - 44, "The signal falls with every dimension", "largest variance of the gradient over all w, ‖v‖ = r"
    )
    bottom = TOP + SIZE
    x = lambda d: RIGHT + WIDE * (d - DIMENSIONS[0]) / (DIMENSIONS[-1] - DIMENSIONS[0])
    y = lambda value: bottom - SIZE * (1 - math.log10(value) / LOWEST)
    for power in range(0, LOWEST - 1, -3):
        at = y(10.0**power)
        label = "1" if power == 0 else f"10<tspan dy='-5' font-size='9'>−{-power}</tspan>"
        parts.append(f"<path d='M{RIGHT:.1f} {at:.1f}H{RIGHT + WIDE + 8:.1f}' stroke='#e5e7eb'/>")
        parts.append(text(RIGHT - 8, at + 4, label, GREY, "end", 11))
    parts.append(f"<path d='M{RIGHT:.1f} {bottom:.1f}H{RIGHT + WIDE + 8:.1f}' stroke='{GREY}'/>")
    for d in DIMENSIONS:
        parts.append(text(x(d), bottom + 17, str(d), GREY, "middle", 11))
    parts.append(text(RIGHT + WIDE / 2, bottom + 36, "dimensions d", INK, "middle"))
    for radius in RADII:
        values = [largest_cosine_variance(d, radius)[0] for d in DIMENSIONS]
        path = "M" + "L".join(f"{x(d):.1f} {y(v):.1f}" for d, v in zip(DIMENSIONS, values, strict=True))
        parts.append(f"<path d='{path}' fill='none' stroke='{BLUE}' stroke-width='1.6'/>")
        parts += [
            f"<circle cx='{x(d):.1f}' cy='{y(v):.1f}' r='3.5' fill='{BLUE}'/>"
            for d, v in zip(DIMENSIONS, values, strict=True)
        ]
        parts.append(text(x(DIMENSIONS[-1]) + 12, y(values[-1]) + 4, f"r = {radius:g}", BLUE))
    return parts


def draw() -> str:
    found = cosine_landscape((2.0, 2.0), REACH, POINTS)
    wide = cosine_landscape((2.0, 2.0), 2 * REACH, 2 * POINTS - 1).flat
    note = (
        f"Grey: the gradient is below 1 % of its largest norm ({100 * found.flat:.0f} % of this square, "
        f"{100 * wide:.0f} % of one twice as wide). Closed forms."
    )
    return "\n".join(
        [
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 940 448' width='940' height='448' role='img'>",
            "<title>The loss landscape of a cosine and the variance of its gradient</title>",
            "<rect x='.5' y='.5' width='939' height='447' rx='8' fill='#ffffff' stroke='#d1d5db'/>",
            *left_panel(found),
            *right_panel(),
            text(58, 429, note, GREY),
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(), encoding="utf-8")
