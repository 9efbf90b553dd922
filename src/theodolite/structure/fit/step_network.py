"""Networks of a graph whose constituents are constant on boxes.

[x > t] is a steep tanh, and a product of such is one more: what cuts and heights say, a network of the graph with two
hidden layers says too, so that it is kept, drawn and written to files like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theodolite.graphs import CompositionalGraph
from theodolite.graphs.stages import elementary
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.structure.fit.fitting import Fitted, assembled, network_shape
from theodolite.structure.fit.steps import LEAST_GAP, Grid, Steps, Term, grown

Array = NDArray[np.float64]
MOST_INPUTS = 3  # of a constituent
STEEP = 20.0  # tanh of this is 1 in double precision


def fit_steps(
    graph: CompositionalGraph, x: Array, y: Array, fold: NDArray[np.int64]
) -> tuple[Fitted, NDArray[np.bool_]] | None:
    """A network of steps for every fold, and the rows that these tell (not those nearer to a cut than any row learnt
    from); None where the graph is no sum of functions of few variables.

    Examples:
        >>> x = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> y = 1.0 * (x[:, 0] > 0.3) + (x[:, 1] > -0.5)
        >>> graph = CompositionalGraph.from_json(
        ...     {"variables": ["a", "b"], "nodes": [{"name": "y", "inputs": ["a", "b"], "kind": "sum"}]}
        ... )
        >>> fit_steps(graph, x, y, np.arange(200) % 4)[0].validation_error < 0.02
        True
    """
    terms = terms_of(graph)
    if terms is None:
        return None
    centre, scale = x.mean(0), np.where(np.ptp(x, axis=0) > 0, x.std(0), 1.0)
    rows, wanted = (x - centre) / scale, (y - y.mean()) / y.std()
    found = [grown(list(terms.values()), rows, wanted, fold != one) for one in range(int(fold.max()) + 1)]
    depth = 1 if all(len(term) == 1 for term in terms.values()) else 2
    width = max(_width(grid, depth) for one in found for grid in one.grids)
    members = torch.stack(
        [_written(graph, width, depth, dict(zip(terms, one.grids, strict=True)), one) for one in found]
    )
    told = ~np.any([one.open for one in found], axis=0)
    return assembled((graph, width, depth, "tanh", 0), members, x, y, fold), told


def terms_of(graph: CompositionalGraph) -> dict[str, Term] | None:
    """The columns that every constituent of a sum (or the only constituent) reads, by its name in the network; None for
    a graph that is no sum of functions of up to three variables."""
    computed = elementary(graph)
    places = {name: place for place, name in enumerate(computed.variables)}
    inner = computed.nodes[:-1] or computed.nodes
    if len(computed.nodes) > 1 and computed.output.kind != "sum":
        return None
    if any(node.kind != "general" or len(node.inputs) > MOST_INPUTS for node in inner):
        return None
    if any(name not in places for node in inner for name in node.inputs):
        return None
    return {node.name: tuple(places[name] for name in node.inputs) for node in inner}


def _width(grid: Grid, depth: int) -> int:
    """Units of a hidden layer."""
    return max(1, sum(map(len, grid.cuts)), grid.size() if depth > 1 else 0)


def _written(graph: CompositionalGraph, width: int, depth: int, grids: Mapping[str, Grid], steps: Steps) -> Tensor:
    """The parameters of a network that says what the steps say."""
    net = network_shape(graph, width, depth, "tanh")
    assert isinstance(net.module, CompositionalNet)
    vector = torch.zeros(net.parameters, dtype=torch.float64)
    named = net.named(vector)
    heights = dict(zip(grids, np.split(steps.heights[1:], np.cumsum([g.size() for g in grids.values()])), strict=False))
    for stage, groups in enumerate(net.module.groups):
        for block, group in enumerate(groups):
            name = f"stages.{stage}.blocks.{block}."
            for place, node in enumerate(group.nodes):
                own = {key[len(name) :]: part[place] for key, part in named.items() if key.startswith(name)}
                if node.name in grids:
                    _write(own, grids[node.name], heights[node.name], steps.rows, depth)
                else:
                    own["weight"].fill_(1.0)
                if node.name == elementary(graph).output.name:
                    own["bias"] += float(steps.heights[0])
    return vector


def _write(own: Mapping[str, Tensor], grid: Grid, heights: Array, rows: Array, depth: int) -> None:
    """The first layer tells on which side of every cut a row lies, as 1 or −1; the second multiplies (it is 1 where all
    of its factors are, and −1 elsewhere)."""
    sides: dict[tuple[int, float], int] = {}
    for place, cuts in enumerate(grid.cuts):
        for cut in cuts:
            sides[place, cut] = unit = len(sides)
            # so steep that every row is on one side
            slope = STEEP / max(LEAST_GAP, float(np.min(np.abs(rows[:, grid.term[place]] - cut))))
            own["weights.0"][unit, place] = slope
            own["biases.0"][unit, 0] = -slope * cut
    for number, (factors, height) in enumerate(zip(grid.units, heights.tolist(), strict=True)):
        if depth > 1:
            for factor in factors:
                own["weights.1"][number, sides[factor]] = STEEP
            own["biases.1"][number, 0] = -STEEP * (len(factors) - 1)
        own["combine"][0, number if depth > 1 else sides[factors[0]]] = height / 2
        own["bias"][0, 0] += height / 2
