"""Kolmogorov's superposition as a network: sums and functions of one variable alone, and how rough those become.

A `GraphNet` of the graph Σ_q g_q(Σ_p h_qp(x_p)) and one of a single general node learn a function of two variables that
is no such sum by itself: a random trigonometric series over all frequencies of the plane, smooth or rough. What is
learnt by every g and h is read off on the range where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.graphs.families import kolmogorov_arnold
from theodolite.graphs.graph import CompositionalGraph
from theodolite.measurement import seed_of
from theodolite.nets.compositional_net import GraphNet, Perceptrons
from theodolite.nets.load import seeded
from theodolite.nets.size import count_parameters

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


def measure_superposition(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: target (smooth, rough), shape (superposition, general), width, depth, seeds, steps, batch, rate. Every
    seed has a function of its own, the same for all shapes and widths."""
    where = resolve_device(device)
    graph = kolmogorov_arnold(2) if config["shape"] == "superposition" else CompositionalGraph.dense(("x1", "x2"))
    functions = [
        Series(config["target"], np.random.default_rng(seed_of([config["target"], n])), where)
        for n in range(config["seeds"])
    ]
    members = []
    for number in range(config["seeds"]):
        with seeded(seed_of([seed, number])):
            members.append(GraphNet(graph, width=config["width"], depth=config["depth"]).to(where))
    weights, buffers = stack_module_state(members)  # pyright: ignore[reportArgumentType]
    weights = {name: value.detach().clone().requires_grad_() for name, value in weights.items()}

    def run(own: dict[str, Tensor], held: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(members[0], (own, held), (x,))[:, 0]

    generator = torch.Generator(where).manual_seed(seed)

    def draw(count: int) -> tuple[Tensor, Tensor]:
        x = 2 * torch.rand(len(members), count, 2, generator=generator, device=where) - 1
        return x, torch.stack([function(own) for function, own in zip(functions, x, strict=True)])

    optimiser = torch.optim.Adam(list(weights.values()), lr=config["rate"])
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config["steps"])
    for _ in range(config["steps"]):
        x, y = draw(config["batch"])
        loss = (vmap(run)(weights, buffers, x) - y).square().mean(dim=1).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        fall.step()
    x, y = draw(4000)
    with torch.no_grad():
        unexplained = (vmap(run)(weights, buffers, x) - y).square().mean(dim=1) / y.var(dim=1)
        for number, member in enumerate(members):
            for name, value in member.named_parameters():
                value.copy_(weights[name][number])
        rough = [univariate_roughness(member, own) for member, own in zip(members, x, strict=True)]
    return {
        "members": [
            {"unexplained": float(error), "inner": inner, "outer": outer}
            for error, (inner, outer) in zip(unexplained, rough, strict=True)
        ],
        "parameters": count_parameters(members[0]),
    }


def univariate_roughness(net: GraphNet, x: Float[Tensor, "batch feature"]) -> tuple[float | None, float | None]:
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
