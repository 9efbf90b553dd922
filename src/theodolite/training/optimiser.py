"""Adam and SGD over stacked members, each with a learning rate and weight decay of its own.

Members with equal rates stand next to each other, so one fused kernel updates each run of them, in one pass over
memory. Where there are many runs, or the rule is not the kernel's, the same arithmetic is done tensor by tensor. Where
kernels of our own run, one moves all members by Adam. It is the arithmetic of `torch.optim.AdamW` and `SGD`; the first
of those to be made imports torch's compiler, which takes seconds.
"""

# pyright: reportPrivateImportUsage=false
# `torch._fused_…` and `torch._foreach_…` are what `torch.optim` is built on; they have no public name.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.kernels.update import Adam, AdamUpdate

Name = Literal["adamw", "sgd"]
_MOMENTS = {"adamw": 2, "sgd": 1}
_RUNS = {"cpu": 4, "cuda": 32}  # so many fused calls take no longer than plain arithmetic
_WORTH = 4000  # entries of a tensor in a run: more calls than that are worth it, which pass over memory once


@dataclass(frozen=True)
class Rule:
    """What all members of a group share. `clip` bounds the norm of each member's gradient; None leaves it alone.

    With `early_epsilon` Adam adds ε to √v before the bias correction, θ ← θ − lr·√(1−β₂ᵗ)/(1−β₁ᵗ) · m/(√v + ε), as
    TensorFlow's does: a large ε weighs more in the first steps than in torch's form.
    """

    name: Name = "adamw"
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    momentum: float = 0.9
    clip: float | None = 1.0
    early_epsilon: bool = False

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            raise BadInput(f"there is no optimiser '{self.name}': use {' or '.join(get_args(Name))}")
        if self.clip is not None and not self.clip > 0:
            raise BadInput(f"gradients cannot be clipped to a norm of {self.clip}: give a positive number")
        if not 0 <= self.momentum < 1:
            raise BadInput(f"momentum must lie in 0 ≤ momentum < 1, not {self.momentum}")

    def to_json(self) -> dict[str, Any]:
        """As stores have it in the configuration of a cell: torch's form of Adam is not named."""
        row = {**asdict(self), "betas": list(self.betas)}
        return row if self.early_epsilon else {k: v for k, v in row.items() if k != "early_epsilon"}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Rule:
        return cls(**{**row, "betas": tuple(row["betas"])})


ADAM = Rule(clip=None)


@dataclass(frozen=True)
class Rates:
    """Of one member."""

    lr: float
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.lr < float("inf"):
            raise BadInput(f"the learning rate must be a positive number, not {self.lr}")
        if not 0 <= self.weight_decay < float("inf"):
            raise BadInput(f"weight decay must be 0 or more, not {self.weight_decay}")


@dataclass(frozen=True)
class Pace:
    """Where training stands: the `number` of the step, from 1, on the parameters' device, the `factor` of the learning
    rates, and the `corrections` of Adam's moments where they are known beforehand. On CUDA these are tensors of no
    dimension, which a captured graph reads anew."""

    number: Tensor
    factor: float | Tensor = 1.0
    corrections: Corrections | None = None


class Corrections(NamedTuple):
    """What Adam's moments, which start at 0, are multiplied by at step t: 1/(1−β₁ᵗ), and 1/√(1−β₂ᵗ) for √v."""

    first: Any
    root: Any

    @staticmethod
    def at(betas: tuple[float, float], number: float) -> Corrections:
        return Corrections(1 / (1 - betas[0] ** number), 1 / math.sqrt(1 - betas[1] ** number))

    @staticmethod
    def on_device(number: Tensor, log_betas: Tensor) -> Corrections:
        """Without a transfer; 1 − βᵗ is exact where βᵗ is near 1."""
        left = -torch.expm1(number * log_betas)
        return Corrections(left[0].reciprocal(), left[1].rsqrt())


