"""What the prediction does over one or two variables, by the network and by each of its refits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.graphs import CompositionalGraph
from theodolite.structure.fit.fitting import Fitted

Array = NDArray[np.float64]
POINTS, SIDE = 41, 17  # of a curve, and of a side of a map
BACKGROUND = 64  # rows over which all other variables are averaged
FEW_VALUES = 12  # of a variable that is shown by its values and not by a range
COUNTED = 0.1  # of the largest share: a refit of less was caught in a poor minimum
ENDS = (0.01, 0.99)  # quantiles between which a range is shown
DOTS = 150


@dataclass(frozen=True)
class Effect:
    """The mean prediction over `variables`, less its own mean, on a grid (point,) or (point, point) of `values`, and
    the lowest and highest of the refits. `constituent`: the node that is a function of these alone, if there is one.
    `seen` are rows (row, variable) of the data, to show where there are any."""

    variables: tuple[str, ...]
    constituent: str | None
    values: tuple[Array, ...]
    mean: Array
    low: Array
    high: Array
    seen: Array = field(repr=False)

    @property
    def doubt(self) -> float:
        """The squared half-width of the refits over the variance of the effect."""
        return float(np.mean(((self.high - self.low) / 2) ** 2) / max(float(np.var(self.mean)), 1e-300))

    def to_json(self) -> dict[str, Any]:
        return {
            "variables": list(self.variables),
            "constituent": self.constituent,
            "values": [axis.tolist() for axis in self.values],
            **{name: getattr(self, name).tolist() for name in ("mean", "low", "high")},
        }


def shown_groups(graph: CompositionalGraph) -> list[tuple[tuple[str, ...], str | None]]:
    """Constituents of one or two variables; then every variable that is used in none of these."""
    found: dict[tuple[str, ...], str | None] = {}
    for node in graph.nodes:
        below = tuple(name for name in graph.variables if name in graph.reach[node.name])
        if len(below) <= 2 and (len(below) == 2 or node.kind == "general" or len(graph.nodes) == 1):
            found.setdefault(below, node.name)
    covered = {name for group in found if len(group) == 2 for name in group}
    alone = [name for name in graph.used if name not in covered]
    ones = {(name,): found.get((name,), _summand(graph, name)) for name in alone}
    return [*ones.items(), *((group, node) for group, node in found.items() if len(group) == 2)]


def effects(model: Fitted, rows: Array, generator: np.random.Generator) -> Iterator[Effect]:
    """The effect of each of these groups, others averaged over rows of the data."""
    background = rows[generator.choice(len(rows), min(BACKGROUND, len(rows)), replace=False)]
    seen = rows[generator.choice(len(rows), min(DOTS, len(rows)), replace=False)]
    refits = _refits(model)
    for group, node in shown_groups(model.graph):
        places = [model.graph.variables.index(name) for name in group]
        axes = tuple(_axis(rows[:, place], POINTS if len(group) == 1 else SIDE) for place in places)
        grid = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
        points = np.repeat(background[None], len(grid), axis=0)
        points[:, :, places] = grid[:, None, :]
        flat = points.reshape(-1, rows.shape[1])
        shape = tuple(len(axis) for axis in axes)

        def averaged(of: Fitted, flat: Array = flat, count: int = len(grid), shape: tuple[int, ...] = shape) -> Array:
            means = of.predict(flat).reshape(count, -1).mean(1)
            return (means - means.mean()).reshape(shape)

        each = np.stack([averaged(one) for one in refits])
        yield Effect(group, node, axes, averaged(model), each.min(0), each.max(0), seen[:, places])


def _summand(graph: CompositionalGraph, name: str) -> str | None:
    """The sum or product that has a function of this variable alone among its parts, if nothing else reads it."""
    readers = [node for node in graph.nodes if name in node.inputs]
    return readers[0].name if len(readers) == 1 and readers[0].kind != "general" else None


def _refits(model: Fitted) -> Sequence[Fitted]:
    """The network of every fold by itself, without those that do not count."""
    good = np.flatnonzero(model.shares >= COUNTED * model.shares.max())
    return [replace(model, members=model.members[[place]], shares=np.ones(1)) for place in good]


def _axis(numbers: Array, points: int) -> Array:
    values = np.unique(numbers)
    if len(values) <= FEW_VALUES:
        return values
    low, high = np.quantile(numbers, ENDS)
    return np.linspace(low, high, points) if high > low else np.linspace(values[0], values[-1], points)
