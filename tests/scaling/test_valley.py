"""Best depths, flatness and the line through them, from losses whose truth is known."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from theodolite.lab.cell import Cell, Row
from theodolite.scaling.shapes import SizedShape
from theodolite.scaling.shown import said
from theodolite.scaling.valley import Point, points, resampled_best, transition, valley

DEPTHS = (1, 2, 4, 8, 16)


def point(size: int, depth: int, bits: list[float], width: int = 32) -> Point:
    curve = tuple((step, statistics.fmean(bits) + 1 / step) for step in (10, 20, 30))
    return Point(SizedShape(size, depth, width, {}, size), 1e-3, False, tuple(bits), curve, 0)


def drawn(truth: dict[int, float], spread: float, seeds: int = 6, size: int = 1000) -> list[Point]:
    generator = random.Random(size)
    return [point(size, d, [generator.gauss(mean, spread) for _ in range(seeds)]) for d, mean in truth.items()]


def test_a_clear_valley():
    truth = dict(zip(DEPTHS, (2.4, 2.2, 2.0, 2.015, 2.3), strict=True))
    found = valley(drawn(truth, 0.002))
    assert found.best == 4
    assert found.interval == (4, 4)
    assert found.flat == (4, 8)
    assert found.worse == (1, 2, 8, 16)
    assert found.enough == 4
    assert found.spread == pytest.approx(0.2, abs=0.01)


def test_what_noise_hides_is_not_claimed():
    found = valley(drawn(dict.fromkeys(DEPTHS, 2.0), 0.05))
    assert found.worse == ()
    assert found.enough == 1
    assert found.interval[1] > found.interval[0]


def test_false_alarms_stay_below_the_level():
    """Equal shapes: a depth is called worse in at most 5 % of the sizes; 4 standard errors of 300 draws."""
    wrong = sum(bool(valley(drawn(dict.fromkeys(DEPTHS, 2.0), 0.05, 5, size)).worse) for size in range(300))
    assert wrong <= 300 * 0.05 + 4 * math.sqrt(300 * 0.05 * 0.95)


def test_seeds_far_apart_are_told():
    found = valley([point(1000, 1, [2.0, 2.3]), point(1000, 2, [2.0, 2.05])])
    assert found.unsteady == (1,)
    assert "Seeds of 1 are more than 5 % apart" in said(found)


def test_one_seed_decides_nothing():
    found = valley([point(1000, 1, [2.5]), point(1000, 2, [2.0])])
    assert (found.best, found.worse, found.enough) == (2, (), 1)
    assert said(found) == (
        "Depth 2 has the least loss. One seed cannot tell depths from chance: train two or more. "
        "The worst shape has 25.0 % more loss than the best."
    )


def test_resamples_take_each_shape_s_own_seeds():
    sure, doubtful = point(1, 1, [2.0, 2.0]), point(1, 2, [1.0, 3.5])
    counts = [p.shape.depth for p in resampled_best([sure, doubtful], 4000)]
    assert counts.count(2) / 4000 == pytest.approx(0.25, abs=0.04)  # both draws the low one


def test_the_order_settles_where_the_leader_stays():
    early = Point(SizedShape(9, 1, 8, {}, 9), 1e-3, False, (2.0, 2.1), ((10, 3.0), (20, 2.5), (30, 2.05)), 0)
    late = Point(SizedShape(9, 2, 8, {}, 9), 1e-3, False, (1.9, 1.9), ((10, 3.5), (20, 2.4), (30, 1.9)), 0)
    assert valley([early, late]).settled == pytest.approx(2 / 3)
    assert valley([late]).settled == pytest.approx(1 / 3)


def test_a_planted_line_is_found_again():
    valleys = []
    for size, best in ((1000, 2), (8000, 4), (64000, 8)):
        shapes = [
            point(
                size,
                d,
                [2 + 0.01 * abs(math.log2(d / best)) + 1e-4 * i for i in range(3)],
                round(math.exp(3 + 0.1 * d)),
            )
            for d in DEPTHS
        ]
        valleys.append(valley(shapes))
    line = transition(valleys)
    assert line is not None
    assert line.slope == pytest.approx(0.1, abs=0.01)
    assert line.intercept == pytest.approx(3, abs=0.05)
    assert line.slope_interval[0] <= line.slope <= line.slope_interval[1]
    assert transition(valleys[:2]) is None


def row(key_seed: int, rate: float, loss: float | None) -> Row:
    cell = Cell("train", {"seed": key_seed, "lr": rate, "which": key_seed})
    status = "diverged" if loss is None else "unsolved"
    curve = [] if loss is None else [[1, loss + 1, 0.1], [2, loss, 0.1]]
    return Row(cell, {"status": status, "loss": loss, "curve": curve})


def test_every_shape_is_taken_at_its_best_rate():
    rows = [row(0, 1e-3, 3.0), row(1, 1e-3, 3.2), row(0, 2e-3, 2.0), row(1, 2e-3, 2.4), row(0, 4e-3, 1.0)]
    rows.append(row(1, 4e-3, None))  # a rate at which one diverges is none
    shape = SizedShape(1000, 2, 16, {}, 1000)
    (found,) = points(rows, {r.cell.key: shape for r in rows}, lambda loss: 2 * loss)
    assert (found.rate, found.edge, found.diverged) == (2e-3, False, 1)
    assert found.bits == (4.0, 4.8)
    assert found.curve == ((1, pytest.approx(6.4)), (2, pytest.approx(4.4)))


def test_a_shape_that_no_rate_trains_has_no_point():
    rows = [row(0, 1e-3, None), row(1, 1e-3, 2.0)]
    assert points(rows, {r.cell.key: SizedShape(9, 1, 8, {}, 9) for r in rows}, float) == []
