"""Measures the ranks of the README's figure and draws them, in two minutes.

`python docs/figures/rank.py` writes rank.svg beside this file.
Left: self-attention over its width, one line a depth. Right: over the number of tokens, attention beside a
convolutional circuit. A filled dot is the left-right partition, a ring the interleaved one.
"""

from __future__ import annotations

import math
from pathlib import Path

from theodolite import rank
from theodolite.theory.attention import attention_bounds

BLUE, ORANGE, GREY, INK = "#1d5c9e", "#b94a00", "#6b7280", "#1f2933"
FONT = "font-family='DejaVu Sans, Verdana, Helvetica, Arial, sans-serif'"
PARTITIONS = ("left-right", "interleaved")
WIDTHS = {1: (2, 3, 4, 5, 6), 2: (2, 3, 4, 5, 6), 3: (2, 3)}  # depth: widths
TOKENS = (4, 8, 16)


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


class Plot:
    """One panel: a logarithmic y axis, an x axis of equally spaced values."""

    def __init__(self, left: float, right: float, xs: tuple[int, ...], top: float) -> None:
        self.left, self.right, self.xs, self.top = left, right, xs, top
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        return self.left + 34 + (self.right - self.left - 118) * self.xs.index(value) / (len(self.xs) - 1)

    def y(self, value: float) -> float:
        return 352 - 270 * math.log10(value) / math.log10(self.top)

    def text(self, x: float, y: float, words: str, fill: str = INK, anchor: str = "start", size: int = 12) -> None:
        self.parts.append(
            f"<text x='{x:.1f}' y='{y:.1f}' fill='{fill}' font-size='{size}' text-anchor='{anchor}' {FONT}>"
            f"{words}</text>"
        )

    def axes(self, title: str, subtitle: str, x_label: str, powers: tuple[int, ...]) -> None:
        self.text(self.left - 34, 34, f"<tspan font-weight='bold'>{title}</tspan>", size=14)
        self.text(self.left - 34, 54, subtitle, GREY)
        for power in powers:
            y = self.y(10**power)
            self.parts.append(f"<path d='M{self.left:.1f} {y:.1f}H{self.right:.1f}' stroke='#e5e7eb'/>")
            label = "1" if power == 0 else f"10<tspan dy='-5' font-size='9'>{power}</tspan>" if power > 1 else "10"
            self.text(self.left - 8, y + 4, label, GREY, "end", 11)
        self.parts.append(f"<path d='M{self.left:.1f} 352H{self.right:.1f}' stroke='{GREY}'/>")
        for value in self.xs:
            self.text(self.x(value), 370, str(value), GREY, "middle", 11)
        self.text((self.x(self.xs[0]) + self.x(self.xs[-1])) / 2, 392, x_label, INK, "middle")

    def line(self, points: list[tuple[int, float]], colour: str, dashed: bool = False) -> None:
        path = "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        dash = " stroke-dasharray='5 4'" if dashed else ""
        self.parts.append(f"<path d='{path}' fill='none' stroke='{colour}' stroke-width='1.6'{dash}/>")

    def marks(self, points: list[tuple[int, int]], colour: str, ring: bool) -> None:
        for x, y in points:
            look = f"r='6.5' fill='none' stroke='{colour}' stroke-width='1.5'" if ring else f"r='3.5' fill='{colour}'"
            self.parts.append(f"<circle cx='{self.x(x):.1f}' cy='{self.y(y):.1f}' {look}/>")


def left_panel(ranks: dict) -> list[str]:
    plot = Plot(58, 460, WIDTHS[1], 1e12)
    plot.axes("Self-attention", "separation rank, one head, 2d tokens (6 at d = 2)", "width d", (0, 3, 6, 9, 12))
    bound = [(width, float(attention_bounds(2, width, 1).upper or math.nan)) for width in WIDTHS[2]]
    plot.line(bound, GREY, dashed=True)
    plot.text(plot.x(4) + 6, plot.y(bound[2][1]) + 40, "published upper bound, depth 2", GREY)
    for depth, widths in WIDTHS.items():
        both = {p: [(width, ranks[depth, width, p]) for width in widths] for p in PARTITIONS}
        plot.line(both["left-right"], BLUE)
        plot.marks(both["left-right"], BLUE, ring=False)
        plot.marks(both["interleaved"], BLUE, ring=True)
        last, rank = both["left-right"][-1]
        plot.text(plot.x(last) + 13, plot.y(rank) + 4, f"depth {depth}: {rank:,}", BLUE)
    return plot.parts


def right_panel(attention: dict, circuit: dict) -> list[str]:
    plot = Plot(540, 900, TOKENS, 1e3)
    plot.axes(
        "Which tokens stand on which side",
        "separation rank; attention of depth 2, width 3; circuit of width 2",
        "tokens",
        (0, 1, 2, 3),
    )
    for partition in PARTITIONS:
        inter = partition == "interleaved"
        for ranks, colour in ((attention, BLUE), (circuit, ORANGE)):
            points = [(tokens, ranks[tokens, partition]) for tokens in TOKENS]
            plot.line(points, colour, dashed=False)
            plot.marks(points, colour, ring=inter)
    end = plot.x(TOKENS[-1]) + 13
    for ranks, partition, colour, words in (
        (circuit, "interleaved", ORANGE, "circuit,"),
        (attention, "interleaved", BLUE, "attention,"),
        (circuit, "left-right", ORANGE, "circuit,"),
    ):
        rank = ranks[TOKENS[-1], partition]
        plot.text(end, plot.y(rank) - 2, f"{words} {rank:,}", colour)
        plot.text(end, plot.y(rank) + 12, "both" if colour == BLUE else partition, colour)
    return plot.parts


def draw(by_width: dict, attention: dict, circuit: dict) -> str:
    legend = Plot(0, 0, (0, 1), 10)
    legend.parts += [
        f"<circle cx='66' cy='425' r='3.5' fill='{INK}'/>",
        f"<circle cx='170' cy='425' r='6.5' fill='none' stroke='{INK}' stroke-width='1.5'/>",
    ]
    legend.text(76, 429, "left-right")
    legend.text(183, 429, "interleaved")
    legend.text(290, 429, "Measured exactly over GF(p); every rank shown equals its proven cap.", GREY)
    parts = [*left_panel(by_width), *right_panel(attention, circuit), *legend.parts]
    return "\n".join(
        [
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 940 448' width='940' height='448' role='img'>",
            "<title>Separation rank of self-attention and of a convolutional circuit</title>",
            "<rect x='.5' y='.5' width='939' height='447' rx='8' fill='#ffffff' stroke='#d1d5db'/>",
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(*measure()), encoding="utf-8")
