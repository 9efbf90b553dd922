"""Networks of the right graph, of more than it, of another and of none, trained on functions of a known graph.

Every member has a target of its own, drawn from `targets` and not from the cell's seed: nets that are compared learn
the same functions from the same points. Members of one net are one program: their weights are two matrices, of what a
penalty acts on and of biases, that the graph's parameters are views of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, vmap

from theodolite.claims.sparsity.descent import Schedule, Weights, descend, whole
from theodolite.claims.sparsity.penalties import Penalty
from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.graphs.families import named_graph, shuffled, with_extra_edges
from theodolite.graphs.graph import CompositionalGraph
from theodolite.nets.compositional_net import GraphNet
from theodolite.nets.load import seeded
from theodolite.nets.size import count_parameters
from theodolite.tasks.shared.constituents import ComposedFunction

LOSSES = ("square", "exponential")
VALIDATION, TEST = 200, 2000  # points
_SCALE = 3**0.5  # of inputs uniform in [−1, 1]: to variance 1
PENALISED = frozenset({"weight"})


def measure_graph_training(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: truth (a named graph), variables, graph (true, wrong, dense or a number of extra edges), draw (of that
    graph), width, depth, points, seeds, targets, restarts, steps, lr, loss, penalty, strengths.

    Every target is learnt once per strength and restart; the one of least error on the validation points is kept for
    it. Errors, by target: mean square error over the target's variance, or the share of wrong signs. Also the share of
    penalised weights that are exactly 0, and that of those below a thousandth of the largest.
    """
    where = resolve_device(device)
    if config["loss"] not in LOSSES:
        raise BadInput(f"there is no loss '{config['loss']}': use {' or '.join(LOSSES)}")
    square = config["loss"] == "square"
    truth = named_graph(config["truth"], config["variables"])
    graph = shaped(config["graph"], truth, config["draw"])
    strengths, targets = [s for s in config["strengths"] for _ in range(config["restarts"])], config["seeds"]
    members = Members(graph, config["width"], config["depth"], targets * len(strengths), seed, where)
    parts = {
        name: (x.repeat(len(strengths), 1, 1), (y if square else 2 * (y > 0).float() - 1).repeat(len(strengths), 1))
        for name, (x, y) in target_points(truth, config["targets"], targets, config["points"], where).items()
    }
    measure = _square if square else _exponential
    weights = descend(
        members.weights,
        lambda w, batch: measure(members.run(w, batch[0]), batch[1]),
        whole(*parts["train"]),
        Schedule(config["steps"], config["lr"]),
        Penalty(config["penalty"], tuple(s for s in strengths for _ in range(targets))),
        PENALISED,
    )
    found = {name: _error(members.run(weights, x), y, square) for name, (x, y) in parts.items()}
    found["zero"] = (weights["weight"] == 0).float().mean(1)
    found["negligible"] = _negligible(weights["weight"])
    table = {name: values.view(len(strengths), targets) for name, values in found.items()}
    best = table["validation"].argmin(0, keepdim=True)
    return {
        "parameters": members.parameters,
        "edges": len(graph.edges),
        "strength": [strengths[i] for i in best[0].tolist()],
        **{name: values.gather(0, best)[0].tolist() for name, values in table.items()},
    }


def shaped(name: str | int, truth: CompositionalGraph, draw: int) -> CompositionalGraph:
    """The graph a net is given: the true one, another of the same shape, none, or the true one with edges added."""
    generator = np.random.default_rng([draw, 1])
    if name == "true":
        return truth
    if name == "wrong":
        return shuffled(truth, generator)
    if name == "dense":
        return CompositionalGraph.dense(truth.variables)
    if isinstance(name, int):
        return with_extra_edges(truth, name, generator)
    raise BadInput(f"there is no graph '{name}' to train with: use true, wrong, dense or a number of extra edges")


class Members:
    """Nets of one graph, stacked: `weights` holds (member, weight) and (member, bias)."""

    def __init__(
        self, graph: CompositionalGraph, width: int, depth: int, members: int, seed: int, device: torch.device
    ) -> None:
        with seeded(seed):
            nets = [GraphNet(graph, width=width, depth=depth) for _ in range(members)]
        self.net = nets[0]
        self.parameters = count_parameters(self.net)
        self.places: dict[str, tuple[str, slice, torch.Size]] = {}
        sizes = {"weight": 0, "bias": 0}
        for name, parameter in self.net.named_parameters():
            kind = "bias" if "bias" in name else "weight"
            self.places[name] = (kind, slice(sizes[kind], sizes[kind] + parameter.numel()), parameter.shape)
            sizes[kind] += parameter.numel()
        self.weights: Weights = {
            kind: torch.stack(
                [
                    torch.cat([p.detach().flatten() for n, p in net.named_parameters() if self.places[n][0] == kind])
                    for net in nets
                ]
            ).to(device)
            for kind in sizes
        }
        self.net.to(device)

    def run(
        self, weights: Mapping[str, Tensor], x: Float[Tensor, "member point variable"]
    ) -> Float[Tensor, "member point"]:
        def one(own: Mapping[str, Tensor], points: Tensor) -> Tensor:
            named = {name: own[kind][place].view(shape) for name, (kind, place, shape) in self.places.items()}
            return functional_call(self.net, named, (points,))

        return vmap(one)(dict(weights), x).squeeze(-1)


def target_points(
    truth: CompositionalGraph, targets: int, members: int, points: int, device: torch.device
) -> dict[str, tuple[Float[Tensor, "member point variable"], Float[Tensor, "member point"]]]:
    """Points of train, validation and test, and what each member's own drawn function of the graph says of them."""
    sizes = {"train": points, "validation": VALIDATION, "test": TEST}
    drawn: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in sizes}
    for member in range(members):
        generator = np.random.default_rng([targets, 0, member])
        target = ComposedFunction(truth, generator)
        for name, count in sizes.items():
            x = generator.uniform(-1.0, 1.0, (count, len(truth.variables)))
            drawn[name].append((x * _SCALE, target(x)))
    return {
        name: (_stacked(d[0] for d in pairs).to(device), _stacked(d[1] for d in pairs).to(device))
        for name, pairs in drawn.items()
    }


def _stacked(arrays: Iterable[np.ndarray]) -> Tensor:
    return torch.as_tensor(np.stack(list(arrays)), dtype=torch.float32)


def _square(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).square().mean(-1)


def _exponential(output: Tensor, signs: Tensor) -> Tensor:
    """The logarithm of the mean of exp(−y·f): the same minimisers and directions, without its vanishing gradient."""
    return torch.logsumexp(-signs * output, -1)


@torch.no_grad()
def _error(output: Tensor, y: Tensor, square: bool) -> Tensor:
    return _square(output, y) / y.var(-1, correction=0) if square else (output * y <= 0).float().mean(-1)


def _negligible(weight: Tensor) -> Tensor:
    """The share of weights below a thousandth of the member's largest."""
    size = weight.abs()
    return (size < 1e-3 * size.amax(1, keepdim=True)).float().mean(1)
