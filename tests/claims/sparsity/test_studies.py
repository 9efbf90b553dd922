"""The studies' parts against independent computations, and small runs of which the answer is plain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.claims.sparsity import dense
from theodolite.claims.sparsity.density_study import first_constituents
from theodolite.claims.sparsity.embedding import embed, run_convolution, start_convolution
from theodolite.claims.sparsity.graph_study import shaped, target_points
from theodolite.claims.sparsity.images import labelled
from theodolite.errors import BadInput
from theodolite.graphs.families import named_graph
from theodolite.measures import measure

CPU = torch.device("cpu")
TREE = {
    "truth": "binary-tree", "variables": 4, "draw": 1, "graph": "true", "width": 6, "depth": 1, "points": 200,
    "seeds": 2, "targets": 0, "restarts": 1, "steps": 100, "lr": 0.03, "loss": "square", "penalty": "l2",
    "strengths": [1e-4],
}  # fmt: skip


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_stacked_members_say_what_each_says_alone():
    weights, x = dense.start([5, 7, 3], 4, generator()), torch.randn(4, 6, 5, generator=generator(1))
    labels = torch.randint(3, (4, 6), generator=generator(2))
    for member in range(4):
        first, second = nn.Linear(5, 7), nn.Linear(7, 3)
        for number, layer in enumerate((first, second)):
            layer.weight.data = weights[f"{number}.weight"][member].T
            layer.bias.data = weights[f"{number}.bias"][member, 0]
        said = second(torch.relu(first(x[member])))
        torch.testing.assert_close(dense.run(weights, x)[member], said)
        loss = nn.functional.cross_entropy(said, labels[member])
        torch.testing.assert_close(dense.cross_entropy(weights, (x, labels))[member], loss)


@pytest.mark.parametrize("pooled", [False, True])
def test_an_embedded_convolution_is_the_same_function_and_that_of_conv2d(pooled):
    weights = start_convolution(4, 5, 3, pooled, generator())
    weights["0.bias"] = torch.randn(3, 1, 4, generator=generator(1))
    x = torch.randn(3, 10, 64, generator=generator(2))
    said = run_convolution(weights, x)
    torch.testing.assert_close(dense.run(embed(weights), x), said, atol=1e-5, rtol=1e-5)
    for member in range(3):
        kernel = weights["0.weight"][member].T.reshape(4, 1, 3, 3)
        hidden = torch.relu(nn.functional.conv2d(x[member].view(10, 1, 8, 8), kernel, weights["0.bias"][member, 0]))
        features = hidden.mean((2, 3)) if pooled else hidden.flatten(1)
        truth = features @ weights["1.weight"][member] + weights["1.bias"][member]
        torch.testing.assert_close(said[member], truth, atol=1e-5, rtol=1e-5)
    assert float((embed(weights)["0.weight"] != 0).float().mean()) == pytest.approx(9 / 64)


def test_rivals_learn_the_same_functions_from_the_same_points():
    truth = named_graph("binary-tree", 4)
    once, again = (target_points(truth, 7, 2, 50, CPU)["train"] for _ in range(2))
    other = target_points(truth, 8, 2, 50, CPU)["train"]
    assert torch.equal(once[0], again[0])
    assert torch.equal(once[1], again[1])
    assert not torch.equal(once[1], other[1])
    assert not torch.equal(once[1][0], once[1][1])


def test_the_true_graph_beats_a_wrong_one_and_l1_leaves_exact_zeros():
    true, wrong = (measure("graph-training", {**TREE, "graph": graph}, 0, "cpu") for graph in ("true", "wrong"))
    assert true["parameters"] == wrong["parameters"]
    assert max(true["test"]) < min(wrong["test"])
    assert true["zero"] == [0.0, 0.0]
    sparse = measure("graph-training", {**TREE, "penalty": "l1", "strengths": [0.03]}, 0, "cpu")
    assert min(sparse["zero"]) > 0.05


def test_the_member_of_least_validation_error_is_kept_for_every_target():
    one = measure("graph-training", {**TREE, "strengths": [1e-4, 30.0]}, 0, "cpu")
    assert one["strength"] == [1e-4, 1e-4]  # at 30 the constant 0 is learnt


def test_the_exponential_loss_learns_signs():
    found = measure("graph-training", {**TREE, "loss": "exponential", "penalty": "none", "strengths": [0.0]}, 0, "cpu")
    assert max(found["test"]) < 0.2


def test_graphs_are_given_as_named_and_unknown_ones_refused():
    truth = named_graph("binary-tree", 8)
    assert shaped("true", truth, 0) == truth
    assert len(shaped(5, truth, 0).edges) == len(truth.edges) + 5
    assert shaped("dense", truth, 0).is_dense
    with pytest.raises(BadInput, match="oak"):
        shaped("oak", truth, 0)
    with pytest.raises(BadInput, match="hinge"):
        measure("graph-training", {**TREE, "loss": "hinge"}, 0, "cpu")


def test_the_constituents_of_variables_are_those_of_the_graph():
    assert first_constituents(named_graph("binary-tree", 8)) == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("name", ["digits", "patterns", "pairs"])
def test_labels_are_true_random_ones_are_not_and_shuffling_only_moves_inputs(name):
    plain = labelled(name, 2, 300, generator())
    moved = labelled(name, 2, 300, generator(), shuffled=True)
    back = torch.empty_like(moved.train[0]).scatter_(
        2, moved.order.unsqueeze(1).expand_as(moved.train[0]), moved.train[0]
    )
    assert torch.equal(back, plain.train[0])
    assert torch.equal(moved.train[1], plain.train[1])
    assert not torch.equal(moved.train[0], plain.train[0])
    mixed = labelled(name, 2, 300, generator(), random=True)
    assert torch.equal(mixed.train[0], plain.train[0])
    assert torch.equal(mixed.train[1].sort().values, plain.train[1].sort().values)
    assert float((mixed.train[1] == plain.train[1]).float().mean()) < 0.7
    assert torch.equal(mixed.test[1], plain.test[1])


def test_the_rules_behind_the_drawn_labels():
    x, y = labelled("pairs", 1, 50, generator()).train
    for row, label in zip(x[0].tolist(), y[0].tolist(), strict=True):
        assert label == (sum(a * b for a, b in itertools.pairwise(row)) > 0)
    data = labelled("patterns", 1, 4000, generator())
    images, labels = data.train[0][0].view(-1, 8, 8), data.train[1][0]
    windows = nn.functional.unfold(images[:, None], 3)  # of all places, the pattern's own one carries 9·4 more energy
    energy = windows.square().sum(1)
    assert float(energy.amax(1).mean()) > 30
    assert labels.bincount().min() > 800


def test_pruning_pairs_leaves_local_masks_that_a_shuffle_moves():
    config = {
        "data": "pairs", "random": False, "shuffled": True, "examples": 2000, "seeds": 2, "widths": [32], "steps": 200,
        "lr": 0.01, "batch": 64, "l2": 1e-4, "imp": 5,
    }  # fmt: skip
    found = measure("mask-locality", config, 0, "cpu")["methods"]["imp"]
    original, fed = (np.mean([c["ratio"] for c in found[where]]) for where in ("original", "fed"))
    assert original > 1.25
    assert fed < 1.25
    assert found["density"] == pytest.approx([0.7**5] * 2, abs=0.01)
    with pytest.raises(BadInput, match="letters"):
        measure("mask-locality", {**config, "data": "letters"}, 0, "cpu")


def test_accuracy_falls_with_density_and_random_labels_teach_nothing():
    config = {
        "data": "digits", "examples": 500, "seeds": 2, "widths": [20], "steps": 80, "lr": 0.01, "batch": 64, "l2": 1e-4,
        "rounds": 3, "share": 0.7,
    }  # fmt: skip
    true, random = (measure("accuracy-by-density", {**config, "random": r}, 0, "cpu")["rounds"] for r in (False, True))
    assert [r["density"] for r in true] == pytest.approx([1, 0.3, 0.09, 0.027], abs=0.002)
    assert np.mean(true[0]["test"]) > 0.85 > np.mean(true[-1]["test"])
    assert np.mean(random[0]["test"]) < 0.25


def test_pruning_on_a_tree_reports_error_and_purity_by_density():
    config = {
        "truth": "binary-tree", "variables": 4, "targets": 0, "points": 500, "seeds": 2, "widths": [16], "steps": 150,
        "lr": 0.01, "batch": 64, "l2": 1e-5, "rounds": 2, "share": 0.6,
    }  # fmt: skip
    rounds = measure("tree-pruning", config, 0, "cpu")["rounds"]
    assert max(rounds[0]["test"]) < 0.5
    assert [p["ratio"] for p in rounds[0]["purity"]] == pytest.approx([1.0, 1.0])
    assert all(len(r["test"]) == len(r["purity"]) == 2 for r in rounds)
