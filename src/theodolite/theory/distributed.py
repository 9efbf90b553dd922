"""How many inputs can be told apart by features that are present in any combination, against one feature each.

A layer of n units with thresholds in d dimensions cuts the space by n hyperplanes; in general position these make
Σ_{i ≤ d} binom(n, i) regions (Schläfli), each with a pattern of its own: 2ⁿ for n ≤ d.
One-hot features have n patterns.
"""

from __future__ import annotations

import math

from theodolite.theory.domain import whole


def distributed_patterns(units: int, inputs: int) -> int:
    whole("units", units)
    whole("inputs", inputs)
    return sum(math.comb(units, i) for i in range(min(units, inputs) + 1))


def one_hot_patterns(units: int) -> int:
    return whole("units", units)


def composed_pieces(depth: int) -> int:
    """Linear pieces of a tent of two ReLU units composed with itself `depth` times: twice as many each time."""
    return 2 ** whole("depth", depth)


def one_layer_pieces(units: int) -> int:
    """One layer of ReLU units on a line bends once per unit."""
    return whole("units", units) + 1
