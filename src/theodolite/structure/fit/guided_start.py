"""First weights for the network of a graph, found module by module from the targets of a guide.

From the variables up, every module is trained with what is below it fixed: a network of a few inputs, from several
random starts, of which the best on held-out rows is kept. A chain of modules thus needs one good start each, not all of
them good at once. The output is trained last, on the data themselves.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import free_name
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.structure.fit.descent import train_networks
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.guide import Guide, modules, slices
from theodolite.structure.fit.least_squares import least_squares
from theodolite.training.stacked import Stacked, draw

Array = NDArray[np.float64]
ROWS = 400  # that a module is trained on, at most: it has few parameters
DESCENT, POLISH = 4, 3  # a module takes these parts of the whole network's steps


@dataclass(frozen=True)
class GuidedStart:
    """`build` makes the network of a graph; `inputs` and `targets` are standardised; a network is made for each of
    `folds`, which does not see the rows whose `fold` this is. `effort` says how many starts of every module are
    tried."""

    graph: CompositionalGraph
    build: Callable[[CompositionalGraph], CompositionalNet]
    rows: Array
    inputs: Float[Tensor, "row feature"]
    targets: Float[Tensor, " row"]
    fold: Int[Tensor, " row"]
    folds: Sequence[int]
    generator: np.random.Generator
    effort: Effort
    until: float | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)  # of a node, (fold, parameter)
    values: dict[str, Tensor] = field(default_factory=dict)  # of a variable or module, (fold, row)

    def members(self, guide: Guide) -> Float[Tensor, "fold parameter"] | None:
        """A network for each fold; None where no module has a target, or there is no time."""
        folds, seen = len(self.folds), slice(0, ROWS)
        self.values.update({v: self.inputs[:, i].expand(folds, -1) for i, v in enumerate(self.graph.variables)})
        for name in modules(self.graph):
            if self.until is not None and time.monotonic() > self.until:
                return None
            values = slices(self.graph, name, guide.of(self.folds), folds, self.rows, self.generator)
            if values is not None:
                self._learn(name, [torch.from_numpy(part[:, seen].copy()) for part in values], head=True)
        if not self.weights:
            return None
        self._learn(self.graph.output.name, [self.targets[seen].expand(folds, -1)], head=False)
        net, members = draw(lambda: self.build(self.graph), self._seeds(folds), dtype=torch.float64)
        for name, places in _places(net).items():
            if name in self.weights:
                members[:, places] = self.weights[name]
        return members

    def _learn(self, name: str, values: list[Tensor], *, head: bool) -> None:
        """Trains a node, with all below it that is not fixed, and fixes it."""
        nodes = self._unit(name)
        inner = {node.name for node in nodes}
        leaves = tuple(dict.fromkeys(source for node in nodes for source in node.inputs if source not in inner))
        which = tuple(free_name(f"slice{place}", (*leaves, *inner)) for place in range(1, len(values)))
        top = (Node(free_name("head", (*leaves, *inner)), (name, *which)),) if head else ()
        graph = CompositionalGraph((*leaves, *which), (*nodes, *top))

        folds, rows = values[0].shape
        read = torch.stack([self.values[leaf][:, :rows] for leaf in leaves], dim=-1)
        flags = torch.eye(len(values), dtype=read.dtype)[:, None, None, 1:].expand(-1, folds, rows, -1)
        inputs = torch.cat([torch.cat([read, flag], dim=-1) for flag in flags], dim=1)
        owner = torch.arange(folds * self.effort.guided) % folds
        unseen = torch.tensor(self.folds)[owner]
        net, members = draw(lambda: self.build(graph), self._seeds(len(owner)), dtype=torch.float64)
        places = _places(net)
        again = (torch.arange(len(owner)) // folds) % 2 == 0  # half of the starts keep what a node has learnt already
        for known in inner & set(self.weights):
            members[:, places[known]] = torch.where(
                again[:, None], self.weights[known][owner], members[:, places[known]]
            )
        trained = (self.fold[None, :rows] != unseen[:, None]).double().repeat(1, len(values))
        data = (inputs[owner], torch.cat(values, dim=1)[owner], trained)
        generator = torch.Generator().manual_seed(self._seeds(1)[0])
        members = train_networks(net, members, *data, generator, steps=self.effort.descent // DESCENT)
        with torch.no_grad():
            found = least_squares(net, members, *data, steps=self.effort.polish // POLISH)
            errors = torch.nan_to_num(found.held_out, nan=torch.inf)
            best = torch.stack([torch.where(owner == f, errors, torch.inf).argmin() for f in range(folds)])
            chosen = found.members[best]
            self.weights.update({node.name: chosen[:, places[node.name]] for node in nodes})
            self.weights.update({n: chosen[:, at] for n, at in places.items() if n not in graph.node})
            everywhere = torch.stack([self.values[leaf] for leaf in leaves], dim=-1)
            blank = everywhere.new_zeros(*everywhere.shape[:2], len(which))
            said = Stacked(_NodeValue(net.module, graph.nodes.index(graph.node[name])))
            self.values[name] = said.values(chosen, torch.cat([everywhere, blank], dim=-1))

    def _unit(self, name: str) -> tuple[Node, ...]:
        """The node, what is below it down to the modules that are fixed, and of these the `general` ones that feed only
        a sum or a product in it: they hold its functions of one input, and their slices told them but for such."""
        uses = Counter(source for source, _ in self.graph.edges)
        kept, waiting = set(), [self.graph.node[name]]
        while waiting:
            node = waiting.pop()
            kept.add(node.name)
            for source in node.inputs:
                below = self.graph.node.get(source)
                if below is None or source in kept:
                    continue
                absorbed = node.kind != "general" and below.kind == "general" and uses[source] == 1
                if absorbed or source not in self.values:
                    waiting.append(below)
        return tuple(node for node in self.graph.nodes if node.name in kept)

    def _seeds(self, count: int) -> list[int]:
        return [int(seed) for seed in self.generator.integers(2**31, size=count)]


class _NodeValue(nn.Module):
    def __init__(self, net: nn.Module, place: int) -> None:
        super().__init__()
        self.net, self.place = net, place

    def forward(self, x: Float[Tensor, "row feature"]) -> Float[Tensor, "row 1"]:
        return self.net.node_values(x)[:, self.place : self.place + 1]  # pyright: ignore[reportCallIssue]


def _places(net: Stacked) -> dict[str, Tensor]:
    assert isinstance(net.module, CompositionalNet)
    return net.module.node_parameters()