class Optimiser:
    """Moments for stacked parameters, and their in-place update over a range of members."""

    def __init__(self, rule: Rule, rates: Sequence[Rates], parameters: Mapping[str, Tensor]) -> None:
        self.rule = rule
        self.parameters = dict(parameters)
        if rule.name == "sgd" and not rule.momentum:
            self.moments: list[dict[str, Tensor]] = []
        else:
            self.moments = [{n: torch.zeros_like(p) for n, p in parameters.items()} for _ in range(_MOMENTS[rule.name])]
        like = next(iter(parameters.values()))
        self.log_betas = torch.tensor(
            [math.log(beta) if beta else -math.inf for beta in rule.betas], dtype=like.dtype, device=like.device
        )
        self._update: AdamUpdate | None = None
        self._take_rates(list(rates))

    def update(self, start: int, stop: int, gradients: list[Tensor], pace: Pace) -> None:
        """One step for members [start, stop)."""
        at_once = self._at_once()
        if at_once is not None:
            lrs = self.lrs if isinstance(pace.factor, float) and pace.factor == 1.0 else self.lrs * pace.factor
            at_once.step(start, gradients, pace.number, lrs, self.decays)
            return
        if self.rule.clip is not None:
            gradients = clipped(gradients, self.rule.clip)
        if self._fuses(start, stop):
            self._move_fused(start, stop, gradients, pace)
        else:
            self._move(start, stop, gradients, pace)

    def lr(self, start: int, stop: int, factor: float | Tensor = 1.0) -> float | Tensor:
        """Of members [start, stop): one number where they share it, or one each."""
        alike = len(self._runs(start, stop)) == 1
        return (self.rates[start].lr if alike else self.lrs[start:stop]) * factor

    def step_size(self, name: str, start: int, stop: int, pace: Pace) -> float | Tensor:
        """By what a unit of (the mean of) the gradient moves each entry of a parameter, after an update: what a
        proximal step has to shrink by. For SGD what a steady gradient moves it by, momentum included."""
        if self.rule.name == "sgd":
            return _beside(self.lr(start, stop, pace.factor), self.parameters[name]) / (1 - self.rule.momentum)
        second = self.moments[1][name][start:stop]
        root = self._corrections(pace).root
        lr = _beside(self.lr(start, stop, pace.factor), second)
        if self.rule.early_epsilon:
            return lr / root / (second.sqrt() + self.rule.epsilon)
        return lr / (second.sqrt() * root + self.rule.epsilon)

    def keep(self, members: Tensor, parameters: Mapping[str, Tensor]) -> None:
        """Only these members go on, with these parameters of theirs."""
        self._update = None
        self._take_rates([self.rates[i] for i in members.tolist()])
        self.parameters = dict(parameters)
        self.moments = [{n: in_order(m[members], parameters[n]) for n, m in kind.items()} for kind in self.moments]

    def _at_once(self) -> AdamUpdate | None:
        """The kernel that clips and moves all members, where it can run."""
        if self.rule.name != "adamw":
            return None
        if self._update is None:
            rule = Adam(self.rule.betas, self.rule.epsilon, self.rule.early_epsilon, self.rule.clip)
            places = (list(values.values()) for values in (self.parameters, *self.moments))
            self._update = AdamUpdate(rule, *places)
        return self._update if self._update.usable() else None

    def _take_rates(self, rates: list[Rates]) -> None:
        self.rates = rates
        like = next(iter(self.parameters.values()))
        self.lrs = torch.tensor([r.lr for r in rates], dtype=like.dtype, device=like.device)
        self.decays = torch.tensor([r.weight_decay for r in rates], dtype=like.dtype, device=like.device)
        self._known_runs: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def _runs(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Of members with equal rates."""
        if (start, stop) not in self._known_runs:
            groups = [list(run) for _, run in groupby(range(start, stop), key=lambda i: self.rates[i])]
            self._known_runs[start, stop] = [(members[0], members[-1] + 1) for members in groups]
        return self._known_runs[start, stop]

    def _fuses(self, start: int, stop: int) -> bool:
        """Whether the kernels know the rule and are the faster way."""
        runs, parameters = len(self._runs(start, stop)), list(self.parameters.values())
        entries = sum(p.numel() for p in parameters) * (stop - start) // len(self.rates)
        worth = entries >= _WORTH * runs * len(parameters)
        return not self.rule.early_epsilon and (worth or runs <= _RUNS.get(parameters[0].device.type, 4))

    def _move_fused(self, start: int, stop: int, gradients: list[Tensor], pace: Pace) -> None:
        gradients = [in_order(g, p[start:stop]) for g, p in zip(gradients, self.parameters.values(), strict=True)]
        lrs = (self.lrs * pace.factor).float() if isinstance(pace.factor, Tensor) else None
        for first, last in self._runs(start, stop):
            rates = self.rates[first]
            lr: Any = rates.lr * pace.factor if lrs is None else lrs[first]
            parameters = [straight(p.detach()[first:last]) for p in self.parameters.values()]
            own = [straight(g[first - start : last - start]) for g in gradients]
            moments = [[straight(m[first:last]) for m in kind.values()] for kind in self.moments]
            if self.rule.name == "adamw":
                torch._fused_adamw_(
                    parameters,
                    own,
                    moments[0],
                    moments[1],
                    [],
                    [pace.number] * len(parameters),
                    lr=lr,
                    beta1=self.rule.betas[0],
                    beta2=self.rule.betas[1],
                    weight_decay=rates.weight_decay,
                    eps=self.rule.epsilon,
                    amsgrad=False,
                    maximize=False,
                )
            else:
                torch._fused_sgd_(
                    parameters,
                    own,
                    moments[0] if moments else [],
                    weight_decay=rates.weight_decay,
                    momentum=self.rule.momentum,
                    lr=lr,
                    dampening=0.0,
                    nesterov=False,
                    maximize=False,
                    is_first_step=False,  # moments start at 0, and with no dampening that is the same
                )

    def _move(self, start: int, stop: int, gradients: list[Tensor], pace: Pace) -> None:
        """What the kernels compute, in a few operations for all members whatever their rates, and early ε."""
        decay = self.decays[start:stop] if any(r.weight_decay for r in self.rates[start:stop]) else None
        moments = [[m[start:stop] for m in kind.values()] for kind in self.moments]
        parameters = [p.detach()[start:stop] for p in self.parameters.values()]
        lr = self.lr(start, stop, pace.factor)
        correct = self._corrections(pace) if self.rule.name == "adamw" else None
        move(self.rule, parameters, gradients, moments, lr, decay, correct)

    def _corrections(self, pace: Pace) -> Corrections:
        if pace.corrections is not None:
            return pace.corrections
        if not pace.number.is_cuda:
            return Corrections.at(self.rule.betas, float(pace.number))
        return Corrections.on_device(pace.number, self.log_betas)


def move(
    rule: Rule,
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    moments: Sequence[Sequence[Tensor]],
    lr: float | Tensor,
    decay: Tensor | None,
    correct: Corrections | None,
) -> None:
    """One update in place, tensor by tensor; `lr` and `decay` are common to the members or one each."""
    gradients = [straight(in_order(g, p)) for g, p in zip(gradients, parameters, strict=True)]
    parameters = [straight(p) for p in parameters]
    moments = [[straight(m) for m in kind] for kind in moments]
    lrs = [_beside(lr, p) for p in parameters]
    decays = None if decay is None else [_beside(decay, p) for p in parameters]
    if rule.name == "sgd":
        moves: Any = gradients
        if decays is not None:
            moves = torch._foreach_add(moves, torch._foreach_mul(parameters, decays))
        if moments:
            torch._foreach_mul_(moments[0], rule.momentum)
            torch._foreach_add_(moments[0], moves)
            moves = moments[0]
        moves = torch._foreach_mul(moves, _common(lrs))
    else:
        assert correct is not None
        if decays is not None:
            torch._foreach_mul_(parameters, [1 - lr * decay for lr, decay in zip(lrs, decays, strict=True)])
        (first, second), (beta1, beta2) = moments, rule.betas
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        below = torch._foreach_sqrt(second)
        if rule.early_epsilon:
            scale = correct.first / correct.root
        else:
            torch._foreach_mul_(below, correct.root)
            scale = correct.first
        torch._foreach_add_(below, rule.epsilon)
        moves = torch._foreach_div(first, below)
        torch._foreach_mul_(moves, _common([lr * scale for lr in lrs]))
    torch._foreach_sub_(parameters, moves)


def _beside(values: float | Tensor, like: Tensor) -> Any:
    """One number for each member, shaped to multiply stacked entries."""
    if not isinstance(values, Tensor) or values.dim() == 0:
        return values
    return values.view(-1, *[1] * (like.dim() - 1))


def _common(factors: list[Any]) -> Any:
    """The factor of all parameters where it does not depend on the member."""
    return factors if isinstance(factors[0], Tensor) and factors[0].dim() else factors[0]


def in_order(values: Tensor, like: Tensor) -> Tensor:
    """The same values in the other's order of memory: the fused kernels read that, whatever the strides say."""
    return values if values.stride() == like.stride() else torch.empty_like(like).copy_(values)


def straight(values: Tensor) -> Tensor:
    """A view in the order of memory, without which the kernels would copy."""
    return values if values.is_contiguous() else values.mT


def clipped(gradients: Sequence[Tensor], norm: float) -> list[Tensor]:
    """Each member's gradient scaled to at most `norm`, as `torch.nn.utils.clip_grad_norm_` scales one net's."""
    norms = [torch.linalg.vector_norm(g.reshape(len(g), -1), dim=1) for g in gradients]
    length = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms), dim=0)
    scale = (norm / (length + 1e-6)).clamp(max=1.0)
    return [g * scale.view(-1, *[1] * (g.dim() - 1)) for g in gradients]
