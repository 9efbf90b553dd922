"""The fewest quantities that everything below a node has to pass through."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from theodolite.graphs.graph import Node

_BELOW, _ABOVE = "below", "above"  # names of vertices are pairs, so these are no variable's


def lowest_cut(nodes: Mapping[str, Node], tops: Iterable[str]) -> tuple[str, ...]:
    """The fewest variables and nodes that every path from a variable up to one of `tops` meets; of several such sets
    the one nearest to the variables. By augmenting paths, of which a variable or node carries one."""
    residual: dict[object, dict[object, float]] = {_BELOW: {}, _ABOVE: {}}

    def edge(a: object, b: object, capacity: float) -> None:
        residual.setdefault(a, {})[b] = capacity
        residual.setdefault(b, {}).setdefault(a, 0)

    waiting, seen = list(tops), set(tops)
    for name in waiting:
        edge((name, "enter"), (name, "leave"), 1)
        edge((name, "leave"), _ABOVE, math.inf)
    while waiting:
        name = waiting.pop()
        if name not in nodes:
            edge(_BELOW, (name, "enter"), math.inf)
            continue
        for below in nodes[name].inputs:
            edge((below, "leave"), (name, "enter"), math.inf)
            if below not in seen:
                edge((below, "enter"), (below, "leave"), 1)
                seen.add(below)
                waiting.append(below)
    while _ABOVE in (came := _search(residual)):
        here: object = _ABOVE
        while here is not _BELOW:
            residual[came[here]][here] -= 1
            residual[here][came[here]] += 1
            here = came[here]
    return tuple(sorted(name for name in seen if (name, "enter") in came and (name, "leave") not in came))


def _search(residual: Mapping[object, Mapping[object, float]]) -> dict[object, object]:
    """What can still be reached from below, each with where it was reached from."""
    came: dict[object, object] = {_BELOW: _BELOW}
    waiting: list[object] = [_BELOW]
    while waiting:
        here = waiting.pop()
        for there, capacity in residual[here].items():
            if capacity > 0 and there not in came:
                came[there] = here
                waiting.append(there)
    return came
