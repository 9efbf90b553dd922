"""The paper's layers, losses and Adam, for several seeds of one small network stacked into one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from theodolite.training.optimiser import Rule
from theodolite.training.step import Weights

# That of the TensorFlow the paper used; in three experiments with a large ε, which weighs more there.
ADAM = Rule(clip=None, early_epsilon=True)
ADAM_WITH_LARGE_EPSILON = Rule(betas=(0.9, 0.99), epsilon=1e-5, clip=None, early_epsilon=True)


def truncated_normal(shape: Sequence[int], fan_in: int, generator: torch.Generator) -> Tensor:
    """Normal with deviation 1/√fan_in, redrawn beyond two deviations."""
    deviation = fan_in**-0.5
    empty = torch.empty(tuple(shape), device=generator.device)
    return nn.init.trunc_normal_(empty, 0.0, deviation, -2 * deviation, 2 * deviation, generator=generator)


def affine(name: str, members: int, inputs: int, outputs: int, generator: torch.Generator) -> Weights:
    """The weights of one fully connected layer per member, biases zero."""
    return {
        f"{name}.weight": truncated_normal((members, inputs, outputs), inputs, generator),
        f"{name}.bias": torch.zeros(members, 1, outputs, device=generator.device),
    }


def apply(weights: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """(member, example, input) → (member, example, output)."""
    return torch.baddbmm(weights[f"{name}.bias"], x, weights[f"{name}.weight"])


def hinge(scores: Tensor, signs: Tensor) -> Tensor:
    """max(0, 1 − y·score) averaged over all but the first dimension, the members."""
    return (1 - signs * scores).relu().flatten(1).mean(1)


def correct(scores: Tensor, signs: Tensor) -> Tensor:
    """The share of examples with the right sign, per member."""
    return (signs * scores > 0).flatten(1).float().mean(1)
