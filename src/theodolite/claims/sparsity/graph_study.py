"""Networks of the right graph, of more than it, of another and of none, trained on functions of a known graph.

Every member has a target of its own, drawn from `targets` and not from the cell's seed: nets that are compared learn
the same functions from the same points. Members of one net are one program. A penalty leaves biases alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.claims.sparsity.penalties import Penalty
from theodolite.claims.sparsity.sparse_training import Examples, Plan, train_sparsely
from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.graphs.families import named_graph, shuffled, with_extra_edges
from theodolite.graphs.graph import CompositionalGraph
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.nets.load import seeded
from theodolite.tasks.shared.constituents import ComposedFunction
from theodolite.training.stacked import stack

LOSSES = ("square", "exponential")
VALIDATION, TEST = 200, 2000  # points
_SCALE = 3**0.5  # of inputs uniform in [−1, 1]: to variance 1


def measure_graph_training(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: truth (a named graph), variables, graph (true, wrong, dense or a number of extra edges), draw (of that
    graph), width, depth, points, seeds, targets, restarts, steps, lr, loss, penalty, strengths.

    Every target is learnt once per strength and restart; the one of least error on the validation points is kept for
    it. Errors, by target: mean square error over the target's variance, or the share of wrong signs. Also the share of
    penalised weights that are exactly 0, and that of those below a thousandth of the largest.
    """
    device = resolve_device(device)
    if config["loss"] not in LOSSES:
        raise BadInput(f"there is no loss '{config['loss']}': use {' or '.join(LOSSES)}")
    square = config["loss"] == "square"
    truth = named_graph(config["truth"], config["variables"])
    graph = shaped(config["graph"], truth, config["draw"])
    strengths, targets = [s for s in config["strengths"] for _ in range(config["restarts"])], config["seeds"]
    with seeded(seed):
        sizes = {"width": config["width"], "depth": config["depth"]}
        nets = [CompositionalNet(graph, **sizes) for _ in range(targets * len(strengths))]
    net, start = stack(nets, device)
    penalised = torch.cat([torch.full((p.numel(),), "bias" not in name) for name, p in net.module.named_parameters()])
    parts = {
        name: (x.repeat(len(strengths), 1, 1), (y if square else 2 * (y > 0).float() - 1).repeat(len(strengths), 1))
        for name, (x, y) in target_points(truth, config["targets"], targets, config["points"], device).items()
    }
    measure = _square if square else _exponential
    vectors = train_sparsely(
        {"parameters": start},
        lambda w, batch: measure(net.values(w["parameters"], batch[0]), batch[1]),
        Examples(*parts["train"]),
        Plan(config["steps"], config["lr"]),
        Penalty(config["penalty"], tuple(s for s in strengths for _ in range(targets))),
        {"parameters": penalised.to(device)},
    )["parameters"]
    found = {name: _error(net.values(vectors, x), y, square) for name, (x, y) in parts.items()}
    weights = vectors[:, penalised.to(device)]
    found["zero"] = (weights == 0).float().mean(1)
    found["negligible"] = _negligible(weights)
    table = {name: values.view(len(strengths), targets) for name, values in found.items()}
    best = table["validation"].argmin(0, keepdim=True)
    return {
        "parameters": net.parameters,
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
