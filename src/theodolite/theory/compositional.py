"""How many units a smooth function takes: one hidden layer against a network shaped like the function's graph.

Theorem 1 of "It is Compositional Sparsity" (Poggio 2022). A function of n variables whose graph has nodes v
with d_v inputs and constituents of smoothness m_v (derivatives up to that order), approximated to accuracy ε by
networks with an infinitely smooth activation:

- shallow: N_s = O(ε^(−n/m)), m = min m_v;
- deep, of the same graph: N_d = O(Σ_v ε^(−d_v/m_v)).

These are leading terms, with constants left out: they say how the number of units grows as ε shrinks, and how the error
falls with units (slope −m/n against −m_v/d_v), not how many units a network needs. Beside the theorem the source also
prints the classical rate as ε^(d/s), where a minus is missing. Shallow networks escape the curse too if the smoothness
grows with the number of variables: the exponent is n/m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from theodolite.errors import OutsideDomain
from theodolite.graphs import CompositionalGraph
from theodolite.theory.domain import whole

Smoothness = float | Sequence[float]  # of all constituents, or one for each in the order of the nodes


@dataclass(frozen=True)
class Units:
    """Leading terms of both networks for one graph, and the largest exponent of 1/ε in each."""

    shallow: float
    deep: float
    shallow_exponent: float
    deep_exponent: float


def graph_units(graph: CompositionalGraph, accuracy: float, smoothness: Smoothness) -> Units:
    """Theorem 1 for a graph: n counts the variables that the function depends on."""
    orders, variables = _orders(graph.fan_ins, smoothness), len(graph.used)
    return Units(
        shallow=shallow_units(accuracy, variables, min(orders)),
        deep=deep_units(accuracy, graph.fan_ins, orders),
        shallow_exponent=shallow_exponent(variables, min(orders)),
        deep_exponent=deep_exponent(graph.fan_ins, orders),
    )


def shallow_units(accuracy: float, variables: int, smoothness: float) -> float:
    """ε^(−n/m); infinite where that is beyond what a float holds."""
    return _power(accuracy, shallow_exponent(variables, smoothness))


def deep_units(accuracy: float, fan_ins: Sequence[int], smoothness: Smoothness) -> float:
    """Σ_v ε^(−d_v/m_v)."""
    return math.fsum(_power(accuracy, exponent) for exponent in _exponents(fan_ins, smoothness))


def shallow_exponent(variables: int, smoothness: float) -> float:
    """n/m: units grow as (1/ε) to this, so the error falls with units to minus its inverse."""
    return whole("variables", variables) / _order(smoothness)


def deep_exponent(fan_ins: Sequence[int], smoothness: Smoothness) -> float:
    """max d_v/m_v, which decides as ε → 0."""
    return max(_exponents(fan_ins, smoothness))


def _exponents(fan_ins: Sequence[int], smoothness: Smoothness) -> list[float]:
    orders = _orders(fan_ins, smoothness)
    return [whole("fan-in", fan_in) / order for fan_in, order in zip(fan_ins, orders, strict=True)]


def _orders(fan_ins: Sequence[int], smoothness: Smoothness) -> list[float]:
    if not fan_ins:
        raise OutsideDomain("a graph without nodes is outside the domain: give the fan-in of at least one")
    orders = list(smoothness) if isinstance(smoothness, Sequence) else [smoothness] * len(fan_ins)
    if len(orders) != len(fan_ins):
        raise OutsideDomain(
            f"{len(orders)} orders of smoothness are given for {len(fan_ins)} nodes: give one for all or one for each"
        )
    return [_order(order) for order in orders]


def _order(smoothness: float) -> float:
    if not smoothness > 0 or math.isinf(smoothness):
        raise OutsideDomain(f"smoothness = {smoothness!r} is outside the domain: pass a positive number of derivatives")
    return float(smoothness)


def _power(accuracy: float, exponent: float) -> float:
    if not 0 < accuracy < 1:
        raise OutsideDomain(f"accuracy = {accuracy!r} is outside the domain: pass a number between 0 and 1")
    try:
        return accuracy**-exponent
    except OverflowError:
        return math.inf
