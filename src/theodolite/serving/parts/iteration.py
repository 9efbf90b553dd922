"""Step a fixed-point iteration, and see where all starts end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch

from theodolite.instruments.fixed_points.fixed_points import FixedPoints, basin, fixed_points
from theodolite.instruments.fixed_points.maps import MAPS, Map, named_map
from theodolite.report.figure import Figure, Panel, Series
from theodolite.report.svg.basin import draw_basin
from theodolite.serving.figures import drawn
from theodolite.serving.parts.part import Part
from theodolite.serving.requests import Choice, Number, Whole
from theodolite.serving.shown import Drawing, Shown

_NAMES = ("logistic", "tent", "henon", "rotation", "newton", "tanh")
_FAR = 1e6  # a state farther out is not drawn
_STARTS, _STEPS = 12, 200
_GRID, _GRID_STEPS = 61, 200
_CURVE = 60  # points along which a map is drawn


def orbit(map: str, parameter: float, first: float, second: float, step: int) -> Shown:
    """The states up to a step: over the map's own curve where they are numbers, in the plane where they are pairs."""
    f, size, within = _of(map, parameter)
    states = _states(f, [first, second][:size], step)
    gone = len(states) <= step
    where = ", ".join(f"{number:.6g}" for number in states[-1])
    moved = math.dist(states[-1], states[-2]) if len(states) > 1 else None
    says = f"After {len(states) - 1} steps z = {where if size == 1 else f'({where})'}."
    return Shown(
        says=[says + (" The next one is out of bounds." if gone else "")],
        facts=[
            ("map", f"z ↦ {MAPS[map].summary}{_argument(map, parameter)}"),
            ("last move", "none yet" if moved is None else f"{moved:.3g}"),
        ],
        drawings=drawn(_cobweb(f, states, within) if size == 1 else _plane(states)),
        data={"states": states},
    )


def ends(map: str, parameter: float) -> Shown:
    """What becomes of starts drawn everywhere, and the basins over the plane of starts."""
    options = {**_arguments(map, parameter), "size": 2 if MAPS[map].size is None else None}
    found = fixed_points(map, starts=_STARTS, steps=_STEPS, **options)
    plane = basin(map, grid=_GRID, steps=_GRID_STEPS, **options)
    title = f"Where starts of {map} end"
    labels = plane.label[:1] if MAPS[map].size == 1 else plane.label
    pictures = [draw_basin(labels, plane.names, plane.within, title, narrow=narrow) for narrow in (False, True)]
    return Shown(
        says=[_said(found)],
        facts=[
            ("Lyapunov exponent", "–" if found.lyapunov is None else f"{found.lyapunov:.4f} a step"),
            ("spectral radius", "–" if found.spectral_radius is None else f"{found.spectral_radius:.4g}"),
        ],
        drawings=[Drawing(pictures[0], title, alone=True, narrow=pictures[1])],
        data=found.to_json(),
    )


def _of(map: str, parameter: float) -> tuple[Map, int, tuple[float, float]]:
    return named_map(map, 2 if MAPS[map].size is None else None, **_arguments(map, parameter))


def _arguments(map: str, parameter: float) -> dict[str, float]:
    """The slider is the map's first argument; the others stay as they are."""
    return dict.fromkeys(list(MAPS[map].arguments)[:1], parameter)


def _argument(map: str, parameter: float) -> str:
    return "".join(f", {name} = {value:g}" for name, value in _arguments(map, parameter).items())


def _states(f: Map, start: list[float], steps: int) -> list[list[float]]:
    z = torch.tensor([start], dtype=torch.float64)
    states = [start]
    for _ in range(steps):
        z = f(z)
        if not bool((z.abs() < _FAR).all()):  # also what is not a number
            break
        states.append(z[0].tolist())
    return states


def _cobweb(f: Map, states: Sequence[Sequence[float]], within: tuple[float, float]) -> Figure:
    """Up to the curve, across to the diagonal, and again."""
    numbers = [state[0] for state in states]
    low, high = min(within[0], *numbers), max(within[1], *numbers)
    line = torch.linspace(low, high, _CURVE, dtype=torch.float64)
    curve = f(line.unsqueeze(-1)).squeeze(-1).tolist()
    x, y = [numbers[0]], [0.0]
    for before, after in pairwise(numbers):
        x += [before, after]
        y += [after, after]
    series = [
        Series("the map", line.tolist(), curve),
        Series("no change", [low, high], [low, high], dashed=True),
        Series("the iteration", x, y),
    ]
    return Figure(
        "",
        "The map's curve, the diagonal, and the steps of the iteration between them",
        "z",
        "next z",
        [Panel("", series)],
    )


def _plane(states: Sequence[Sequence[float]]) -> Figure:
    first, second = ([state[place] for state in states] for place in (0, 1))
    series = [Series("the iteration", first, second), Series("where it is", first[-1:], second[-1:])]
    return Figure("", "The states of the iteration in the plane", "first number", "second number", [Panel("", series)])


def _said(found: FixedPoints) -> str:
    most = f"repeats with period {found.period}" if found.outcome == "period" else found.outcome
    words = {"chaos": "is chaotic", "undecided": "is undecided", "quasi-periodic": "is quasi-periodic"}
    shares = ", ".join(f"{what} {share:.0%}" for what, share in found.shares.items())
    drawn = f"{found.starts} starts drawn at random"
    if len(found.shares) == 1:
        return f"From all of {drawn} it {words.get(most, most)} ({found.steps} steps)."
    return f"From most of {drawn} it {words.get(most, most)} ({found.steps} steps: {shares})."


PART = Part(
    "iteration",
    "Fixed points",
    "Apply a map again and again: step by step from one start, and from starts everywhere.",
    (
        Choice("map", "map", _NAMES),
        Number("parameter", "its first argument", 3.2, 0.0, 4.0),
        Number("first", "start, first number", 0.2, -2.0, 2.0),
        Number("second", "start, second number, of maps of pairs", 0.1, -2.0, 2.0),
        Whole("step", "step", 8, 0, 100),
    ),
    {"": orbit, "ends": ends},
    "theodolite fixed-points logistic --arg r=3.2 --basin basin.svg",
)
