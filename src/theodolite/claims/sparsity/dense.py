"""Dense ReLU networks, all members stacked: weights of (member, input, output)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.training.step import Weights


def start(sizes: Sequence[int], members: int, generator: torch.Generator) -> Weights:
    """He's normal weights, which keep the scale of ReLU layers; biases 0. `sizes` from inputs to outputs."""
    weights: Weights = {}
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        normal = torch.randn((members, inputs, outputs), generator=generator, device=generator.device)
        weights[f"{number}.weight"] = normal * math.sqrt(2 / inputs)
        weights[f"{number}.bias"] = torch.zeros(members, 1, outputs, device=generator.device)
    return weights


def run(
    weights: Mapping[str, Tensor], x: Float[Tensor, "member example input"]
) -> Float[Tensor, "member example output"]:
    depth = len(weights) // 2
    for number in range(depth):
        x = torch.baddbmm(weights[f"{number}.bias"], x, weights[f"{number}.weight"])
        x = torch.relu(x) if number < depth - 1 else x
    return x


def matrices(weights: Mapping[str, Tensor]) -> frozenset[str]:
    """The names of the weights that penalties and pruning act on: all but the biases."""
    return frozenset(name for name in weights if name.endswith("weight"))


def cross_entropy(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
    """One per member; labels are classes."""
    x, labels = batch
    scores = run(weights, x).log_softmax(-1)
    return -scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1).mean(-1)


def square_error(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
    """The mean over examples, one per member; the net has one output."""
    x, y = batch
    return (run(weights, x).squeeze(-1) - y).square().mean(-1)


@torch.no_grad()
def accuracy(weights: Mapping[str, Tensor], x: Tensor, labels: Tensor) -> list[float]:
    return (run(weights, x).argmax(-1) == labels).float().mean(-1).tolist()


@torch.no_grad()
def relative_error(weights: Mapping[str, Tensor], x: Tensor, y: Tensor) -> list[float]:
    """Mean square error over the variance of the target: 1 for the best constant."""
    return (square_error(weights, (x, y)) / y.var(-1, correction=0)).tolist()
