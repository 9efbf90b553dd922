"""How much worse the prediction gets where what a variable, or a constituent, reads is shuffled between rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.graphs import CompositionalGraph
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.structure.fit.fitting import Fitted

Array = NDArray[np.float64]
REPEATS = 5
MOST_ROWS = 1_000


@dataclass(frozen=True)
class Importance:
    """The rise of the squared error over the variance of the target, with a 95 % interval over rows."""

    name: str
    variables: tuple[str, ...]
    value: float
    interval: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "variables": list(self.variables),
            "value": self.value,
            "interval": list(self.interval),
        }


def of_variables(model: Fitted, x: Array, y: Array, generator: np.random.Generator) -> list[Importance]:
    """Of every variable, the largest first; one that the network does not read has none."""
    groups = [(name, (name,)) for name in model.graph.variables]
    return _ranked(model, groups, x, y, generator)


def of_constituents(model: Fitted, x: Array, y: Array, generator: np.random.Generator) -> list[Importance]:
    """Of every constituent beside the output: all variables below it are shuffled together."""
    return _ranked(model, _parts(model.graph), x, y, generator)


def _parts(graph: CompositionalGraph) -> list[tuple[str, tuple[str, ...]]]:
    below = {node.name: tuple(v for v in graph.variables if v in graph.reach[node.name]) for node in graph.nodes[:-1]}
    return list(below.items())


def _ranked(
    model: Fitted, groups: Sequence[tuple[str, tuple[str, ...]]], x: Array, y: Array, generator: np.random.Generator
) -> list[Importance]:
    x, y = x[:MOST_ROWS], y[:MOST_ROWS]
    before, spread = (model.predict(x) - y) ** 2, max(float(np.var(y)), 1e-300)
    found = []
    for name, variables in groups:
        places = [model.graph.variables.index(variable) for variable in variables]
        rise = np.zeros(len(y))
        if any(variable in model.graph.used for variable in variables):
            for _ in range(REPEATS):
                shuffled = x.copy()
                shuffled[:, places] = x[generator.permutation(len(x))][:, places]
                rise += ((model.predict(shuffled) - y) ** 2 - before) / REPEATS
        rise /= spread
        interval = percentile_interval(resampled_means(rise, generator))
        found.append(Importance(name, variables, float(rise.mean()), interval))
    return sorted(found, key=lambda one: -one.value)
