"""What the table of inductive biases says beyond symmetries of tokens: graphs, distributed features, depth (G13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linprog
from torch import Tensor, nn

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.nets.load import seeded
from theodolite.theory.distributed import composed_pieces, distributed_patterns, one_hot_patterns, one_layer_pieces


def graph_equivariance(
    nodes: int = 9, width: int = 6, depth: int = 3, draws: int = 3, seed: int = 0, device: str | torch.device = "cpu"
) -> dict[str, float]:
    """Relative errors of message passing when nodes are renumbered: with their edges, and as a control without."""
    device = resolve_device(device)
    errors: dict[str, list[float]] = {"nodes_and_edges": [], "nodes_only": []}
    for draw in range(draws):
        generator = torch.Generator().manual_seed(seed_of(["graph", seed, draw]))
        with seeded(seed_of(["graph layer", seed, draw])):
            net = _MessagePassing(width, depth).double().to(device)
        h = torch.randn(4, nodes, width, generator=generator, dtype=torch.float64).to(device)
        upper = torch.rand(4, nodes, nodes, generator=generator, dtype=torch.float64).triu(1) > 0.6
        edges = (upper | upper.transpose(1, 2)).double().to(device)
        with torch.no_grad():
            plain = net(h, edges)
            for order in (torch.arange(nodes).flip(0), torch.randperm(nodes, generator=generator)):
                moved = net(h[:, order], edges[:, order][:, :, order])
                errors["nodes_and_edges"].append(_relative(moved, plain[:, order]))
                errors["nodes_only"].append(_relative(net(h[:, order], edges), plain[:, order]))
    return {"nodes_and_edges": max(errors["nodes_and_edges"]), "nodes_only": min(errors["nodes_only"])}


class _MessagePassing(nn.Module):
    """h_i ← tanh(W h_i + V Σ_j A_ij h_j + b), `depth` times with weights of their own.

    It commutes with every renumbering P of the nodes that renumbers the edges too, f(P h, P A Pᵀ) = P f(h, A), since
    the rule is the same at every node and a sum has no order.
    """

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.heard = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))

    def forward(
        self, h: Float[Tensor, "batch node width"], edges: Float[Tensor, "batch node node"]
    ) -> Float[Tensor, "batch node width"]:
        for own, heard in zip(self.own, self.heard, strict=True):
            h = torch.tanh(own(h) + edges @ heard(h))
        return h


def count_patterns(units: int, inputs: int, seed: int = 0) -> int:
    """Sign patterns of a drawn layer of units, every one found: neighbours differ in one sign, so a search over
    neighbours, each decided by a linear program, meets all of them."""
    if units < 1 or inputs < 1 or units > 16:
        raise BadInput(f"patterns are counted for 1 to 16 units and at least 1 input, not {units} and {inputs}")
    generator = np.random.default_rng(seed_of(["patterns", seed, units, inputs]))
    weight, bias = generator.standard_normal((units, inputs)), generator.standard_normal(units)
    first = tuple(np.sign(weight @ generator.standard_normal(inputs) + bias).astype(int).tolist())
    found, waiting = {first}, [first]
    while waiting:
        pattern = waiting.pop()
        for unit in range(units):
            other = (*pattern[:unit], -pattern[unit], *pattern[unit + 1 :])
            if other not in found and _exists(weight, bias, other):
                found.add(other)
                waiting.append(other)
    return len(found)


def _exists(weight: np.ndarray, bias: np.ndarray, pattern: tuple[int, ...]) -> bool:
    """Whether some input gives these signs: the largest margin t, at most 1, with sign·(w x + b) ≥ t is above 0."""
    signs = np.array(pattern, dtype=float)[:, None]
    rows = np.hstack((-signs * weight, np.ones((len(pattern), 1))))
    cost = np.zeros(weight.shape[1] + 1)
    cost[-1] = -1
    bounds = [(None, None)] * weight.shape[1] + [(None, 1.0)]
    answer = linprog(cost, A_ub=rows, b_ub=signs[:, 0] * bias, bounds=bounds, method="highs")
    return bool(answer.status == 0 and -answer.fun > 1e-9)


def composed_tent_pieces(depth: int) -> int:
    """Linear pieces on [0, 1] of `depth` layers of two ReLU units, 2·relu(u) − 4·relu(u − ½), counted at dyadic
    points, where the arithmetic is exact."""
    if not 1 <= depth <= 16:
        raise BadInput(f"pieces are counted for a depth of 1 to 16, not {depth}")
    inner, outer = nn.Linear(1, 2).double(), nn.Linear(2, 1).double()
    with torch.no_grad():
        inner.weight.copy_(torch.ones(2, 1))
        inner.bias.copy_(torch.tensor([0.0, -0.5]))
        outer.weight.copy_(torch.tensor([[2.0, -4.0]]))
        outer.bias.zero_()
        u = torch.linspace(0, 1, 2 ** (depth + 2) + 1, dtype=torch.float64).unsqueeze(1)
        for _ in range(depth):
            u = outer(torch.relu(inner(u)))
    slopes = u.squeeze(1).diff()
    return 1 + int((slopes[1:] != slopes[:-1]).sum())


def _relative(found: Tensor, truth: Tensor) -> float:
    return float((found - truth).norm() / (truth - truth.mean()).norm())


def measure_graph_symmetry(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: any option of `graph_equivariance`."""
    return dict(graph_equivariance(seed=seed, device=device, **config))


def measure_patterns(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: units, inputs."""
    units, inputs = config["units"], config["inputs"]
    predicted = {"predicted": distributed_patterns(units, inputs), "one_hot": one_hot_patterns(units)}
    return {"patterns": count_patterns(units, inputs, seed), **predicted}


def measure_composed_pieces(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: depth."""
    depth = config["depth"]
    most = one_layer_pieces(2 * depth)
    return {"pieces": composed_tent_pieces(depth), "predicted": composed_pieces(depth), "one_layer": most}
