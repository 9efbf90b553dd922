"""Training with a penalty and with masks: a masked weight is 0 and stays 0. The rate falls along half a cosine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.claims.sparsity.penalties import Penalty, after_step, before_step
from theodolite.errors import BadInput
from theodolite.training.loop import train
from theodolite.training.optimiser import ADAM, Rates, Rule
from theodolite.training.schedules import cosine
from theodolite.training.step import Loss, StepSize, Weights

Masks = Mapping[str, Tensor]  # as the weights they belong to; True where a weight lives


@dataclass(frozen=True)
class Plan:
    """How long and how fast; the steps of a training may be taken in parts."""

    steps: int
    lr: float
    rule: Rule = ADAM

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.lr > 0:
            raise BadInput(f"training needs a positive number of steps and rate, not {self.steps} and {self.lr}")


@dataclass(frozen=True)
class Examples:
    """Of (member, example, …): all of them in every step, or a `batch` drawn afresh, others for every member."""

    x: Tensor
    y: Tensor
    batch: int | None = None
    generator: torch.Generator | None = None

    def draw(self, count: int) -> tuple[Tensor, ...]:
        members, examples = self.x.shape[:2]
        if self.batch is None:
            return ()
        shape = (count, members, self.batch)
        return (torch.randint(examples, shape, generator=self.generator, device=self.x.device),)

    def read(self, drawn: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        if not drawn:
            return self.x, self.y
        rows = torch.arange(len(self.x), device=self.x.device).unsqueeze(1)
        return self.x[rows, drawn[0]], self.y[rows, drawn[0]]


def train_sparsely(
    weights: Weights,
    loss: Loss,
    examples: Examples,
    plan: Plan,
    penalty: Penalty | None = None,
    penalised: Collection[str] | Mapping[str, Tensor] = (),
    masks: Masks | None = None,
    begin: int = 0,
    end: int | None = None,
) -> Weights:
    """Weights after the steps [begin, end) of the plan; those passed in are left alone. `penalised` are names of
    weights, or by name which entries of them (1 or 0)."""
    masks, penalty = masks or {}, penalty or Penalty()
    entries = penalised if isinstance(penalised, Mapping) else dict.fromkeys(penalised, 1.0)
    strengths = {name: penalty.on(weights[name]) * own for name, own in entries.items()}
    falling = cosine(plan.steps)

    def before(own: Weights, gradients: list[Tensor], lr: float | Tensor) -> list[Tensor]:
        return [
            before_step(penalty.kind, strengths[name], own[name], gradient, lr) if name in strengths else gradient
            for name, gradient in zip(own, gradients, strict=True)
        ]

    def after(own: Weights, size: StepSize) -> None:
        for name, strength in strengths.items():
            after_step(penalty.kind, strength, penalty.beta, own[name], lambda name=name: size(name))
        for name, mask in masks.items():
            own[name].mul_(mask)

    return train(
        {name: w * masks[name] if name in masks else w for name, w in weights.items()},
        lambda own, drawn: loss(own, examples.read(drawn)),
        examples.draw,
        steps=(plan.steps if end is None else end) - begin,
        rule=plan.rule,
        rates=Rates(plan.lr),
        schedule=lambda step: falling(begin + step),
        before=before,
        after=after,
    )
