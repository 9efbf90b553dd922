"""Pruning against torch.nn.utils.prune, member by member, and rewinding against what it promises."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from theodolite.claims.sparsity import dense
from theodolite.claims.sparsity.pruning import Pruning, cut, density, iterate, thin
from theodolite.errors import BadInput

MEMBERS, SIZES = 3, [6, 9, 4]


def stacked() -> dict[str, torch.Tensor]:
    return dense.start(SIZES, MEMBERS, torch.Generator().manual_seed(0))


def torch_masks(
    weights: dict[str, torch.Tensor], member: int, share: float, rounds: int, scope: str
) -> list[torch.Tensor]:
    layers = []
    for number in range(len(SIZES) - 1):
        layer = nn.Linear(SIZES[number], SIZES[number + 1])
        layer.weight = nn.Parameter(weights[f"{number}.weight"][member].T.contiguous())
        layers.append(layer)
    for _ in range(rounds):
        if scope == "global":
            prune.global_unstructured([(layer, "weight") for layer in layers], prune.L1Unstructured, amount=share)
        else:
            for layer in layers:
                prune.l1_unstructured(layer, "weight", amount=share)
    return [layer.get_buffer("weight_mask").T.bool() for layer in layers]


@pytest.mark.parametrize("scope", ["global", "layer"])
@pytest.mark.parametrize("share", [0.2, 0.35])
def test_what_is_cut_round_by_round_is_what_torch_cuts(scope, share):
    weights = stacked()
    masks = {name: torch.ones_like(weights[name], dtype=torch.bool) for name in ("0.weight", "1.weight")}
    for rounds in (1, 2, 3, 4):
        masks = cut(weights, masks, share, scope)
        for member in range(MEMBERS):
            for number, mask in enumerate(torch_masks(weights, member, share, rounds, scope)):
                assert torch.equal(masks[f"{number}.weight"][member], mask)
    assert 0 < density(masks) < 0.5


def test_survivors_go_back_to_the_early_step_and_the_dense_network_comes_first():
    weights, calls = stacked(), []

    def train(given, masks, begin, end):
        calls.append((begin, end, {name: w.clone() for name, w in given.items()}))
        return {name: w * 2 + end for name, w in given.items()}

    found = list(iterate(weights, dense.matrices(weights), train, Pruning(3, 0.5, rewind=5), 40))
    assert [(begin, end) for begin, end, _ in calls] == [(0, 5)] + [(5, 40)] * 4
    early = {name: w * 2 + 5 for name, w in weights.items()}
    for _, _, given in calls[1:]:
        for name, w in given.items():
            assert torch.equal(w, early[name])
    assert [one.density for one in found] == pytest.approx([1, 45 / 90, 23 / 90, 11 / 90], abs=1e-9)
    for before, after in itertools.pairwise(found):
        assert all((after.masks[name] <= before.masks[name]).all() for name in after.masks)


def test_thinning_keeps_the_largest_of_every_member():
    weight = stacked()["0.weight"]
    mask = thin(weight, 7)
    assert (mask.flatten(1).sum(1) == 7).all()
    for own, kept in zip(weight.abs(), mask, strict=True):
        assert own[kept].min() >= own[~kept].max()


@pytest.mark.parametrize("make", [lambda: Pruning(1, 1.0), lambda: Pruning(0), lambda: Pruning(1, scope="unit")])  # pyright: ignore[reportArgumentType]
def test_pruning_that_makes_no_sense_is_refused(make):
    with pytest.raises(BadInput):
        make()


def test_a_rewind_beyond_the_end_of_training_is_refused():
    weights = stacked()
    with pytest.raises(BadInput, match="step 50"):
        next(iterate(weights, dense.matrices(weights), lambda w, m, a, b: w, Pruning(1, rewind=50), 50))
