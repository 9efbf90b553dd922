"""First weights for a function of a sum: the sum is learnt first, on the scale on which the target is one.

Trained on its output alone, the network of h(g(1, 2) + g(2, 3) + g(1, 3)) is caught in poor minima, in which h bends
where the terms should. On the scale t = h⁻¹, which the rows show themselves (`surrogate/warped.py`), the terms are a
sum that is easily learnt; h is then a function of one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from theodolite.graphs import CompositionalGraph, Node
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.structure.fit.descent import train_networks
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.jacobian import values
from theodolite.structure.fit.least_squares import least_squares
from theodolite.structure.surrogate.warped import scales
from theodolite.training.stacked import Stacked, draw

STARTS = 3  # of the function of one number
LEAST_ROWS, ROWS = 50, 120  # that a scale is learnt from
SCALE_STEPS = 60


def terms_below(graph: CompositionalGraph) -> tuple[tuple[int, ...], ...] | None:
    """The columns of every term, as places among those the graph uses, if it is a function of one sum."""
    output = graph.output
    below = graph.node.get(output.inputs[0])
    if output.kind != "general" or len(output.inputs) > 1 or below is None or below.kind != "sum":
        return None
    places = {name: place for place, name in enumerate(graph.used)}
    return tuple(tuple(sorted(places[v] for v in graph.reach[name])) for name in below.inputs)


def scaled_start(
    graph: CompositionalGraph,
    build: Callable[[CompositionalGraph], CompositionalNet],
    inputs: Float[Tensor, "row feature"],
    targets: Float[Tensor, " row"],
    fold: Int[Tensor, " row"],
    folds: Sequence[int],
    generator: np.random.Generator,
    effort: Effort,
) -> Float[Tensor, "fold parameter"] | None:
    """A network for each of these folds, whose rows it does not see; None where the graph is no function of a sum, or
    there is no scale to be seen."""
    terms = terms_below(graph)
    seen = [np.flatnonzero(fold.numpy() != one) for one in folds]
    count = min(ROWS, *map(len, seen))
    if terms is None or count < LEAST_ROWS:
        return None
    chosen = [np.sort(generator.choice(own, count, replace=False)) for own in seen]
    used = [graph.variables.index(name) for name in graph.used]
    found = scales(inputs.numpy()[:, used], targets.numpy(), chosen, terms, steps=SCALE_STEPS)
    if found is None:
        return None
    learnt = (fold[None, :] != torch.tensor(folds)[:, None]).double()
    scaled = torch.from_numpy(np.stack([scale(targets.numpy()) for scale in found]))
    mean = (learnt * scaled).sum(1, keepdim=True) / learnt.sum(1, keepdim=True)
    spread = ((learnt * (scaled - mean) ** 2).sum(1, keepdim=True) / learnt.sum(1, keepdim=True)).sqrt()
    scaled = (scaled - mean) / spread

    def drawn(part: CompositionalGraph, count: int) -> tuple[Stacked, Tensor]:
        seeds = [int(seed) for seed in generator.integers(2**31, size=count)]
        return draw(lambda: build(part), seeds, dtype=torch.float64)

    inner = CompositionalGraph(graph.variables, graph.nodes[:-1])
    net, members = drawn(inner, len(folds))
    steps = torch.Generator().manual_seed(int(generator.integers(2**31)))
    members = train_networks(net, members, inputs, scaled, learnt, steps, steps=effort.descent)
    with torch.no_grad():
        members = least_squares(net, members, inputs, scaled, learnt, steps=effort.polish // 2).members
        said = values(net, members, inputs).repeat(STARTS, 1)[:, :, None]
    top = CompositionalGraph(("s",), (Node(graph.output.name, ("s",)),))
    above, tops = drawn(top, STARTS * len(folds))
    with torch.no_grad():
        ends = least_squares(above, tops, said, targets, learnt.repeat(STARTS, 1), steps=effort.polish)
        best = ends.held_out.reshape(STARTS, -1).argmin(0) * len(folds) + torch.arange(len(folds))
    whole, started = drawn(graph, len(folds))
    for part, own in ((net, members), (above, ends.members[best])):
        for name, places in _places(part).items():
            started[:, _places(whole)[name]] = own[:, places]
    return started


def _places(net: Stacked) -> dict[str, Tensor]:
    assert isinstance(net.module, CompositionalNet)
    return net.module.node_parameters()
