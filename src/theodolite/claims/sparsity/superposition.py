"""Kolmogorov's superposition as a network: sums and functions of one variable alone, and how rough those become.

A `CompositionalNet` of the graph Σ_q g_q(Σ_p h_qp(x_p)) and one of a single general node learn a function of two
variables that is no such sum by itself: a random trigonometric series over all frequencies of the plane, smooth or
rough. What is learnt by every g and h is read off on the range where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils import vector_to_parameters

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.graphs.families import kolmogorov_arnold
from theodolite.graphs.graph import CompositionalGraph
from theodolite.measurement import seed_of
from theodolite.nets.compositional_net import CompositionalNet, Perceptrons
from theodolite.nets.load import seeded
from theodolite.nets.size import count_parameters
from theodolite.training.loop import train
from theodolite.training.optimiser import ADAM, Rates
from theodolite.training.schedules import cosine
from theodolite.training.stacked import stack

HIGHEST = {"smooth": 1, "rough": 8}  # frequency along an axis
SMOOTHNESS = 1.0  # amplitudes fall as |k|^−(m+1), in the plane the border of m derivatives
_GRID = 401


class Series:
    """Σ_k |k|^−(m+1) cos(π k·x + φ_k) over all whole k up to the highest, scaled to variance 1 on [−1, 1]²; the period
    is [−1, 1] in each variable."""

    def __init__(self, target: str, random: np.random.Generator, device: torch.device) -> None:
        if target not in HIGHEST:
            raise BadInput(f"the target '{target}' is unknown: use {' or '.join(HIGHEST)}")
        top = HIGHEST[target]
        pairs = [(a, b) for a in range(-top, top + 1) for b in range(-top, top + 1) if a > 0 or (a == 0 and b > 0)]
        frequency = np.array(pairs, dtype=float)
        size = np.linalg.norm(frequency, axis=1) ** -(SMOOTHNESS + 1)
        self.frequency = torch.tensor(frequency.T * np.pi, dtype=torch.float32, device=device)
        self.phase = torch.tensor(random.uniform(0, 2 * np.pi, len(pairs)), dtype=torch.float32, device=device)
        self.size = torch.tensor(size / np.sqrt((size**2).sum() / 2), dtype=torch.float32, device=device)

    def __call__(self, x: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
        return torch.cos(x @ self.frequency + self.phase) @ self.size


def measure_superposition(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: target (smooth, rough), shape (superposition, general), width, depth, seeds, steps, batch, rate. Every
    seed has a function of its own, the same for all shapes and widths."""
    device = resolve_device(device)
    graph = kolmogorov_arnold(2) if config["shape"] == "superposition" else CompositionalGraph.dense(("x1", "x2"))
    functions = [
        Series(config["target"], np.random.default_rng(seed_of([config["target"], n])), device)
        for n in range(config["seeds"])
    ]
    members = []
    for number in range(config["seeds"]):
        with seeded(seed_of([seed, number])):
            members.append(CompositionalNet(graph, width=config["width"], depth=config["depth"]).to(device))
    net, start = stack(members, device)
    generator = torch.Generator(device).manual_seed(seed)

    def draw(count: int, points: int = config["batch"]) -> tuple[Tensor, Tensor]:
        x = 2 * torch.rand(count, len(members), points, 2, generator=generator, device=device) - 1
        return x, torch.stack([function(own) for function, own in zip(functions, x.unbind(1), strict=True)], dim=1)

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        return (net.values(weights["parameters"], batch[0]) - batch[1]).square().mean(dim=1)

    weights = train(
        {"parameters": start},
        loss,
        draw,
        steps=config["steps"],
        rule=ADAM,
        rates=Rates(config["rate"]),
        schedule=cosine(config["steps"]),
        block=16,
    )
    x, y = (part[0] for part in draw(1, 4000))
    with torch.no_grad():
        unexplained = loss(weights, (x, y)) / y.var(dim=1)
        for member, own in zip(members, weights["parameters"], strict=True):
            vector_to_parameters(own, member.parameters())
        rough = [univariate_roughness(member, own) for member, own in zip(members, x, strict=True)]
    return {
        "members": [
            {"unexplained": float(error), "inner": inner, "outer": outer}
            for error, (inner, outer) in zip(unexplained, rough, strict=True)
        ],
        "parameters": count_parameters(members[0]),
    }


def univariate_roughness(net: CompositionalNet, x: Float[Tensor, "batch feature"]) -> tuple[float | None, float | None]:
    """The median roughness over the first functions of one variable, h, and over the last, g; None where there are "
    "none."""
    found = [x.mT]
    rough: list[float] = []
    for stage in net.stages:
        for block, read in zip(stage.blocks, stage.reads, strict=True):  # pyright: ignore[reportArgumentType, reportCallIssue]
            if isinstance(block, Perceptrons):
                entering = read(found)
                if entering.shape[1] == 1:
                    rough.append(_median_roughness(block, entering))
        found.append(stage(found))
    return (rough[0], rough[-1]) if rough else (None, None)


def _median_roughness(block: Perceptrons, entering: Float[Tensor, "node 1 batch"]) -> float:
    low, high = entering.quantile(0.01, dim=-1, keepdim=True), entering.quantile(0.99, dim=-1, keepdim=True)
    t = torch.linspace(0, 1, _GRID, device=entering.device)
    return float(roughness(block(low + (high - low) * t)[:, 0].detach()).median())


def roughness(values: Float[Tensor, "curve point"]) -> Float[Tensor, " curve"]:
    """The total variation of the slope of a function on an even grid over [0, 1], scaled to deviation 1: 0 for a
    straight line, 8√2·πk² for k waves of a cosine."""
    scaled = values.double() / values.double().std(dim=1, keepdim=True)
    return scaled.diff(n=2, dim=1).abs().sum(dim=1) * (values.shape[1] - 1)
