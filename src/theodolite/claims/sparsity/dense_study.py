"""Which masks sparsity-seeking training leaves in the first layer of a dense network, and how local they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.claims.sparsity import dense
from theodolite.claims.sparsity.images import Labelled, labelled
from theodolite.claims.sparsity.locality import against_chance, distances, neighbours
from theodolite.claims.sparsity.penalties import Penalty
from theodolite.claims.sparsity.pruning import Pruning, iterate, thin
from theodolite.claims.sparsity.sparse_training import Examples, Masks, Plan, train_sparsely
from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.training.step import Weights

FIRST = "0.weight"
METHODS = ("l1", "beta-lasso", "imp")


def measure_mask_locality(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: data, random, shuffled, examples, seeds, widths, steps, lr, batch, l2, and one entry per method to run:
    l1 and beta-lasso (strength), imp (rounds of 30 %). Beside each method stands ℓ₂ with the same seeds, of whose
    first layer as many of the largest weights are kept as that method left.
    """
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    data = labelled(
        config["data"], config["seeds"], config["examples"], generator, config["random"], config["shuffled"]
    )
    sizes = [data.inputs, *config["widths"], data.classes]
    initial = dense.start(sizes, config["seeds"], generator)
    trainer = _Trainer(config, data, generator)
    plain = trainer.train(initial, Penalty("l2", config["l2"]))
    own = np.random.default_rng(seed)
    rows: dict[str, Any] = {"l2": {"accuracy": trainer.accuracy(plain)}}
    for method in METHODS:
        if method not in config:
            continue
        weights = trainer.imp(initial, config[method]) if method == "imp" else trainer.penalised(initial, method)
        mask = weights[FIRST] != 0
        rivals = torch.stack([thin(w[None], int(m.sum()))[0] for w, m in zip(plain[FIRST], mask, strict=True)])
        rows[method] = {
            "accuracy": trainer.accuracy(weights),
            "density": mask.flatten(1).float().mean(1).tolist(),
            **_localities(mask, data, own),
            "l2": _localities(rivals, data, own),
        }
    return {"classes": data.classes, "methods": rows}


class _Trainer:
    """One configuration's way to train members on its data."""

    def __init__(self, config: Mapping[str, Any], data: Labelled, generator: torch.Generator) -> None:
        self.config, self.data, self.generator = config, data, generator
        self.plan = Plan(config["steps"], config["lr"])

    def train(
        self, weights: Weights, penalty: Penalty, masks: Masks | None = None, begin: int = 0, end: int | None = None
    ) -> Weights:
        """Drawn batches; under a penalty that cuts, all examples in the last quarter: noise keeps weights alive."""
        names, steps = dense.matrices(weights), self.plan.steps
        late = steps - steps // 4 if penalty.kind in ("l1", "beta-lasso") else steps
        end = steps if end is None else end
        phases = (
            (begin, min(late, end), Examples(*self.data.train, self.config["batch"], self.generator)),
            (max(late, begin), end, Examples(*self.data.train)),
        )
        for first, last, examples in phases:
            if first < last:
                weights = train_sparsely(
                    weights, dense.cross_entropy, examples, self.plan, penalty, names, masks, first, last
                )
        return weights

    def penalised(self, weights: Weights, method: str) -> Weights:
        if method not in ("l1", "beta-lasso"):
            raise BadInput(f"there is no penalised training '{method}': use l1 or beta-lasso")
        return self.train(weights, Penalty(method, self.config[method]))  # pyright: ignore[reportArgumentType]

    def imp(self, weights: Weights, rounds: int) -> Weights:
        """The last round of pruning, layer by layer, with ℓ₂ as strong as without pruning."""
        penalty, steps = Penalty("l2", self.config["l2"]), self.plan.steps
        plan = Pruning(rounds, 0.3, rewind=steps // 20, scope="layer")
        last = weights
        for found in iterate(
            weights, dense.matrices(weights), lambda w, m, a, b: self.train(w, penalty, m, a, b), plan, steps
        ):
            last = found.weights
        return last

    def accuracy(self, weights: Weights) -> dict[str, list[float]]:
        return {
            "train": dense.accuracy(weights, *self.data.train),
            "test": dense.accuracy(weights, *self.data.test),
        }


def _localities(mask: Tensor, data: Labelled, generator: np.random.Generator) -> dict[str, list[dict[str, Any]]]:
    """Per member: in the geometry that the inputs came in, and in the one that they had before any shuffling."""
    near, far = neighbours(data.shape), distances(data.shape)
    found: dict[str, list[dict[str, Any]]] = {"fed": [], "original": [], "distance": []}
    for own, order in zip(mask.transpose(1, 2).cpu().numpy(), data.order.cpu().numpy(), strict=True):
        places = np.ix_(order, order)
        kernels = {"fed": near, "original": near[places], "distance": far[places]}
        for name, against in against_chance(own, kernels, generator).items():
            found[name].append(against.to_json())
    return found
