"""Predicted sizes of sawtooth networks, against enumeration of all small networks and exact counts of pieces."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from theodolite.errors import OutsideDomain
from theodolite.theory.sawtooth import (
    deep_parameters,
    deep_units,
    least_width,
    most_pieces,
    sawtooth_pieces,
    shallow_parameters,
    shallow_units,
)
from theodolite.witness.pieces import broken_line_of, sawtooth


@pytest.mark.parametrize("folds", [1, 2, 3])
def test_no_fewer_units_in_one_layer_give_the_sawtooth(folds):
    """With 2^k − 1 units every bend has its own, turned left or right: all 2^(2^k − 1) choices of turns, the rest of
    the function solved for exactly by least squares."""
    teeth = sawtooth_pieces(folds)
    bends = np.arange(1, teeth) / teeth
    grid = np.arange(2 * teeth + 1) / (2 * teeth)
    truth = 1 - np.abs((grid * teeth) % 2 - 1)
    for turns in itertools.product((1, -1), repeat=teeth - 1):
        features = np.maximum(np.array(turns) * (grid[:, None] - bends), 0)
        features = np.concatenate((features, np.ones((len(grid), 1))), axis=1)
        off = features @ np.linalg.lstsq(features, truth, rcond=None)[0] - truth
        assert np.abs(off).max() > 1e-3
    # One unit more, at the left end, is enough.
    features = np.concatenate((np.maximum(grid[:, None] - [0, *bends], 0), np.ones((len(grid), 1))), axis=1)
    assert np.abs(features @ np.linalg.lstsq(features, truth, rcond=None)[0] - truth).max() < 1e-9
    assert shallow_units(folds) == len(bends) + 1


@pytest.mark.parametrize(("widths", "most"), [((3,), 4), ((1, 1), 4), ((2, 2), 9), ((2, 3), 12)])
def test_no_drawn_network_has_more_pieces_than_the_bound_and_some_come_near(widths, most):
    assert most_pieces(widths) == most
    random = np.random.default_rng(0)
    best = 0
    for _ in range(400):
        sizes = (1, *widths, 1)
        layers = [
            (
                [[Fraction(int(w)) for w in row] for row in random.integers(-9, 10, size=(after, before))],
                [Fraction(int(b)) for b in random.integers(-9, 10, size=after)],
            )
            for before, after in itertools.pairwise(sizes)
        ]
        best = max(best, broken_line_of(layers, Fraction(-50), Fraction(50)).pieces)
        assert best <= most
    assert best >= most / 2


def test_a_net_narrower_than_the_least_width_has_too_few_pieces():
    for folds, depth in itertools.product(range(1, 10), range(1, 6)):
        width = least_width(folds, depth)
        assert most_pieces([width] * depth) >= sawtooth_pieces(folds)
        assert width == 1 or most_pieces([width - 1] * depth) < sawtooth_pieces(folds)


def test_counts_of_the_source_and_of_the_witnesses():
    assert [deep_units(k) for k in (1, 2, 5)] == [2, 4, 10]
    # Weights and biases of the layers 1 → 2 → … → 2 → 1, and 1 → 2^k → 1.
    for k in range(1, 9):
        assert deep_parameters(k) == 4 + 6 * (k - 1) + 3
        assert shallow_parameters(k) == 2 * 2**k + 2**k + 1
    assert sawtooth(6).pieces == sawtooth_pieces(6)


@pytest.mark.parametrize("wrong", [0, -1, 1.5])
def test_a_number_of_folds_below_one_is_refused(wrong):
    with pytest.raises(OutsideDomain):
        sawtooth_pieces(wrong)
