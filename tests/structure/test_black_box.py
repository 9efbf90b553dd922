"""A callable is checked before it is believed, and its slopes come with honest errors."""

import time

import numpy as np
import pytest
import torch

from theodolite.errors import BadInput
from theodolite.structure.data.black_box import CallableSource
from theodolite.structure.data.noise import estimate_noise

BOX = [(-1.0, 2.0), (0.5, 3.0)]


def smooth(points):
    return np.sin(points[:, 0]) * np.log(points[:, 1])


def true_slopes(points):
    return np.stack([np.cos(points[:, 0]) * np.log(points[:, 1]), np.sin(points[:, 0]) / points[:, 1]], axis=1)


@pytest.mark.parametrize(
    ("rounding", "digits"),
    [(lambda v: v, 1e-9), (lambda v: v.astype(np.float32), 2e-3), (lambda v: v + 1e-6 * np.sin(1e9 * v), 1e-2)],
    ids=["float64", "float32", "jitter"],
)
def test_slopes_are_right_within_a_few_of_their_errors(rounding, digits):
    source = CallableSource(lambda x: rounding(smooth(x)), BOX)
    points = source.points(50, np.random.default_rng(1))
    found = source.gradients(points)
    wrong = np.abs(found.value - true_slopes(points))
    assert np.all(wrong <= 6 * found.error)
    assert np.max(wrong) < digits
    assert np.max(found.error) < 3 * digits  # errors that were huge would hold as well


def test_noise_is_estimated_from_differences():
    generator = np.random.default_rng(0)
    starts, widths = generator.uniform(-1, 1, (32, 3)), np.full(3, 2.0)
    scatter = np.random.default_rng(5)
    noisy = lambda x: np.cos(x @ [1.0, 2.0, -1.0]) + 1e-5 * scatter.standard_normal(len(x))
    found = estimate_noise(noisy, starts, widths, generator)
    assert 0.4e-5 < found < 2.5e-5
    assert estimate_noise(lambda x: np.cos(x @ [1.0, 2.0, -1.0]), starts, widths, generator) < 1e-14


def test_all_points_that_are_asked_for_lie_inside_the_ranges():
    asked = []

    def watched(points):
        asked.append(points.copy())
        return np.sqrt(points[:, 0]) + points[:, 1].astype(np.float32)

    source = CallableSource(watched, [(0.0, 1.0), (5.0, 6.0)])
    source.gradients(source.points(40, np.random.default_rng(0)))
    everything = np.concatenate(asked)
    assert np.all(everything > [0.0, 5.0])
    assert np.all(everything < [1.0, 6.0])
    assert source.evaluations == len(everything)


@pytest.mark.parametrize(
    "returned",
    [lambda v: v.tolist(), lambda v: torch.tensor(v), lambda v: v[:, None]],
    ids=["a list", "a torch tensor", "a column"],
)
def test_lists_tensors_and_columns_are_taken(returned):
    source = CallableSource(lambda x: returned(smooth(x)), BOX)
    points = source.points(5, np.random.default_rng(0))
    np.testing.assert_array_equal(source.values(points), smooth(points))


def row_by_row(point):
    return float(point[0]) + float(point[1])


_dice = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (row_by_row, "must map"),
        (lambda x: x[:, 0] - x[:, 0].mean(), "not vectorised"),
        (lambda x: x[:, 0] + np.arange(len(x)), "not vectorised"),
        (lambda x: x[:, 0] + 1e-3 * _dice.standard_normal(len(x)), "not deterministic"),
        (lambda x: x[:2, 0], "returned the shape (2,)"),
        (lambda x: 1.0, "returned the shape ()"),
        (lambda x: np.log(x[:, 0]), "not finite at x1=-"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda x: ["a"] * len(x), "real numbers"),
        (3.0, "must be a function"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_callable_that_cannot_be_trusted_is_refused(function, says):
    with pytest.raises(BadInput, match="(?s)" + says.replace("(", r"\(").replace(")", r"\)")) as raised:
        CallableSource(function, BOX)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("ranges", "variables", "says"),
    [
        ([(0, 1), (2, 2)], None, "'x2' is 2 to 2"),
        ([(0, np.inf)], None, "'x1'"),
        ([1, 2], None, "shape"),
        ("wide", None, "low and a high"),
        ([(0, 1)], ["a", "b"], "2 variables are named but 1"),
        ([(0, 1), (0, 1)], ["a", "a"], "'a' is named twice"),
        ({"a": (0, 1)}, ["b"], "in one of them only"),
    ],
)
def test_bad_ranges_are_refused(ranges, variables, says):
    with pytest.raises(BadInput, match=says):
        CallableSource(smooth, ranges, variables)


def test_ranges_by_name_keep_the_order_of_the_variables():
    source = CallableSource(smooth, {"v": BOX[1], "u": BOX[0]}, ["u", "v"])
    assert source.variables == ("u", "v")
    points = source.points(100, np.random.default_rng(0))
    assert points[:, 0].min() < 0
    assert points[:, 1].max() > 2


def test_ranges_that_rounding_swallows_are_refused():
    for span, told in [((-1e308, 1e308), "too wide"), ((1.0, 1.0 + 1e-12), "too narrow")]:
        with pytest.raises(BadInput, match=told):
            CallableSource(smooth, [BOX[0], span])


def test_a_function_that_ends_the_program_or_overflows_is_refused():
    def leaves(points):
        raise SystemExit(3)

    for function, told in [(leaves, "SystemExit"), (lambda x: 1e300 * smooth(x), "divide it"), (dict, "is a class")]:
        with pytest.raises(BadInput, match=told):
            CallableSource(function, BOX)


def test_a_box_too_slow_to_be_searched_is_refused_with_the_time_it_would_take() -> None:
    def slow(x: np.ndarray) -> np.ndarray:
        time.sleep(0.004 * len(x))
        return x.sum(1)

    with pytest.raises(BadInput, match=r"s a point and the search asks for about 8,000, together \d+ s where 5 s"):
        CallableSource(slow, [(0, 1)] * 2, seconds=5)


def test_a_box_that_is_not_finite_somewhere_is_refused_with_the_point() -> None:
    def holes(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 0] > 0.5, np.nan, x[:, 0] + x[:, 1])

    with pytest.raises(BadInput, match="not finite at x1=0"):
        CallableSource(holes, [(0, 1)] * 2)


def test_a_box_of_seconds_a_point_is_refused_before_many_are_asked_for() -> None:
    asked = []

    def slow(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        time.sleep(0.1 * len(x))
        return x[:, 0]

    with pytest.raises(BadInput, match="s a point"):
        CallableSource(slow, [(0, 1)] * 2, seconds=5)
    assert sum(asked) <= 4
