"""Shapes of equal cost: their parameters are counted from built networks."""

from __future__ import annotations

import math

import pytest

from theodolite.errors import BadInput
from theodolite.instruments.degree.product_shapes import shape_of
from theodolite.nets.size import count_parameters


@pytest.mark.parametrize("budget", [12, 24])
def test_degrees_that_divide_the_budget_have_equal_parameters_to_the_last(budget: int) -> None:
    shapes = [shape_of(degree, budget, 8, 5, 2) for degree in (2, 3, 4, "3,2", 6)]
    counts = {count_parameters(shape.build(5, 2)) for shape in shapes}
    assert len(counts) == 1
    assert counts == {shape.parameters for shape in shapes}
    assert [shape.depth for shape in shapes[:3]] == [budget // 2, budget // 3, budget // 4]
    assert all(sum(shape.degrees) == budget and not shape.note for shape in shapes)


@pytest.mark.parametrize("degree", [5, 2.5, "e", 7, 2.9])
def test_other_degrees_come_within_two_per_cent_or_say_how_far_they_are(degree: int | float | str) -> None:
    goal = count_parameters(shape_of(3, 24, 32, 8, 1).build(8, 1))
    shape = shape_of(degree, 24, 32, 8, 1)
    off = count_parameters(shape.build(8, 1)) / goal - 1
    assert (abs(off) <= 0.02) == (not shape.note)
    assert abs(off) < 0.05
    assert abs(shape.width - 32) <= 7
    if shape.note:
        assert f"{abs(off):.1%}" in shape.note
        assert ("more" if off > 0 else "fewer") in shape.note


def test_e_is_the_number_and_costs_its_share_of_matrices() -> None:
    shape = shape_of("e", 24, 32, 8, 1)
    assert shape.degree == "e"
    assert shape.depth == 9
    assert all(degree == pytest.approx(math.e) for degree in shape.degrees)
    whole = shape_of(3, 27, 32, 8, 1)
    assert shape.parameters < whole.parameters * 0.95


def test_mixed_degrees_are_spread_evenly_over_the_depth() -> None:
    degrees = shape_of("3,2", 48, 4, 4, 1).degrees
    assert sum(degrees) == 48
    assert sorted(set(degrees)) == [2, 3]
    halves = degrees[: len(degrees) // 2], degrees[len(degrees) // 2 :]
    assert abs(halves[0].count(3) - halves[1].count(3)) <= 1
    assert abs(degrees.count(3) - degrees.count(2)) <= 2
    assert shape_of([4, 2, 3, 3], 12, 4, 4, 1).degrees == (4, 2, 3, 3)


def test_learnt_exponents_are_counted_with_the_parameters() -> None:
    shape, plain = shape_of("learnt", 12, 16, 8, 1), shape_of(3, 12, 16, 8, 1)
    assert shape.power == "learnt"
    assert shape.depth == plain.depth
    assert shape.parameters - plain.parameters == 12 * 16
    assert "more parameters" in shape.note


@pytest.mark.parametrize(
    ("degree", "budget", "width", "message"),
    [
        (5, 4, 8, "smaller than one block of degree 5"),
        (1, 12, 8, "degree 1 cannot be trained"),
        ("x", 12, 8, "'x' is no degree"),
        ("3,2.5", 12, 8, "not whole"),
        ("5,7", 11, 8, "do not sum to the budget of 11"),
        (3, 12, 0, "the width must be"),
        (3, 1, 8, "the budget must be"),
        (math.nan, 12, 8, "cannot be trained"),
    ],
)
def test_what_cannot_be_built_is_refused(degree: object, budget: int, width: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        shape_of(degree, budget, width, 8, 1)  # pyright: ignore[reportArgumentType]
