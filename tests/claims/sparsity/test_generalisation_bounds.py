"""Networks of a tree and dense ones behind one class, their matrices, and their bounds."""

from __future__ import annotations

import pytest
import torch

from theodolite.claims.sparsity.generalisation_bounds import KINDS, layered, target
from theodolite.errors import BadInput
from theodolite.measures import measure


@pytest.mark.parametrize("kind", KINDS)
def test_layers_written_as_matrices_compute_the_same(kind):
    net = layered(kind, 8, 5, 3, torch.Generator().manual_seed(0))
    x = torch.randn(3, 7, 8, 2, generator=torch.Generator().manual_seed(1))
    for seed in range(3):
        value = x[seed].flatten(1)
        matrices = net.matrices(seed)
        for number, matrix in enumerate(matrices):
            value = value @ matrix.T
            value = value if number == len(matrices) - 1 else value.relu()
        assert torch.allclose(value[:, 0], net(x)[seed], atol=1e-5)


def test_a_convolution_has_the_weights_of_one_node_a_level_and_a_graph_those_of_all():
    shapes = {kind: [tuple(w.shape) for w in layered(kind, 8, 5, 2, torch.Generator()).weights] for kind in KINDS}
    assert shapes["convolution"] == [(2, 1, 4, 5), (2, 1, 10, 5), (2, 1, 10, 5), (2, 1, 5, 1)]
    assert [s[1] for s in shapes["graph"]] == [4, 2, 1, 1]
    assert shapes["dense"][0] == (2, 1, 16, 5)
    assert len(shapes["dense"]) == 4


def test_the_target_is_a_tree():
    """Changing one token changes the answer through its branch alone: two tokens of a pair enter by one number."""
    c = torch.tensor([[[1.0, -1.0, 0.5, 0.0], [0.5, 2.0, 1.0, 0.0]]])
    x = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(0))
    h = [torch.tanh(x[0, :, i] - x[0, :, i + 1] + 0.5 * x[0, :, i] * x[0, :, i + 1]) for i in (0, 2)]
    assert torch.allclose(target(x, c)[0], torch.tanh(0.5 * h[0] + 2 * h[1] + h[0] * h[1]))


def test_bounds_lie_above_the_test_error_and_the_graph_is_the_better_reading():
    config = {"tokens": 8, "width": 8, "samples": 24, "seeds": 2, "steps": 120, "batch": 24, "rate": 1e-2,
              "decays": [0.1]}  # fmt: skip
    for kind in ("convolution", "dense"):
        row = measure("generalisation-bounds", {"kind": kind, **config}, 0, "cpu")
        told = [m for m in row["members"] if m["bounds"]]
        assert told
        for member in told:
            assert all(bound > member["test_error"] for bound in member["bounds"].values())
            same = member["bounds"]["graph"] == pytest.approx(member["bounds"]["dense"])
            assert same if kind == "dense" else member["bounds"]["graph"] < member["bounds"]["dense"]


def test_an_unknown_kind_is_refused():
    with pytest.raises(BadInput, match="'tree'"):
        layered("tree", 8, 4, 1, torch.Generator())
    with pytest.raises(BadInput, match="6 tokens"):
        layered("graph", 6, 4, 1, torch.Generator())
