"""What gradient descent makes of a sawtooth: networks that could have every piece, and the pieces they end up with.

All seeds are trained side by side as one batch of matrices; Adam works entry by entry, so each is as if alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from theodolite.device import resolve_device
from theodolite.training.loop import train
from theodolite.training.optimiser import ADAM, Rates
from theodolite.training.schedules import cosine
from theodolite.training.step import Weights
from theodolite.witness.pieces import Affine, broken_line_of

_GRID = 4096


def measure_sawtooth_training(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: folds, widths (of the hidden layers), seeds, steps, batch, rate."""
    device = resolve_device(device)
    generator = torch.Generator(device).manual_seed(seed)

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        return (_run(weights, batch[0]) - _tent(batch[0], config["folds"])).square().mean(dim=(1, 2))

    def draw(count: int) -> tuple[Tensor]:
        return (torch.rand((count, config["seeds"], config["batch"], 1), generator=generator, device=device),)

    weights = train(
        _start(config["widths"], config["seeds"], generator),
        loss,
        draw,
        steps=config["steps"],
        rule=ADAM,
        rates=Rates(config["rate"]),
        schedule=cosine(config["steps"]),
    )
    grid = ((torch.arange(_GRID, device=device) + 0.5) / _GRID).expand(config["seeds"], -1).unsqueeze(-1)
    explained = 1 - loss(weights, (grid,)) / _tent(grid, config["folds"]).var(dim=(1, 2), correction=0)
    return {
        "explained": explained.tolist(),
        "pieces": [broken_line_of(_exact(weights, member)).pieces for member in range(config["seeds"])],
        "parameters": sum(part[0].numel() for part in weights.values()),
    }


def _start(widths: Sequence[int], seeds: int, generator: torch.Generator) -> Weights:
    """Weights and biases uniform in ±1/√inputs, as `torch.nn.Linear` starts."""
    weights = {}
    for number, (inputs, outputs) in enumerate(pairwise((1, *widths, 1))):
        bound = 1 / math.sqrt(inputs)
        for name, shape in (("weight", (seeds, inputs, outputs)), ("bias", (seeds, 1, outputs))):
            empty = torch.empty(shape, device=generator.device)
            weights[f"{number}.{name}"] = empty.uniform_(-bound, bound, generator=generator)
    return weights


def _run(weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    for number in range(len(weights) // 2):
        x = torch.baddbmm(weights[f"{number}.bias"], torch.relu(x) if number else x, weights[f"{number}.weight"])
    return x


def _tent(points: Tensor, folds: int) -> Tensor:
    return 1.0 - ((points * 2.0**folds).remainder(2.0) - 1.0).abs()


def _exact(weights: Weights, member: int) -> list[Affine]:
    exact = []
    for number in range(len(weights) // 2):
        rows = [[Fraction(w) for w in row] for row in weights[f"{number}.weight"][member].T.tolist()]
        exact.append((rows, [Fraction(b) for b in weights[f"{number}.bias"][member, 0].tolist()]))
    return exact
