"""Restricted isometry constants against brute force; attention scores that have them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from theodolite.claims.sparsity.attention_isometry import identity_weights, key_weights, query_weights, scores
from theodolite.claims.sparsity.isometry import restricted_isometry
from theodolite.errors import BadInput
from theodolite.measures import measure


def brute_force(matrix: torch.Tensor, order: int) -> float:
    gram = (matrix.T @ matrix).numpy()
    values = [np.linalg.eigvalsh(gram[np.ix_(c, c)]) for c in itertools.combinations(range(len(gram)), order)]
    low, high = min(v[0] for v in values), max(v[-1] for v in values)
    return (high - low) / (high + low)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_low_orders_are_exact(order):
    found = restricted_isometry(drawn(8, 10), order, torch.Generator())
    assert found.exact
    assert found.low == found.high == pytest.approx(brute_force(drawn(8, 10), order))


@pytest.mark.parametrize("order", [4, 5, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_higher_orders_lie_in_their_interval(order, seed):
    near_orthogonal = torch.eye(12, dtype=torch.float64)[:, :11] + 0.03 * drawn(12, 11, seed=seed)
    found = restricted_isometry(near_orthogonal, order, torch.Generator().manual_seed(0))
    truth = brute_force(near_orthogonal, order)
    assert not found.exact
    assert found.low <= truth + 1e-12 <= found.high + 2e-12 < 1
    assert found.low > 0.97 * truth  # the search finds nearly the worst support


def test_scale_and_rotation_do_not_matter():
    matrix, (turn, _) = drawn(6, 9), np.linalg.qr(drawn(6, 6, seed=2).numpy())
    plain = restricted_isometry(matrix, 3, torch.Generator())
    assert restricted_isometry(7 * torch.from_numpy(turn) @ matrix, 3, torch.Generator()).low == pytest.approx(
        plain.low
    )


def test_an_order_without_supports_is_refused():
    with pytest.raises(BadInput, match="order 5"):
        restricted_isometry(drawn(4, 4), 5, torch.Generator())


def test_scores_of_few_independent_tokens_can_be_the_unit_matrix():
    x = drawn(6, 9)
    assert torch.allclose(scores(x, *identity_weights(x)), torch.eye(6, dtype=torch.float64), atol=1e-10)
    with pytest.raises(BadInput, match="dependent"):
        identity_weights(drawn(7, 5))


def test_descended_keys_keep_lengths_as_they_do_without_queries_and_better_than_drawn_ones():
    x, generator = drawn(10, 12), torch.Generator().manual_seed(3)
    key = key_weights(x, 5, generator, 120)
    full = scores(x, query_weights(x, 5), key)
    assert int(torch.linalg.matrix_rank(full)) == 5
    assert brute_force(full, 2) == pytest.approx(brute_force((x @ key).T, 2))
    assert brute_force(full, 2) < 0.75 * brute_force(scores(x, drawn(12, 5), drawn(12, 5, seed=1)), 2)


def test_the_measure_tells_every_matrix_and_none_below_what_is_possible():
    config = {"tokens": 6, "inputs": 8, "rank": 3, "orders": [2, 3], "draws": 2, "steps": 20}
    row = measure("attention-isometry", config, 0, "cpu")
    assert {"optimised", "built", "gaussian", "normalised", "product", "drawn"} == set(row["draws"][0])
    for draw in row["draws"]:
        for constants in draw.values():
            assert all(low >= least - 1e-9 for (low, _), least in zip(constants, row["least"], strict=True))
        assert draw["built"][0][0] == pytest.approx(row["least"][0])
