"""What training reaches of the rates of approximation: networks of a tree's graph and dense ones, ever wider.

The functions are those of `approximation`, so that the slopes stand beside the best approximants'. What descent leaves
of the error is not an approximation error: nothing is decided by these slopes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.claims.sparsity.approximation_rate import Composed, slope, tree
from theodolite.device import resolve_device
from theodolite.graphs.graph import CompositionalGraph
from theodolite.measurement import seed_of
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.nets.load import seeded
from theodolite.nets.size import count_parameters
from theodolite.training.loop import train
from theodolite.training.optimiser import ADAM, Rates
from theodolite.training.schedules import cosine
from theodolite.training.stacked import stack

_POOL, _TEST = 20_000, 4_000


def measure_trained_approximation(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: variables, smoothness, shape (graph, dense), widths, seeds, steps, batch, rate. Every seed has a function
    of its own, the same for both shapes and all widths."""
    device = resolve_device(device)
    truth = tree(config["variables"])
    graph = truth if config["shape"] == "graph" else CompositionalGraph.dense(truth.variables)
    x, y = _data(truth, config["smoothness"], config["seeds"], device)
    parameters, errors = [], []
    for width in config["widths"]:
        members = []
        for number in range(config["seeds"]):
            with seeded(seed_of([seed, width, number])):
                members.append(CompositionalNet(graph, width=width).to(device))
        generator = torch.Generator(device).manual_seed(seed_of([seed, width]))
        parameters.append(count_parameters(members[0]))
        errors.append(_trained(members, x, y, config["steps"], config["batch"], config["rate"], generator))
    curves = np.array(errors).T.tolist()
    return {"parameters": parameters, "errors": curves, "slopes": [slope(parameters, curve) for curve in curves]}


def _data(graph: CompositionalGraph, smoothness: float, seeds: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Inputs and values, both of mean 0 and variance 1."""
    inputs, values = [], []
    for number in range(seeds):
        random = np.random.default_rng(seed_of(["trained-approximation", number]))
        function = Composed(graph, smoothness, random)
        x = random.random((_POOL + _TEST, len(graph.variables)))
        y = function(x)
        inputs.append((x - 0.5) * math.sqrt(12))
        values.append((y - y.mean()) / y.std())
    return tuple(torch.tensor(np.stack(part), dtype=torch.float32, device=device) for part in (inputs, values))  # pyright: ignore[reportReturnType]


def _trained(
    members: list[CompositionalNet],
    x: Tensor,
    y: Tensor,
    steps: int,
    batch: int,
    rate: float,
    generator: torch.Generator,
) -> list[float]:
    """Relative error of every member on points it was not trained on."""
    net, start = stack(members, x.device)

    def square_error(weights: Mapping[str, Tensor], points: Tensor, values: Tensor) -> Tensor:
        return (net.values(weights["parameters"], points) - values).square().mean(dim=1)

    weights = train(
        {"parameters": start},
        lambda own, chosen: square_error(own, x[:, chosen[0]], y[:, chosen[0]]),
        lambda count: (torch.randint(_POOL, (count, batch), generator=generator, device=x.device),),
        steps=steps,
        rule=ADAM,
        rates=Rates(rate),
        schedule=cosine(steps),
    )
    with torch.no_grad():
        return square_error(weights, x[:, _POOL:], y[:, _POOL:]).sqrt().tolist()
