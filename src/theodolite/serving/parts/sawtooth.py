"""The sawtooth against depth: how many linear pieces a network can make."""

from __future__ import annotations

from fractions import Fraction

from theodolite.claims.expressivity.sawtooth_pieces import sawtooth_witness
from theodolite.report.figure import Figure, Line, Panel, Series
from theodolite.serving.figures import drawn
from theodolite.serving.parts.part import Part
from theodolite.serving.requests import Whole
from theodolite.serving.shown import Shown
from theodolite.theory.sawtooth import deep_units, least_width, most_pieces, sawtooth_pieces, shallow_units
from theodolite.witness.pieces import BrokenLine, pieces, sawtooth

_DEEPEST = 10


def answer(folds: int, depth: int, width: int) -> Shown:
    needed, most = sawtooth_pieces(folds), most_pieces([width] * depth)
    reached = min(depth, folds) if width > 1 else 0  # folds of the explicit weights: two ReLUs in one layer each
    line = pieces(sawtooth_witness("deep", reached).module) if reached else None
    short = most < needed
    says = (
        f"No network of {_layers(depth)} of width {width} has the {needed:,} pieces: at most {most:,}."
        if short
        else f"{_layers(depth).capitalize()} of width {width} may have up to {most:,} pieces; {needed:,} are needed."
    )
    gap = None if line is None else float(line.gap(sawtooth(folds)))
    here = "none: two ReLUs in a layer make a fold"
    if line is not None:
        here = f"{reached} of {folds} folds in {_layers(reached)}: {line.pieces:,} pieces, off by {gap:g} at most"
    return Shown(
        says=[says],
        facts=[
            ("least width at this depth", f"{least_width(folds, depth):,}, or there are too few pieces"),
            ("one hidden layer needs", f"{shallow_units(folds):,} ReLUs"),
            ("explicit weights need", f"{deep_units(folds)} ReLUs in {_layers(folds)}, two in each"),
            ("explicit weights here", here),
        ],
        drawings=[*drawn(_functions(folds, reached, line)), *drawn(_counts(folds, width))],
        data={"needed": needed, "most": most, "pieces": line and line.pieces, "gap": gap},
    )


def _functions(folds: int, reached: int, line: BrokenLine | None) -> Figure:
    series = [_series(f"{folds} folds, the task", sawtooth(folds))]
    if line is not None and reached < folds:
        series.append(_series(f"{reached} folds, explicit weights", line))
    alt = f"The sawtooth of {folds} folds, and the function of a network with explicit weights"
    return Figure("", alt, "x", "y", [Panel("The function", series)])


def _series(name: str, line: BrokenLine) -> Series:
    return Series(name, _floats(line.points), _floats(line.values))


def _floats(numbers: tuple[Fraction, ...]) -> list[float]:
    return [float(number) for number in numbers]


def _counts(folds: int, width: int) -> Figure:
    depths = list(range(1, _DEEPEST + 1))
    series = [
        Series(f"at most, width {width}", depths, [most_pieces([width] * depth) for depth in depths], dashed=True),
        Series("explicit weights, width 2", depths, [sawtooth_pieces(depth) for depth in depths]),
    ]
    lines = [Line(sawtooth_pieces(folds), f"{folds} folds need")]
    alt = "Most linear pieces of a network over its depth, beside those that explicit weights make"
    return Figure(
        "", alt, "hidden layers", "linear pieces", [Panel("Pieces over depth", series, lines=lines)], log_y=True
    )


def _layers(count: int) -> str:
    return "one hidden layer" if count == 1 else f"{count} hidden layers"


PART = Part(
    "sawtooth",
    "Sawtooth and depth",
    "The tent map folded several times has twice the pieces with every fold: a layer more, or twice the width.",
    (
        Whole("folds", "folds of the sawtooth", 4, 1, 7),
        Whole("depth", "hidden layers", 2, 1, _DEEPEST),
        Whole("width", "width", 3, 1, 32),
    ),
    {"": answer},
    "theodolite express sawtooth --net mlp --arg folds=4",
)
