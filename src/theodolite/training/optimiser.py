"""AdamW and SGD over stacked members, each with a learning rate and weight decay of its own.

Members with equal rates stand next to each other, so one fused kernel updates each run of them, in one pass over
memory. The arithmetic is that of `torch.optim.AdamW` and `torch.optim.SGD`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

import torch
from torch import Tensor

from theodolite.errors import BadInput

Name = Literal["adamw", "sgd"]
_MOMENTS = {"adamw": 2, "sgd": 1}


@dataclass(frozen=True)
class Rule:
    """What all members of a group share. `clip` bounds the norm of each member's gradient; None leaves it alone."""

    name: Name = "adamw"
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    momentum: float = 0.9
    clip: float | None = 1.0

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            raise BadInput(f"there is no optimiser '{self.name}': use {' or '.join(get_args(Name))}")
        if self.clip is not None and not self.clip > 0:
            raise BadInput(f"gradients cannot be clipped to a norm of {self.clip}: give a positive number")
        if not 0 <= self.momentum < 1:
            raise BadInput(f"momentum must lie in 0 ≤ momentum < 1, not {self.momentum}")


@dataclass(frozen=True)
class Rates:
    """Of one member."""

    lr: float
    weight_decay: float

    def __post_init__(self) -> None:
        if not 0 < self.lr < float("inf"):
            raise BadInput(f"the learning rate must be a positive number, not {self.lr}")
        if not 0 <= self.weight_decay < float("inf"):
            raise BadInput(f"weight decay must be 0 or more, not {self.weight_decay}")


class Optimiser:
    """Moments for stacked parameters, and their in-place update over a range of members."""

    def __init__(self, rule: Rule, rates: Sequence[Rates], parameters: Mapping[str, Tensor]) -> None:
        self.rule = rule
        self.rates = list(rates)
        self.parameters = dict(parameters)
        if rule.name == "sgd" and not rule.momentum:
            self.moments: list[dict[str, Tensor]] = []
        else:
            self.moments = [{n: torch.zeros_like(p) for n, p in parameters.items()} for _ in range(_MOMENTS[rule.name])]

    def update(self, start: int, stop: int, gradients: Sequence[Tensor], step: Tensor) -> None:
        """One step for members [start, stop). `step` counts from 1; its tensor lies on the parameters' device."""
        if self.rule.clip is not None:
            gradients = clipped(gradients, self.rule.clip)
        gradients = [in_order(g, p[start:stop]) for g, p in zip(gradients, self.parameters.values(), strict=True)]
        for first, last in self._runs(start, stop):
            rates = self.rates[first]
            parameters = [straight(p.detach()[first:last]) for p in self.parameters.values()]
            own = [straight(g[first - start : last - start]) for g in gradients]
            moments = [[straight(m[first:last]) for m in kind.values()] for kind in self.moments]
            if self.rule.name == "adamw":
                torch._fused_adamw_(  # pyright: ignore[reportPrivateImportUsage]
                    parameters,
                    own,
                    moments[0],
                    moments[1],
                    [],
                    [step] * len(parameters),
                    lr=rates.lr,
                    beta1=self.rule.betas[0],
                    beta2=self.rule.betas[1],
                    weight_decay=rates.weight_decay,
                    eps=self.rule.epsilon,
                    amsgrad=False,
                    maximize=False,
                )
            else:
                torch._fused_sgd_(  # pyright: ignore[reportPrivateImportUsage]
                    parameters,
                    own,
                    moments[0] if moments else [],
                    weight_decay=rates.weight_decay,
                    momentum=self.rule.momentum,
                    lr=rates.lr,
                    dampening=0.0,
                    nesterov=False,
                    maximize=False,
                    is_first_step=False,  # moments start at 0, and with no dampening that is the same
                )

    def keep(self, members: Tensor, parameters: Mapping[str, Tensor]) -> None:
        """Only these members go on, with these parameters of theirs."""
        self.rates = [self.rates[i] for i in members.tolist()]
        self.parameters = dict(parameters)
        self.moments = [{n: in_order(m[members], parameters[n]) for n, m in kind.items()} for kind in self.moments]

    def _runs(self, start: int, stop: int) -> list[tuple[int, int]]:
        runs = []
        for _, run in groupby(range(start, stop), key=lambda i: self.rates[i]):
            members = list(run)
            runs.append((members[0], members[-1] + 1))
        return runs


def in_order(values: Tensor, like: Tensor) -> Tensor:
    """The same values in the other's order of memory: the fused kernels read that, whatever the strides say."""
    return values if values.stride() == like.stride() else torch.empty_like(like).copy_(values)


def straight(values: Tensor) -> Tensor:
    """A view in the order of memory, without which the kernels would copy."""
    return values if values.is_contiguous() else values.mT


def clipped(gradients: Sequence[Tensor], norm: float) -> list[Tensor]:
    """Each member's gradient scaled to at most `norm`, as `torch.nn.utils.clip_grad_norm_` scales one net's."""
    squares = torch.stack([g.reshape(len(g), -1).square().sum(dim=1) for g in gradients])
    scale = (norm / (squares.sum(dim=0).sqrt() + 1e-6)).clamp(max=1.0)
    return [g * scale.view(-1, *[1] * (g.dim() - 1)) for g in gradients]
