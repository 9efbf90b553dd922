"""Sums are those of fractions, in whatever order and parts, and survive being written down."""

from __future__ import annotations

import json
import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.lab.sums import Spread, Sum, joined, spread_of

NUMBERS = st.lists(st.floats(-1e100, 1e100) | st.integers(-(2**70), 2**70).map(float), min_size=1, max_size=12)


def summed(values: list[float]) -> Sum:
    result = Sum()
    for value in values:
        result.add(value)
    return result


def spread(values: list[float]) -> Spread:
    result = Spread()
    for value in values:
        result.add(value)
    return result


@given(NUMBERS, st.data())
def test_a_sum_is_that_of_fractions_whatever_its_parts(values, data):
    cut = data.draw(st.integers(0, len(values)))
    mixed = data.draw(st.permutations(values))
    found = joined([summed(mixed[:cut]), summed(mixed[cut:])])
    assert Fraction(found.whole, 2**found.places) == sum(map(Fraction, values))
    assert (found.count, found.least, found.most) == (len(values), min(values), max(values))
    assert found.total == math.fsum(values)
    assert found.mean == math.fsum(values) / len(values)


@given(NUMBERS, st.data())
def test_a_deviation_is_that_of_the_definition(values, data):
    cut = data.draw(st.integers(0, len(values)))
    found = spread_of([spread(values[:cut]), spread(values[cut:])])
    expected = statistics.stdev(map(Fraction, values)) if len(values) > 1 else 0.0
    assert found.deviation == pytest.approx(float(expected), rel=1e-15)


@given(NUMBERS)
def test_a_spread_survives_being_written(values):
    found = Spread.from_json(json.loads(json.dumps(spread(values).to_json())))
    assert found.to_json() == spread(values).to_json()
    assert (found.values.mean, found.deviation) == (spread(values).values.mean, spread(values).deviation)


@pytest.mark.parametrize(
    "forged",
    [
        [1, "f", 0, 1.0],
        [-1, "f", 0, 1.0, 1.0],
        [True, "f", 0, 1.0, 1.0],
        [1, 15, 0, 1.0, 1.0],
        [1, "one", 0, 1.0, 1.0],
        [1, "f", 10**9, 1.0, 1.0],
        [1, "f", 0, "1", 1.0],
    ],
)
def test_what_is_no_sum_is_refused(forged):
    with pytest.raises(ValueError, match=r"not a sum|invalid literal|not enough values"):
        Sum.from_json(forged)
