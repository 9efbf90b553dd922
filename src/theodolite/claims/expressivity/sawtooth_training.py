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
from theodolite.witness.pieces import Affine, broken_line_of

_GRID = 4096


def measure_sawtooth_training(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: folds, widths (of the hidden layers), seeds, steps, batch, rate."""
    where = resolve_device(device)
    generator = torch.Generator(where).manual_seed(seed)
    layers = _start(config["widths"], config["seeds"], generator)
    parameters = [part for layer in layers for part in layer]
    optimiser = torch.optim.Adam(parameters, lr=config["rate"])
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config["steps"])
    for _ in range(config["steps"]):
        points = torch.rand((config["seeds"], config["batch"], 1), generator=generator, device=where)
        loss = (_run(layers, points) - _tent(points, config["folds"])).square().mean(dim=(1, 2)).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        fall.step()
    with torch.no_grad():
        grid = ((torch.arange(_GRID, device=where) + 0.5) / _GRID).expand(config["seeds"], -1).unsqueeze(-1)
        truth = _tent(grid, config["folds"])
        error = (_run(layers, grid) - truth).square().mean(dim=(1, 2))
        explained = 1 - error / truth.var(dim=(1, 2), correction=0)
    return {
        "explained": [float(share) for share in explained],
        "pieces": [broken_line_of(_exact(layers, member)).pieces for member in range(config["seeds"])],
        "parameters": sum(part[0].numel() for part in parameters),
    }


def _start(widths: Sequence[int], seeds: int, generator: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    """Weights and biases uniform in ±1/√inputs, as `torch.nn.Linear` starts."""
    layers = []
    for inputs, outputs in pairwise((1, *widths, 1)):
        bound = 1 / math.sqrt(inputs)
        weight, bias = (
            torch.empty(shape, device=generator.device).uniform_(-bound, bound, generator=generator).requires_grad_()
            for shape in ((seeds, inputs, outputs), (seeds, 1, outputs))
        )
        layers.append((weight, bias))
    return layers


def _run(layers: Sequence[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
    for number, (weight, bias) in enumerate(layers):
        x = torch.baddbmm(bias, torch.relu(x) if number else x, weight)
    return x


def _tent(points: Tensor, folds: int) -> Tensor:
    return 1.0 - ((points * 2.0**folds).remainder(2.0) - 1.0).abs()


def _exact(layers: Sequence[tuple[Tensor, Tensor]], member: int) -> list[Affine]:
    exact = []
    for weight, bias in layers:
        rows = [[Fraction(w) for w in row] for row in weight[member].detach().T.tolist()]
        exact.append((rows, [Fraction(b) for b in bias[member, 0].detach().tolist()]))
    return exact
