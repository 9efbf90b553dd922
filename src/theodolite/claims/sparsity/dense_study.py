"""Which masks training leaves in the first layer of a dense network, and how local they are: training that seeks
sparsity beside ℓ₂, as trained and thinned to the same number of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.claims.sparsity import dense
from theodolite.claims.sparsity.local_functions import Drawn, draw_examples
from theodolite.claims.sparsity.locality import against_chance, neighbours
from theodolite.claims.sparsity.penalties import Kind, Penalty
from theodolite.claims.sparsity.pruning import Pruning, iterate, thin
from theodolite.claims.sparsity.sparse_training import Examples, Masks, Plan, train_sparsely
from theodolite.device import resolve_device
from theodolite.training.step import Weights

FIRST = "0.weight"
PENALTIES: tuple[Kind, ...] = ("l2", "l1", "beta-lasso")
NEGLIGIBLE = 1e-3  # of the layer's largest weight
_SHARE = 0.3  # of the living weights, cut a round


def measure_mask_locality(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: data (row or grid), targets (the number that functions and examples are drawn from), seeds (how many
    functions), examples, widths, steps, lr, batch; l2, l1 and beta-lasso (strengths, of which every function takes that
    of least validation error), imp (rounds of 30 %, with the ℓ₂ that was taken), kept (the share of the first layer
    that thinning leaves at most).

    By labels, true or random (β-lasso, with the strengths taken for the true ones, and imp), and by method:
    accuracies, and by member the mask as trained, of all but negligible weights, its density and its locality against
    chance, in the geometry of the function and in the order that was fed. With true labels thinned, too: the largest
    weights, as many for all methods of a member, none of them negligible.
    """
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    data = draw_examples(config["data"], config["targets"], config["seeds"], config["examples"], generator.device)
    initial = dense.start([data.inputs, *config["widths"], 2], config["seeds"], generator)
    trainer = _Trainer(config, generator)
    own = np.random.default_rng(seed)
    rows: dict[str, Any] = {}
    chosen: dict[str, tuple[float, ...]] = {}
    for labels, y in (("true", data.train[1]), ("random", data.random)):
        train = (data.train[0], y)
        found: dict[str, Weights] = {}
        if labels == "true":
            for kind in PENALTIES:
                found[kind], chosen[kind] = trainer.best(initial, kind, train, data.validation)
        else:
            found["beta-lasso"] = trainer.train(initial, Penalty("beta-lasso", chosen["beta-lasso"]), train)
        found["imp"] = trainer.imp(initial, Penalty("l2", chosen["l2"]), train)
        rows[labels] = {
            method: {
                "train": dense.accuracy(weights, *train),
                "test": dense.accuracy(weights, *data.test),
                "trained": _localities(_living(weights[FIRST]), data, own),
            }
            for method, weights in found.items()
        }
        if labels == "true":
            for method, mask in _thinned({name: w[FIRST] for name, w in found.items()}, config["kept"]).items():
                rows[labels][method]["thinned"] = _localities(mask, data, own)
    functions = [f"{len(f.kernel)} inputs, {len(f.windows)} places, {f.nonlinearity}" for f in data.functions]
    return {"functions": functions, "strengths": {k: list(v) for k, v in chosen.items()}, "labels": rows}


class _Trainer:
    """One configuration's way to train members."""

    def __init__(self, config: Mapping[str, Any], generator: torch.Generator) -> None:
        self.config, self.generator = config, generator
        self.plan = Plan(config["steps"], config["lr"])

    def train(
        self,
        weights: Weights,
        penalty: Penalty,
        data: tuple[Tensor, Tensor],
        masks: Masks | None = None,
        begin: int = 0,
        end: int | None = None,
    ) -> Weights:
        """Drawn batches; under a penalty that cuts, all examples in the last eighth: noise keeps weights alive."""
        names, steps = dense.matrices(weights), self.plan.steps
        late = steps - steps // 8 if penalty.kind in ("l1", "beta-lasso") else steps
        end = steps if end is None else end
        phases = (
            (begin, min(late, end), Examples(*data, self.config["batch"], self.generator)),
            (max(late, begin), end, Examples(*data)),
        )
        for first, last, examples in phases:
            if first < last:
                weights = train_sparsely(
                    weights, dense.cross_entropy, examples, self.plan, penalty, names, masks, first, last
                )
        return weights

    def best(
        self, weights: Weights, kind: Kind, data: tuple[Tensor, Tensor], validation: tuple[Tensor, Tensor]
    ) -> tuple[Weights, tuple[float, ...]]:
        """Of one training a strength, for every member the one most often right on the validation examples, and its
        strength."""
        strengths: Sequence[float] = self.config[kind]
        trained = [self.train(weights, Penalty(kind, strength), data) for strength in strengths]
        right = torch.tensor([dense.accuracy(own, *validation) for own in trained])
        best = right.argmax(0).tolist()
        picked = {name: torch.stack([trained[b][name][m] for m, b in enumerate(best)]) for name in weights}
        return picked, tuple(strengths[b] for b in best)

    def imp(self, weights: Weights, penalty: Penalty, data: tuple[Tensor, Tensor]) -> Weights:
        """The last round of pruning, layer by layer."""
        steps = self.plan.steps
        plan = Pruning(self.config["imp"], _SHARE, rewind=steps // 20, scope="layer")
        last = weights
        for found in iterate(
            weights, dense.matrices(weights), lambda w, m, a, b: self.train(w, penalty, data, m, a, b), plan, steps
        ):
            last = found.weights
        return last


def _living(weight: Tensor) -> Tensor:
    return (weight != 0) & (weight.abs() >= NEGLIGIBLE * weight.abs().amax((1, 2), keepdim=True))


def _thinned(weights: Mapping[str, Tensor], kept: float) -> dict[str, Tensor]:
    """By method: the masks of the largest weights, as many as every method has of that member."""
    fewest = torch.stack([_living(weight).flatten(1).sum(1) for weight in weights.values()]).amin(0).tolist()
    return {
        name: torch.cat(
            [thin(w[None], min(few, round(kept * w.numel()))) for w, few in zip(weight, fewest, strict=True)]
        )
        for name, weight in weights.items()
    }


def _localities(mask: Tensor, data: Drawn, generator: np.random.Generator) -> dict[str, list[float | None]]:
    near = neighbours(data.functions[0].shape)
    found: dict[str, list[float | None]] = {"density": mask.flatten(1).float().mean(1).tolist()}
    for own, order in zip(mask.transpose(1, 2).cpu().numpy(), data.order, strict=True):
        kernels = {"original": near[np.ix_(order, order)], "fed": near}
        for name, against in against_chance(own, kernels, generator).items():
            found.setdefault(name, []).append(against.ratio)
    return found
