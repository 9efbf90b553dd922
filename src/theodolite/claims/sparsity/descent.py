"""Stacked members trained as one program, with a penalty and with masks: a masked weight is 0 and stays 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from theodolite.claims.sparsity.penalties import Penalty, after_step, before_step
from theodolite.errors import BadInput

Weights = dict[str, Tensor]  # (member, …)
Masks = Mapping[str, Tensor]  # as the weights they belong to; True where a weight lives
Loss = Callable[[Mapping[str, Tensor], tuple[Tensor, ...]], Tensor]  # one loss per member
Batches = Callable[[], tuple[Tensor, ...]]

_BETAS, _EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Schedule:
    """Adam, or SGD with momentum; the rate falls to 0 along half a cosine."""

    steps: int
    lr: float
    rule: Literal["adam", "sgd"] = "adam"
    momentum: float = 0.9

    def __post_init__(self) -> None:
        if self.rule not in ("adam", "sgd"):
            raise BadInput(f"there is no rule '{self.rule}': use adam or sgd")
        if self.steps < 1 or not self.lr > 0:
            raise BadInput(f"training needs a positive number of steps and rate, not {self.steps} and {self.lr}")

    def rate(self, step: int) -> float:
        """`step` counts from 0."""
        return self.lr * 0.5 * (1 + math.cos(math.pi * step / self.steps))


def descend(
    weights: Weights,
    loss: Loss,
    batches: Batches,
    schedule: Schedule,
    penalty: Penalty | None = None,
    penalised: frozenset[str] = frozenset(),
    masks: Masks | None = None,
    begin: int = 0,
    end: int | None = None,
) -> Weights:
    """Weights after the steps [begin, end) of the schedule; those passed in are left alone."""
    leaves = {name: w.detach().clone().requires_grad_() for name, w in weights.items()}
    masks, penalty = masks or {}, penalty or Penalty()
    strengths = {name: penalty.on(leaves[name]) for name in penalised}
    with torch.no_grad():
        for name, mask in masks.items():
            leaves[name].mul_(mask)
    moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in leaves.items()}
    end = schedule.steps if end is None else end
    for step in range(begin, end):
        gradients = torch.autograd.grad(loss(leaves, batches()).sum(), list(leaves.values()))
        lr, count = schedule.rate(step), step - begin + 1
        with torch.no_grad():
            for (name, weight), gradient in zip(leaves.items(), gradients, strict=True):
                strength = strengths.get(name)
                if strength is not None:
                    gradient = before_step(penalty.kind, strength, weight, gradient, lr)
                rate = _step(schedule, weight, gradient, moments[name], lr, count)
                if strength is not None:
                    after_step(penalty.kind, strength, penalty.beta, weight, rate)
                if name in masks:
                    weight.mul_(masks[name])
    return {name: w.detach() for name, w in leaves.items()}


def _step(
    schedule: Schedule, weight: Tensor, gradient: Tensor, moments: tuple[Tensor, Tensor], lr: float, count: int
) -> Tensor | float:
    """Updates the weight in place; returns the step size of its entries, by which a proximal step must threshold."""
    first, second = moments
    if schedule.rule == "sgd":
        first.mul_(schedule.momentum).add_(gradient)
        weight.sub_(first, alpha=lr)
        return lr / (1 - schedule.momentum)  # what a steady gradient moves a weight by, momentum included
    first.lerp_(gradient, 1 - _BETAS[0])
    second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
    rate = (second / (1 - _BETAS[1] ** count)).sqrt_().add_(_EPSILON).reciprocal_().mul_(lr)
    weight.addcmul_(first, rate, value=-1 / (1 - _BETAS[0] ** count))
    return rate


def whole(x: Tensor, y: Tensor) -> Batches:
    """All examples in every step."""
    return lambda: (x, y)


def drawn(x: Tensor, y: Tensor, size: int, generator: torch.Generator) -> Batches:
    """`size` examples of (member, example, …) drawn afresh in every step, other ones for every member."""
    members, examples = x.shape[:2]
    rows = torch.arange(members, device=x.device).unsqueeze(1)

    def batch() -> tuple[Tensor, ...]:
        picks = torch.randint(examples, (members, size), generator=generator, device=x.device)
        return x[rows, picks], y[rows, picks]

    return batch
