"""Distances to rank r: known ones, brute force, and lower ends that no approximation undercuts."""

import itertools
import math

import pytest
import torch

from theodolite.errors import BadInput
from theodolite.instruments.rank.function_distance import DISTANCES, least_rank, mean_floor, nearest, rank_floor, size


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_sizes_are_the_mean_the_root_mean_square_and_the_maximum():
    matrix = torch.tensor([[3.0, -4.0], [0.0, 0.0]], dtype=torch.float64)
    assert [size(matrix, d) for d in DISTANCES] == [1.75, 2.5, 4.0]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("kind", ["noise", "smooth", "steps"])
def test_no_approximation_that_is_found_undercuts_the_floor(distance, kind):
    a, b = drawn(1, 16), drawn(2, 16)
    matrix = {
        "noise": drawn(3, 16, 16),
        "smooth": torch.exp(-(a[:, None] - b).square()),
        "steps": (a[:, None] < b).double(),
    }[kind]
    floor = rank_floor(matrix, distance)
    assert (floor.diff() <= 1e-15).all()
    for r in (0, 1, 4):
        for found in (nearest(matrix, r, distance), nearest(matrix, r, "d2")):
            assert torch.linalg.matrix_rank(found) <= r
            assert float(floor[r]) <= size(matrix - found, distance) * (1 + 1e-9)
    assert float(floor[1]) > 0.1 * size(matrix - nearest(matrix, 1, distance), distance)  # and it says something


@pytest.mark.parametrize(
    ("distance", "at"), [("d1", lambda e: 1 / e.abs().max()), ("sup", lambda e: 1 / e.abs().sum())]
)
def test_the_distance_of_a_two_by_two_matrix_to_rank_one_by_brute_force(distance, at):
    """Over a fine grid of directions x, the best E with (B − E)x = 0 row by row is explicit."""
    matrix = drawn(5, 2, 2)
    angle = torch.linspace(0, math.pi, 200_001, dtype=torch.float64)
    x = torch.stack([angle.cos(), angle.sin()])
    image = (matrix @ x).abs()
    if distance == "d1":  # |E_i·x| ≤ Σ_j|E_ij|·max|x|, attained
        best = float((image.sum(0) / x.abs().amax(0)).min()) / 4
    else:  # |E_i·x| ≤ max|E|·Σ|x|, attained
        best = float((image.amax(0) / x.abs().sum(0)).min())
    floor = float(rank_floor(matrix, distance)[1])
    assert floor <= best * (1 + 1e-6)
    assert floor >= float(at(torch.linalg.inv(matrix))) / (4 if distance == "d1" else 1) * (1 - 1e-9)
    if distance == "d1":
        assert floor == pytest.approx(best, rel=1e-4)  # the bound of one piece is the distance itself


def test_the_identity_is_as_far_as_the_ones_that_are_left():
    """Σ|E| ≥ n − r under d₁, attained by dropping ones; under the maximum norm ½ once a constant is allowed."""
    eye = torch.eye(12, dtype=torch.float64)
    assert torch.allclose(rank_floor(eye, "d1") * 144, torch.arange(12, -1, -1, dtype=torch.float64))
    assert float(rank_floor(eye, "sup")[1]) == pytest.approx(0.5)
    assert least_rank(eye, 3.001 / 144, "d1") == (9, 9)
    assert least_rank(eye, math.sqrt(3.001) / 12, "d2") == (9, 9)


def test_the_floor_of_pieces_stays_while_the_nuclear_norm_of_the_whole_fades():
    nuclear, pieces = [], []
    for n in (32, 128):
        matrix = drawn(n, n, n)
        whole = float(matrix.abs().mean())
        nuclear.append(float(torch.linalg.svdvals(matrix)[1:].sum()) / matrix.numel() / whole)
        pieces.append(float(mean_floor(matrix)[1]) / whole)
    assert nuclear[1] < 0.6 * nuclear[0]
    assert pieces[1] > 0.9 * pieces[0]


def test_under_d1_a_spike_is_left_out_and_under_d2_it_is_all_that_is_seen():
    smooth = (1 + 0.3 * drawn(8, 24).tanh())[:, None] * (1 + 0.3 * drawn(9, 24).tanh())
    matrix = smooth.clone()
    matrix[3, 7] += 100
    found = nearest(matrix, 1, "d1")
    assert size(matrix - found, "d1") == pytest.approx(100 / 24**2, rel=0.05)
    assert float(found[3, 7]) == pytest.approx(float(smooth[3, 7]), rel=0.05)
    assert float(nearest(matrix, 1, "d2")[3, 7]) > 90


def test_the_least_rank_lies_between_and_grows_with_precision():
    matrix = drawn(4, 10, 10)
    for distance in DISTANCES:
        ends = [least_rank(matrix, share * size(matrix, distance), distance) for share in (1.0, 0.5, 0.1, 1e-6)]
        assert ends[0] == (0, 0)
        assert ends[-1] == (10, 10)
        for (low, high), (next_low, next_high) in itertools.pairwise(ends):
            assert low <= high
            assert low <= next_low
            assert high <= next_high


def test_an_unknown_distance_is_named():
    with pytest.raises(BadInput, match="'d3' is unknown: use d1, d2, sup"):
        rank_floor(torch.eye(2), "d3")  # type: ignore[arg-type]
