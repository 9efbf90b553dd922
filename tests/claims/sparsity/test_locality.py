"""The pair statistic against loops, chance against enumeration of all masks, and masks of which the answer is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from theodolite.claims.sparsity.locality import (
    against_chance,
    distances,
    neighbours,
    pair_mean,
    same_margins,
    siblings,
)
from theodolite.errors import BadInput


def random_mask(units: int, inputs: int, share: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((units, inputs)) < share


def test_the_mean_over_pairs_is_the_mean_over_pairs():
    mask, kernel = random_mask(9, 12, 0.4, 0), distances((3, 4))
    values = [kernel[i, j] for row in mask for i, j in itertools.combinations(np.flatnonzero(row), 2)]
    assert pair_mean(mask, kernel) == pytest.approx(np.mean(values))


def test_neighbours_and_distances_are_those_of_the_grid():
    near, far = neighbours((3, 4)), distances((3, 4))
    for i, j in itertools.product(range(12), repeat=2):
        rows, columns = abs(i // 4 - j // 4), abs(i % 4 - j % 4)
        assert near[i, j] == (max(rows, columns) == 1)
        assert far[i, j] == pytest.approx((rows**2 + columns**2) ** 0.5)
    assert neighbours((5,)).sum() == 8


def test_drawn_masks_keep_the_count_of_every_unit_and_of_every_input():
    mask = random_mask(21, 16, 0.3, 1)
    drawn = same_margins(mask, np.random.default_rng(0), 40)
    assert (drawn.sum(1) == mask.sum(0)).all()
    assert (drawn.sum(2) == mask.sum(1)).all()
    assert (drawn != mask).any((1, 2)).all()


def test_drawn_masks_are_uniform_over_all_masks_of_the_margins():
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1]], dtype=bool)
    rows = [np.array(r, dtype=bool) for r in itertools.product([0, 1], repeat=4)]
    every = {
        np.stack(m).tobytes()
        for m in itertools.product(rows, repeat=3)
        if (np.stack(m).sum(0) == mask.sum(0)).all() and (np.stack(m).sum(1) == mask.sum(1)).all()
    }
    drawn = [m.tobytes() for m in same_margins(mask, np.random.default_rng(0), 3000, sweeps=20)]
    assert set(drawn) == every
    counts = np.array([drawn.count(m) for m in every])
    expected = 3000 / len(every)
    assert len(every) >= 12
    assert ((counts - expected) ** 2 / expected).sum() < 2 * len(every) + 12  # χ² of len − 1 degrees, far beyond 99.9 %


def test_windows_are_local_and_random_masks_are_not():
    windows = np.zeros((36, 8, 8), dtype=bool)
    for number, (i, j) in enumerate(itertools.product(range(6), repeat=2)):
        windows[number, i : i + 3, j : j + 3] = True
    kernels = {"near": neighbours((8, 8)), "far": distances((8, 8))}
    generator = np.random.default_rng(0)
    local = against_chance(windows.reshape(36, 64), kernels, generator)
    assert (local["near"].ratio or 0) > 3
    assert (local["near"].z or 0) > 10
    assert 0 < (local["far"].ratio or 0) < 0.7
    scattered = [against_chance(random_mask(36, 64, 0.14, s), kernels, generator, 40)["near"] for s in range(10)]
    zs = [one.z for one in scattered if one.z is not None]
    assert len(zs) == 10
    assert abs(np.mean(zs)) < 1
    assert max(map(abs, zs)) < 4.5


def test_dead_borders_alone_do_not_look_local():
    """All masks read the middle of the image only: nearer than random places, but as near as margins say."""
    middle = np.zeros((8, 8), dtype=bool)
    middle[2:6, 2:6] = True
    mask = random_mask(60, 64, 0.4, 3) & middle.reshape(-1)
    found = against_chance(mask, {"near": neighbours((8, 8))}, np.random.default_rng(0))["near"]
    anywhere = pair_mean(np.ones((1, 64)), neighbours((8, 8)))
    assert (found.value or 0) > 2 * (anywhere or 1)
    assert abs(found.z or 99) < 3.5


def test_a_permutation_of_the_inputs_moves_with_the_kernel():
    mask, order = random_mask(20, 16, 0.3, 5), np.random.default_rng(1).permutation(16)
    kernel = neighbours((16,))
    assert pair_mean(mask[:, order], kernel[np.ix_(order, order)]) == pytest.approx(pair_mean(mask, kernel))


def test_units_that_read_one_constituent_each_are_pure():
    groups = [[0, 1], [2, 3], [4, 5]]
    mask = np.zeros((12, 6), dtype=bool)
    for unit in range(12):
        mask[unit, groups[unit % 3]] = True
    found = against_chance(mask, {"pure": siblings(groups, 6)}, np.random.default_rng(0))["pure"]
    assert found.value == 1
    assert found.chance == pytest.approx(1 / 5, abs=0.05)


def test_masks_without_pairs_or_without_freedom_say_so():
    kernel = {"near": neighbours((6,))}
    generator = np.random.default_rng(0)
    assert against_chance(np.eye(6), kernel, generator)["near"].ratio is None
    full = against_chance(np.ones((4, 6)), kernel, generator)["near"]
    assert full.ratio == pytest.approx(1)
    assert full.z is None


def test_a_kernel_of_another_size_is_refused():
    with pytest.raises(BadInput, match="near"):
        against_chance(np.ones((4, 5)), {"near": neighbours((6,))}, np.random.default_rng(0))
