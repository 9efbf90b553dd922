"""The linear pieces of a ReLU network of one real input, exactly: floats are rational numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from torch import nn

from theodolite.errors import BadInput

MOST_PIECES = 20_000

Row = list[Fraction]
Affine = tuple[list[Row], Row]  # weights (out × in), biases (out)


@dataclass(frozen=True)
class BrokenLine:
    """A continuous function that is linear between neighbouring `points`; it bends at every inner one."""

    points: tuple[Fraction, ...]
    values: tuple[Fraction, ...]

    @property
    def pieces(self) -> int:
        return len(self.points) - 1

    def __call__(self, x: Fraction) -> Fraction:
        if not self.points[0] <= x <= self.points[-1]:
            raise BadInput(f"the broken line ends at {self.points[0]} and {self.points[-1]}, before {x}")
        right = min(bisect_right(self.points, x), self.pieces)
        (a, b), (ya, yb) = self.points[right - 1 : right + 1], self.values[right - 1 : right + 1]
        return ya + (yb - ya) * (x - a) / (b - a)

    def gap(self, other: BrokenLine) -> Fraction:
        """The largest difference of two broken lines on one interval: it is at a bend of one of them."""
        return max(abs(self(x) - other(x)) for x in {*self.points, *other.points})


def broken_line_of(layers: Sequence[Affine], low: Fraction = Fraction(0), high: Fraction = Fraction(1)) -> BrokenLine:
    """The function of affine maps with ReLUs between them, from one input to one output.

    From layer to layer a list of points is kept between which all units are linear, with their values there; a ReLU
    adds the points at which its argument changes sign.
    """
    if any(len(biases) != 1 for _, biases in layers[-1:]) or any(len(row) != 1 for row in layers[0][0]):
        raise BadInput("pieces are counted of a network from one input to one output: pass a module of such shapes")
    points, values = [low, high], [[low], [high]]
    for number, (weights, biases) in enumerate(layers):
        values = [[_dot(row, point) + bias for row, bias in zip(weights, biases, strict=True)] for point in values]
        if number < len(layers) - 1:
            points, values = _rectified(points, values)
    return _bends(points, [y for (y,) in values])


def pieces(module: nn.Module, low: float = 0.0, high: float = 1.0) -> BrokenLine:
    """The broken line that a perceptron of one input computes, its weights taken as the exact numbers they are."""
    return broken_line_of(linear_maps(module), Fraction(low), Fraction(high))


def linear_maps(module: nn.Module) -> list[Affine]:
    """The layers of a chain of `nn.Linear` and `nn.ReLU` in exact numbers."""
    parts = [part for part in module.modules() if not list(part.children())]
    linear = parts[::2]
    kinds = [nn.Linear, nn.ReLU] * len(linear)
    if len(parts) % 2 == 0 or not all(isinstance(part, kind) for part, kind in zip(parts, kinds, strict=False)):
        raise BadInput(
            f"pieces are counted of a chain of Linear and ReLU layers, not of {type(module).__name__}: "
            "pass such a module, or its layers to broken_line_of"
        )
    return [exact_affine(part) for part in linear if isinstance(part, nn.Linear)]


def exact_affine(layer: nn.Linear) -> Affine:
    weights = [[Fraction(w) for w in row] for row in layer.weight.detach().double().tolist()]
    biases = [Fraction(b) for b in layer.bias.detach().double().tolist()]
    return weights, biases


def sawtooth(folds: int) -> BrokenLine:
    """The tent map applied `folds` times, from its definition."""
    points = [Fraction(i, 2**folds) for i in range(2**folds + 1)]
    values = points
    for _ in range(folds):
        values = [2 * y if 2 * y < 1 else 2 - 2 * y for y in values]
    return BrokenLine(tuple(points), tuple(values))


def _dot(row: Row, point: Row) -> Fraction:
    return sum((w * v for w, v in zip(row, point, strict=True) if w and v), Fraction(0))


def _rectified(points: list[Fraction], values: list[Row]) -> tuple[list[Fraction], list[Row]]:
    kept, held = [points[0]], [values[0]]
    for (a, b), (before, after) in zip(pairwise(points), pairwise(values), strict=True):
        # The share of the way from a to b at which a unit's argument is 0.
        shares = sorted({u / (u - v) for u, v in zip(before, after, strict=True) if u * v < 0})
        for share in shares:
            kept.append(a + (b - a) * share)
            held.append([u + (v - u) * share for u, v in zip(before, after, strict=True)])
        kept.append(b)
        held.append(after)
    if len(kept) > MOST_PIECES:
        raise BadInput(f"the network has more than {MOST_PIECES} pieces: count those of a smaller one")
    return kept, [[max(v, Fraction(0)) for v in row] for row in held]


def _bends(points: list[Fraction], values: list[Fraction]) -> BrokenLine:
    """Without the points at which the slope stays the same."""
    kept = [0]
    slope: Fraction | None = None
    for i in range(1, len(points)):
        rise = (values[i] - values[i - 1]) / (points[i] - points[i - 1])
        if slope is not None and rise != slope:
            kept.append(i - 1)
        slope = rise
    kept.append(len(points) - 1)
    return BrokenLine(tuple(points[i] for i in kept), tuple(values[i] for i in kept))
