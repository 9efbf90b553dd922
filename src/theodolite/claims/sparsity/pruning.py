"""Iterative magnitude pruning with rewinding: train, cut the smallest weights, put the rest back to an early step.

Frankle and Carbin's lottery tickets. What is cut is what `torch.nn.utils.prune` cuts: of the weights that still live,
round(share · living) with the smallest magnitude, over all layers together or in every layer for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from theodolite.claims.sparsity.sparse_training import Masks
from theodolite.errors import BadInput
from theodolite.training.step import Weights

Scope = Literal["global", "layer"]
Train = Callable[[Weights, Masks, int, int], Weights]  # weights, masks, first step, last step


@dataclass(frozen=True)
class Pruning:
    """Every round cuts `share` of what lives; survivors go back to what they were after `rewind` steps."""

    rounds: int
    share: float = 0.2
    rewind: int = 0
    scope: Scope = "global"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise BadInput(f"a round of pruning must cut a share between 0 and 1, not {self.share}")
        if self.rounds < 1 or self.rewind < 0:
            raise BadInput(f"pruning needs at least one round and a step ≥ 0, not {self.rounds} and {self.rewind}")
        if self.scope not in ("global", "layer"):
            raise BadInput(f"there is no scope '{self.scope}' of pruning: use global or layer")


@dataclass(frozen=True)
class Pruned:
    """One round: the members as trained under their masks, and the share of weights that lives."""

    weights: Weights
    masks: dict[str, Tensor]
    density: float


def iterate(initial: Weights, names: frozenset[str], train: Train, plan: Pruning, steps: int) -> Iterator[Pruned]:
    """The dense members first, then one round after another; `train` runs the steps [first, last) under masks."""
    if plan.rewind >= steps:
        raise BadInput(f"survivors cannot go back to step {plan.rewind}: training has {steps} steps, take fewer")
    masks = {name: torch.ones_like(initial[name], dtype=torch.bool) for name in sorted(names)}
    early = train(initial, masks, 0, plan.rewind) if plan.rewind else initial
    for number in range(plan.rounds + 1):
        trained = train(early, masks, plan.rewind, steps)
        yield Pruned(trained, masks, density(masks))
        if number < plan.rounds:
            masks = cut(trained, masks, plan.share, plan.scope)


def cut(weights: Mapping[str, Tensor], masks: Masks, share: float, scope: Scope = "global") -> dict[str, Tensor]:
    """Masks with `share` of the living weights of every member cut."""
    if scope == "layer":
        return {
            name: _cut(weights[name].flatten(1), mask.flatten(1), share).view_as(mask) for name, mask in masks.items()
        }
    together = _cut(
        torch.cat([weights[name].flatten(1) for name in masks], 1),
        torch.cat([mask.flatten(1) for mask in masks.values()], 1),
        share,
    )
    parts = together.split([mask[0].numel() for mask in masks.values()], 1)
    return {name: part.reshape(mask.shape) for (name, mask), part in zip(masks.items(), parts, strict=True)}


def thin(weight: Tensor, keep: int) -> Tensor:
    """The mask of the `keep` largest magnitudes of every member's weights."""
    places = weight.flatten(1).abs().topk(keep, dim=1).indices
    return torch.zeros_like(weight, dtype=torch.bool).flatten(1).scatter_(1, places, True).view_as(weight)


def density(masks: Masks) -> float:
    return sum(int(mask.sum()) for mask in masks.values()) / sum(mask.numel() for mask in masks.values())


def _cut(weights: Tensor, mask: Tensor, share: float) -> Tensor:
    """Of (member, weight); all members live in equally many weights, so each loses as many."""
    living = int(mask[0].sum())
    gone = round(share * living)
    size = weights.abs().masked_fill(~mask, float("inf"))
    return mask.scatter(1, size.topk(gone, dim=1, largest=False).indices, False)
