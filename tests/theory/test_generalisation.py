"""Norm-based complexities: against a Rademacher complexity that is known, and the invariances they must have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from theodolite.errors import BadInput
from theodolite.theory.generalisation import (
    dense_complexity,
    margin_bound,
    path_complexity,
    sparse_complexity,
    spectral_complexity,
)


def test_bounds_lie_above_the_exact_complexity_of_linear_maps():
    """sup over ‖w‖ ≤ 1 of Σ ξ_i w·x_i is ‖Σ ξ_i x_i‖: its mean over all signs is known for few samples."""
    x = np.random.default_rng(0).standard_normal((10, 3))
    signs = np.array(np.meshgrid(*[[-1, 1]] * 10)).reshape(10, -1).T
    exact = np.linalg.norm(signs @ x, axis=1).mean() / 10
    assert exact < dense_complexity([1.0], float((x**2).sum()), 10)
    largest = np.abs(signs @ x).max(axis=1).mean() / 10  # ‖w‖₁ ≤ 1
    assert largest < path_complexity(1.0, 1, float(np.abs(x).max()), 3, 10)
    assert exact < spectral_complexity([1.0], [1.0], float((x**2).sum()), 10, 3)


def test_bounds_lie_above_the_complexity_of_two_layers_with_one_relu_unit_found_by_search():
    """‖W₁‖_F = |w₂| = 1 in a tree of two tokens: sup of Σ ξ relu(w·x) over directions, searched on a fine circle."""
    random = np.random.default_rng(1)
    x = random.standard_normal((12, 2))
    angle = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    said = np.maximum(0, x @ np.stack([np.cos(angle), np.sin(angle)]))
    signs = random.choice((-1, 1), (4000, 12))
    found = np.abs(signs @ said).max(axis=1).mean() / 12
    tree = sparse_complexity([1.0, 1.0], [2, 1], float((x**2).sum(axis=0).max()), 12)
    assert found < dense_complexity([1.0, 1.0], float((x**2).sum()), 12)
    assert found < tree


def test_one_node_a_layer_is_a_dense_network():
    norms = [1.5, 0.7, 2.0]
    assert sparse_complexity(norms, [1, 1, 1], 30.0, 50) == pytest.approx(dense_complexity(norms, 30.0, 50))
    assert dense_complexity(norms, 30.0, 50) == pytest.approx(
        2.1 * (1 + math.sqrt(6 * math.log(2))) * math.sqrt(30) / 50
    )


def test_a_tree_saves_the_norms_of_the_nodes_beside():
    """Equal nodes: as dense, a layer of c nodes has √c times the norm of one; the inputs of all nodes are alike."""
    tokens, samples = 64, 100
    counts = [32, 16, 8, 4, 2, 1]
    graph = sparse_complexity([1.0] * 6, [2] * 6, 5.0, samples)
    dense = dense_complexity([math.sqrt(c) for c in counts], 5.0 * tokens, samples)
    logs = (1 + math.sqrt(2 * 12 * math.log(2))) / (1 + math.sqrt(2 * 6 * math.log(2)))
    assert dense / graph == pytest.approx(math.sqrt(math.prod(counts)) / logs)


def test_rescaling_layers_against_each_other_changes_no_bound():
    for scale in (0.1, 7.0):
        assert sparse_complexity([2 * scale, 3 / scale], [2, 1], 9.0, 20) == pytest.approx(
            sparse_complexity([2, 3], [2, 1], 9.0, 20)
        )
        assert spectral_complexity([2 * scale, 3 / scale], [4 * scale, 5 / scale], 9.0, 20, 8) == pytest.approx(
            spectral_complexity([2, 3], [4, 5], 9.0, 20, 8)
        )
        assert margin_bound(2 * scale, 3 * scale, 50) == pytest.approx(margin_bound(2, 3, 50))


def test_norms_and_fan_ins_must_belong_together():
    with pytest.raises(BadInput, match="2 norms and 1 fan-ins"):
        sparse_complexity([1.0, 1.0], [2], 1.0, 10)
