"""How much of a dense network can be cut before it errs more: accuracy against density, on labels and on trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.claims.sparsity import dense
from theodolite.claims.sparsity.graph_study import target_points
from theodolite.claims.sparsity.images import labelled
from theodolite.claims.sparsity.locality import against_chance, siblings
from theodolite.claims.sparsity.penalties import Penalty
from theodolite.claims.sparsity.pruning import Pruned, Pruning, iterate
from theodolite.claims.sparsity.sparse_training import Examples, Plan, train_sparsely
from theodolite.device import resolve_device
from theodolite.graphs.families import named_graph
from theodolite.graphs.graph import CompositionalGraph
from theodolite.training.step import Loss, Weights

FIRST = "0.weight"


def measure_accuracy_by_density(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: data, random, examples, seeds, widths, steps, lr, batch, l2, rounds, share. One row per round, the dense
    network first; accuracies by member."""
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    data = labelled(config["data"], config["seeds"], config["examples"], generator, config["random"])
    initial = dense.start([data.inputs, *config["widths"], data.classes], config["seeds"], generator)
    examples = Examples(*data.train, config["batch"], generator)
    rows = [
        {
            "density": found.density,
            "train": dense.accuracy(found.weights, *data.train),
            "test": dense.accuracy(found.weights, *data.test),
        }
        for found in _rounds(config, initial, dense.cross_entropy, examples)
    ]
    return {"chance": 1 / data.classes, "rounds": rows}


def measure_tree_pruning(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: truth (a named graph), variables, targets, points, seeds, widths, steps, lr, batch, l2, rounds, share.

    One row per round: test error over the target's variance, and how pure the first layer is: the share of the pairs of
    variables that a unit reads which enter one constituent, against masks of the same margins.
    """
    device = resolve_device(device)
    generator = torch.Generator(device).manual_seed(seed)
    truth = named_graph(config["truth"], config["variables"])
    parts = target_points(truth, config["targets"], config["seeds"], config["points"], device)
    initial = dense.start([config["variables"], *config["widths"], 1], config["seeds"], generator)
    examples = Examples(*parts["train"], config["batch"], generator)
    kernel, own = siblings(first_constituents(truth), config["variables"]), np.random.default_rng(seed)
    rows = [
        {
            "density": found.density,
            "train": dense.relative_error(found.weights, *parts["train"]),
            "test": dense.relative_error(found.weights, *parts["test"]),
            "purity": [
                against_chance(mask, {"purity": kernel}, own)["purity"].to_json() for mask in _units(found.masks[FIRST])
            ],
        }
        for found in _rounds(config, initial, dense.square_error, examples)
    ]
    return {"rounds": rows}


def first_constituents(graph: CompositionalGraph) -> list[list[int]]:
    """The variables of each constituent that reads variables only, by their places."""
    place = {name: number for number, name in enumerate(graph.variables)}
    return [[place[name] for name in node.inputs] for node in graph.nodes if graph.level[node.name] == 1]


def _rounds(config: Mapping[str, Any], initial: Weights, loss: Loss, examples: Examples) -> Iterator[Pruned]:
    plan, penalty = Plan(config["steps"], config["lr"]), Penalty("l2", config["l2"])
    names = dense.matrices(initial)
    pruning = Pruning(config["rounds"], config["share"], rewind=config["steps"] // 20)

    def train(weights: Weights, masks: Mapping[str, Tensor], begin: int, end: int) -> Weights:
        return train_sparsely(weights, loss, examples, plan, penalty, names, masks, begin, end)

    return iterate(initial, names, train, pruning, config["steps"])


def _units(mask: Tensor) -> np.ndarray:
    """(member, unit, input)."""
    return mask.transpose(1, 2).cpu().numpy()
