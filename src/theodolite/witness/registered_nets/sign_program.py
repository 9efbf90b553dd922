"""Programs of sign units: what every architecture here is given to compute, before it has weights.

A unit is the sign of ⟨w, h⟩ − θ, with whole weights w and signs h; θ lies midway between two sums that can occur, so
that saturated tanh units compute it exactly and a pair of ReLUs does too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np


@dataclass(frozen=True, eq=False)
class SignLayer:
    """Unit j is +1 where `weights[j]`·h ≥ `above[j]` and −1 where it is ≤ `below[j]`; no sum lies between."""

    weights: np.ndarray  # (units, inputs) whole numbers
    below: np.ndarray  # (units,)
    above: np.ndarray  # (units,)

    @property
    def units(self) -> int:
        return len(self.weights)

    @property
    def middle(self) -> np.ndarray:
        return (self.below + self.above) / 2

    @property
    def half(self) -> np.ndarray:
        """Half the distance between the two sums at the threshold: what the argument of a unit is divided by."""
        return (self.above - self.below) / 2

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        # In float64, where a product of matrices is fast and sums of whole numbers are exact.
        return np.where(signs @ self.weights.T.astype(np.float64) > self.middle, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class SignProgram:
    """Layers of sign units; the sign of `read`·h + `offset` is the answer.

    `predicted` and `at_most` are what theory counts in ReLUs, as in a witness.
    """

    name: str
    layers: tuple[SignLayer, ...]
    read: np.ndarray
    offset: int
    predicted: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)

    @property
    def bits(self) -> int:
        return self.layers[0].weights.shape[1]

    @property
    def units(self) -> int:
        return sum(layer.units for layer in self.layers)

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        signs = signs.astype(np.float64)
        for layer in self.layers:
            signs = layer(signs)
        return np.sign(signs @ self.read + self.offset)


def layer_of(weights: np.ndarray, thresholds: np.ndarray) -> SignLayer:
    """A layer from any thresholds: each is moved midway between the two sums of ±weights that it separates."""
    weights = np.atleast_2d(np.asarray(weights, dtype=np.int64))
    bounds = [_separated(row, theta) for row, theta in zip(weights, np.atleast_1d(thresholds), strict=True)]
    below, above = (np.array(side, dtype=np.int64) for side in zip(*bounds, strict=True))
    return SignLayer(weights, below, above)


def _separated(weights: np.ndarray, theta: float) -> tuple[int, int]:
    """The neighbouring sums around θ; a unit that never changes gets a sum that does not occur on its empty side."""
    sums = _sums(tuple(sorted(np.abs(weights[weights != 0]).tolist())))
    place = bisect_left(sums, theta)
    below = sums[place - 1] if place else sums[0] - 2
    above = sums[place] if place < len(sums) else sums[-1] + 2
    return below, above


@lru_cache(maxsize=64)
def _sums(sizes: tuple[int, ...]) -> list[int]:
    """Every value of ±sizes[0] ± sizes[1] ± …, in order."""
    sums = {0}
    for size in sizes:
        sums = {s + size for s in sums} | {s - size for s in sums}
    return sorted(sums)


@dataclass(frozen=True, eq=False)
class ReluLayer:
    """The same layer in ReLUs: signs = mix · relu(directions[group]·h − knots) + shift, exactly.

    The step of a unit is the ramp between `below` and `above`; units of one direction share the knots they have in
    common, and a ramp that ends at the largest possible sum needs no second knot.
    """

    directions: np.ndarray  # (groups, inputs)
    group: np.ndarray  # (relus,)
    knots: np.ndarray  # (relus,)
    mix: np.ndarray  # (units, relus)
    shift: np.ndarray  # (units,)

    @property
    def relus(self) -> int:
        return len(self.knots)

    @cached_property
    def weights(self) -> np.ndarray:
        return self.directions[self.group]


def in_relus(layer: SignLayer) -> ReluLayer:
    # A ramp that starts at the smallest possible sum is flat above: turned round, it needs one knot as well.
    _, direction, alike = np.unique(layer.weights, axis=0, return_inverse=True, return_counts=True)
    alone = alike[direction.ravel()] == 1
    lowest = layer.below == -np.abs(layer.weights).sum(axis=1)
    turn = np.where(alone & lowest, -1, 1)
    weights = layer.weights * turn[:, None]
    below, above = (np.where(turn > 0, a, -b) for a, b in ((layer.below, layer.above), (layer.above, layer.below)))
    ramps = _Ramps(weights)
    for unit in range(layer.units):
        slope = 2 / int(above[unit] - below[unit])
        ramps.add(unit, int(below[unit]), slope)
        ramps.add(unit, int(above[unit]), -slope)
    return ramps.layer(turn, -turn)


def answer_in_relus(program: SignProgram) -> ReluLayer:
    """The last layer and the read in one: a single row whose sign is the answer. Where all signs have to be +1, or one
    of them, a ramp need not be cut off at its end."""
    layer = program.layers[-1]
    sign = int(np.sign(program.read[0]))
    if (program.read == sign).all() and abs(program.offset) == layer.units - 1:
        every = sign * program.offset <= 0
        turn = -1 if every else 1  # −1: how far a sum falls short; 1: how far one is above
        ramps = _Ramps(turn * layer.weights)
        for unit in range(layer.units):
            knot = layer.above[unit] if every else layer.below[unit]
            ramps.add(unit, turn * int(knot), 2 / int(layer.above[unit] - layer.below[unit]))
        relus = ramps.layer(np.ones(layer.units), np.zeros(layer.units))
        row = sign * turn * relus.mix.sum(axis=0, keepdims=True)
        return replace(relus, mix=row, shift=np.array([-sign * turn], dtype=np.float64))
    relus = in_relus(layer)
    return replace(relus, mix=program.read[None] @ relus.mix, shift=program.read[None] @ relus.shift + program.offset)


class _Ramps:
    """Collects ReLUs, one for each direction and knot; a knot at the largest possible sum is never passed."""

    def __init__(self, weights: np.ndarray) -> None:
        self.directions, group = np.unique(weights, axis=0, return_inverse=True)
        self.group, self.largest = group.ravel(), np.abs(self.directions).sum(axis=1)
        self.index: dict[tuple[int, int], int] = {}
        self.entries: list[tuple[int, int, float]] = []

    def add(self, unit: int, knot: int, slope: float) -> None:
        group = int(self.group[unit])
        if knot < self.largest[group]:
            self.entries.append((unit, self.index.setdefault((group, knot), len(self.index)), slope))

    def layer(self, turn: np.ndarray, shift: np.ndarray) -> ReluLayer:
        mix = np.zeros((len(turn), len(self.index)))
        for unit, relu, slope in self.entries:
            mix[unit, relu] += turn[unit] * slope
        places = np.array(list(self.index), dtype=np.int64).reshape(-1, 2)
        return ReluLayer(self.directions, places[:, 0], places[:, 1], mix, shift.astype(np.float64))
