"""Penalties on weights, as a step of descent applies them: ℓ₂ twice, ℓ₁ with exact zeros, and β-lasso.

With the step size η of an entry (Adam: η/(√v̂ + ε), so that the minimiser is that of the penalised loss) and strength λ:

- `l2`: λ·w is added to the gradient. `decay`: w shrinks by the factor 1 − ηλ, whatever the gradient's scale (AdamW).
- `l1`: after the step w ← sign(w)·max(|w| − ηλ, 0), the proximal step of λ·Σ|w|; a weight that no longer pays is 0.
- `beta-lasso`: λ·sign(w) is added to the gradient, and after the step every |w| < βλ is set to 0 (Neyshabur 2020,
  Algorithm 1, where the threshold does not depend on the step size).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from theodolite.errors import BadInput

Kind = Literal["none", "l2", "decay", "l1", "beta-lasso"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Penalty:
    """`strength` is λ: one number, or one per member. `beta` is the threshold of β-lasso over λ."""

    kind: Kind = "none"
    strength: float | tuple[float, ...] = 0.0
    beta: float = 50.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"there is no penalty '{self.kind}': use {', '.join(KINDS)}")
        for value in self.strengths:
            if not 0 <= value < float("inf"):
                raise BadInput(f"the strength of a penalty must be 0 or more, not {value}")
        if not self.beta >= 0:
            raise BadInput(f"the threshold β of β-lasso must be 0 or more, not {self.beta}")

    @property
    def strengths(self) -> tuple[float, ...]:
        return self.strength if isinstance(self.strength, tuple) else (self.strength,)

    def on(self, weight: Tensor) -> Tensor:
        """λ, shaped to multiply stacked weights of (member, …)."""
        strength = torch.tensor(self.strengths, device=weight.device, dtype=weight.dtype)
        return strength.view(-1, *[1] * (weight.dim() - 1))


def before_step(kind: Kind, strength: Tensor, weight: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
    """The gradient with what the penalty adds to it; decay shrinks the weights in place instead."""
    if kind == "l2":
        return gradient + strength * weight
    if kind == "beta-lasso":
        return gradient + strength * weight.sign()
    if kind == "decay":
        weight.mul_(1 - lr * strength)
    return gradient


def after_step(kind: Kind, strength: Tensor, beta: float, weight: Tensor, size: Callable[[], Tensor | float]) -> None:
    """What the penalty does to the weights after a step, in place. `size` is the step's, entry by entry."""
    if kind == "l1":
        weight.copy_(soft_threshold(weight, size() * strength))
    elif kind == "beta-lasso":
        weight.mul_(weight.abs() >= beta * strength)


def soft_threshold(weight: Tensor, threshold: Tensor) -> Tensor:
    return weight.sign() * (weight.abs() - threshold).clamp_(min=0)
