"""Step functions whose ε-ranks part: each number against the matrix itself."""

import math

import pytest
import torch

from theodolite.claims.degree.loss_distance import identity_rank_floor, identity_rank_reached
from theodolite.errors import BadInput
from theodolite.instruments.rank.function_distance import nearest, rank_floor, size
from theodolite.measures import measure


def spiked(n):
    return torch.ones(n, n, dtype=torch.float64) + math.sqrt(n) * torch.eye(n, dtype=torch.float64)


@pytest.mark.parametrize("n", [16, 64])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.4])
def test_the_formulas_are_those_of_the_matrix(n, epsilon):
    row, matrix = measure("loss-ranks", {"blocks": n, "epsilon": epsilon}, 0, "cpu"), spiked(n)
    assert row["norm_ratio"] == pytest.approx(size(matrix, "d2") / size(matrix, "d1"))
    tail = rank_floor(matrix, "d2") / size(matrix, "d2")
    assert row["relative"]["d2"] == int((tail > epsilon).sum())
    low, high = row["relative"]["d1"]
    below = rank_floor(matrix, "d1") / size(matrix, "d1")
    assert low == int((below > epsilon * (1 + 1e-9)).sum())  # the proven side
    kept = torch.ones(n, n, dtype=torch.float64)
    kept.diagonal()[: high - 1] += math.sqrt(n)
    assert torch.linalg.matrix_rank(kept) == high
    assert size(matrix - kept, "d1") <= epsilon * size(matrix, "d1") * (1 + 1e-9)  # the side that is found
    spikes = math.sqrt(n) * torch.eye(n, dtype=torch.float64)
    assert row["absolute"]["d2"] == int((rank_floor(spikes, "d2") > epsilon * (1 + 1e-9)).sum())
    assert row["absolute"]["d1"] == int((rank_floor(spikes, "d1") > epsilon * (1 + 1e-9)).sum())
    for distance in ("relative", "absolute"):
        assert row[distance]["sup"][0] <= row[distance]["sup"][1]
    # On a probability space d₁ ≤ d₂ ≤ d∞, so in absolute terms the ranks can only be ordered this way.
    assert row["absolute"]["d1"] <= row["absolute"]["d2"] <= row["absolute"]["sup"][1]


def test_a_gram_matrix_of_that_rank_is_within_delta_of_the_identity():
    n, delta = 128, 0.4
    rank = identity_rank_reached(n, delta, torch.Generator().manual_seed(1))
    assert identity_rank_floor(n, delta) <= rank < n
    signs = 1 - 2 * torch.randint(2, (n, n), generator=torch.Generator().manual_seed(1), dtype=torch.float32)
    gram = (1 - delta) * (signs[:, :rank] @ signs[:, :rank].T).double() / rank
    assert float((gram - torch.eye(n)).abs().max()) <= delta + 1e-12
    assert torch.linalg.matrix_rank(gram) <= rank


def test_the_floor_of_the_identity_grows_with_its_size_and_is_never_above_what_is_found():
    floors = [identity_rank_floor(n, 0.2) for n in (4, 64, 10**4, 10**12, 10**40)]
    assert floors == sorted(floors)
    assert floors[-1] > floors[2]
    for n in (6, 10):
        eye = torch.eye(n, dtype=torch.float64)
        for r in range(1, n):
            error = size(eye - nearest(eye + 0.0, r, "sup"), "sup")
            assert error >= 0.5 or r >= identity_rank_floor(n, error)


def test_two_losses_train_the_same_product_to_different_functions():
    found = measure("loss-minimiser", {"energy": 4.0, "members": 2}, 0, "cpu")
    absolute, square = found["absolute"], found["square"]
    assert absolute["likeness_to_smooth"][1] > 0.99
    assert square["likeness_to_spike"][1] > 0.9
    assert absolute["d1"][2] < 0.3 * square["d1"][1]
    assert square["d2"][2] < 0.6 * absolute["d2"][1]


def test_bad_settings_are_named():
    with pytest.raises(BadInput, match=r"1 blocks, ε = 0\.2"):
        measure("loss-ranks", {"blocks": 1, "epsilon": 0.2}, 0, "cpu")
