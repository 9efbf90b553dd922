"""The studies' parts against independent computations, and small runs of which the answer is plain."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.claims.sparsity import dense
from theodolite.claims.sparsity.density_study import first_constituents
from theodolite.claims.sparsity.embedding import embed, run_convolution, start_convolution
from theodolite.claims.sparsity.graph_study import shaped, target_points
from theodolite.claims.sparsity.images import labelled
from theodolite.claims.sparsity.local_functions import draw_examples, draw_inputs, draw_local_function
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


@pytest.mark.parametrize("name", ["digits", "patterns"])
def test_random_labels_are_those_of_other_examples(name):
    plain, mixed = (labelled(name, 2, 300, generator(), random=random) for random in (False, True))
    assert torch.equal(mixed.train[0], plain.train[0])
    assert torch.equal(mixed.train[1].sort().values, plain.train[1].sort().values)
    assert float((mixed.train[1] == plain.train[1]).float().mean()) < 0.7
    assert torch.equal(mixed.test[1], plain.test[1])


def test_the_patterns_are_where_the_energy_is():
    data = labelled("patterns", 1, 4000, generator())
    images, labels = data.train[0][0].view(-1, 8, 8), data.train[1][0]
    windows = nn.functional.unfold(images[:, None], 3)  # of all places, the pattern's own one carries 9·4 more energy
    energy = windows.square().sum(1)
    assert float(energy.amax(1).mean()) > 30
    assert labels.bincount().min() > 800


NONLINEARITIES = {
    "square": lambda u: u * u,
    "absolute value": abs,
    "bump": lambda u: math.exp(-u * u),
    "wave": lambda u: math.cos(2 * u),
}


@pytest.mark.parametrize(("family", "shape"), [("row", (16,)), ("grid", (5, 5))])
def test_a_local_function_adds_what_a_sliding_window_says(family, shape):
    seen = set()
    for seed in range(100):
        draw = np.random.default_rng(seed)
        function = draw_local_function(family, draw)
        x = draw.standard_normal((1, math.prod(shape)))
        total = 0.0
        corner = np.array(np.unravel_index(function.windows[0], shape))  # (axis, input)
        for window in function.windows:
            places = np.array(np.unravel_index(window, shape))
            assert len({tuple(step) for step in (places - corner).T}) == 1  # the first window, moved
            inputs = [float(x[0, i]) for i in window]
            if function.nonlinearity == "product":
                total += math.prod(inputs)
            else:
                total += NONLINEARITIES[function.nonlinearity](float(np.dot(inputs, function.kernel)))
        assert float(function(x)[0]) == pytest.approx(total)
        assert np.ptp(corner, axis=1).max() < 4
        seen |= {function.nonlinearity, len(function.windows)}
    assert {"square", "absolute value", "bump", "wave", "product"} <= seen
    with pytest.raises(BadInput, match="ring"):
        draw_local_function("ring", np.random.default_rng(0))


def test_examples_follow_their_number_alone_and_are_fed_in_an_order_of_their_own():
    data, again, other = (draw_examples("grid", targets, 2, 500, CPU) for targets in (7, 7, 8))
    assert torch.equal(data.train[0], again.train[0])
    assert not torch.equal(data.train[0], other.train[0])
    x, labels = data.test
    for member, order in enumerate(data.order):
        own = np.empty(x[member].shape)
        own[:, order] = x[member].numpy()
        values = data.functions[member](own)
        assert values[labels[member].numpy() == 1].min() > values[labels[member].numpy() == 0].max()
    assert torch.equal(data.random.sort().values, data.train[1].sort().values)
    assert 0.3 < float((data.random == data.train[1]).float().mean()) < 0.7


def test_neighbours_of_a_grid_are_alike_and_those_of_a_row_are_not():
    draw = np.random.default_rng(0)
    row, grid = (np.corrcoef(draw_inputs(family, 20_000, draw).T) for family in ("row", "grid"))
    assert row[0, 1] == pytest.approx(0.0, abs=0.03)
    assert grid[0, 1] == pytest.approx(0.6, abs=0.03)
    assert grid[0, 5] == pytest.approx(0.6, abs=0.03)
    assert grid[0, 2] == pytest.approx(0.36, abs=0.03)


def test_masks_are_local_where_the_label_is_and_thinning_leaves_all_methods_equally_many():
    config = {
        "data": "row", "targets": 5, "examples": 1000, "seeds": 3, "widths": [24], "steps": 150, "lr": 0.01,
        "batch": 64, "l2": [1e-3, 1e-2], "l1": [3e-3], "beta-lasso": [1e-3], "imp": 5, "kept": 0.1,
    }  # fmt: skip
    found = measure("mask-locality", config, 0, "cpu")
    true, random = found["labels"]["true"], found["labels"]["random"]
    assert np.mean(true["imp"]["trained"]["original"]) > 1.15 > np.mean(random["imp"]["trained"]["original"])
    assert np.mean(true["imp"]["trained"]["original"]) > np.mean(true["imp"]["trained"]["fed"])
    assert true["l2"]["trained"]["original"] == pytest.approx([1.0] * 3, abs=0.02)
    assert max(true["imp"]["trained"]["density"]) <= 0.7**5 + 0.01
    for method in ("l1", "beta-lasso", "imp"):
        assert true[method]["thinned"]["density"] == true["l2"]["thinned"]["density"]
    assert max(true["l2"]["thinned"]["density"]) <= 0.1
    assert set(found["strengths"]["l2"]) <= {1e-3, 1e-2}


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
