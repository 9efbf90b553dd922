"""Random functions of a given compositional graph, infinitely smooth or of a given smoothness.

Every constituent is drawn anew until all its inputs matter and work together, and is scaled to mean 0 and variance 1,
so that a deep composition is as lively as a shallow one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.graphs.graph import CompositionalGraph, Node
from theodolite.graphs.stages import Group, elementary, stages
from theodolite.tasks.shared.tables import on_device

Array = NDArray[np.float64]
Points = TypeVar("Points", Array, Tensor)

TERMS = {"smooth": 3, "spline": 6}  # of a constituent
BEND = 3.0  # how much stronger a spline's bends are than the smooth function they sit on
FLOOR = 1e-3  # the least relevance of a variable: E(f(x) − f(x with it redrawn))² over the variance of f
_SAMPLE = 1024  # points that constituents are scaled and judged on
_INTERACTION = 0.02  # the least part of a constituent's variance that a sum over one input and the others misses
_REDRAWS = 20  # of a constituent, of which the best is taken where none is good enough
_ATTEMPTS = 300  # to let every variable matter


@dataclass(frozen=True)
class Constituent:
    """A drawn function of numbers u of mean 0 and variance 1, as (value − mean) / scale.

    smooth    Σ_r weight_r · tanh(slope_r·u + shift_r) · cos(turn_r·u + phase_r)
    spline    Σ_r weight_r · (t + BEND (t − knot_r)₊^m),  t = tanh(slope_r·u + shift_r), m the smoothness
    sum       Σ_i weight_i u_i
    product   ∏_i (1 + weight_i u_i)
    """

    formula: str
    parameters: Mapping[str, Array]
    mean: float = 0.0
    scale: float = 1.0


class ComposedFunction:
    """f(x) for x in [−1, 1]^n, rows of a numpy array or of a float64 tensor: one number for each.

    `smoothness` m: all derivatives up to order m are bounded, those of order m jump; None: infinitely smooth.
    A function whose output is a product is a product exactly; all others have mean 0. The variance is 1 for x uniform.
    """

    def __init__(
        self, graph: CompositionalGraph, generator: np.random.Generator, smoothness: int | None = None
    ) -> None:
        if smoothness is not None and smoothness < 1:
            raise BadInput(f"a smoothness of {smoothness} is too small: use 1 or more, or none for a smooth function")
        self.graph, self.smoothness = graph, smoothness
        self.elementary = elementary(graph)  # every constituent with a drawn function of its own
        drawing = _Drawing(self.elementary, smoothness, generator)
        self.constituents: Mapping[str, Constituent] = drawing.constituents
        self.relevance: Mapping[str, float] = drawing.relevance
        self._stages = _tables(self.elementary, self.constituents)
        self._on_device: dict[torch.device, Any] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return self.graph.variables

    def __call__(self, points: Points) -> Points:
        if points.shape[-1] != len(self.variables):
            raise BadInput(
                f"the function has {len(self.variables)} variables but the points have {points.shape[-1]} columns"
            )
        rows: Any = points.reshape(-1, len(self.variables)).T * math.sqrt(3.0)
        xp: Any = torch if isinstance(points, Tensor) else np
        for stage in self._tables(rows):
            said = [
                (_value(xp, formula, rows[index], table, self.smoothness) - table["mean"]) / table["scale"]
                for formula, index, table in stage
            ]
            rows = xp.concatenate([rows, *said])
        return (rows[-1] + self.lift).reshape(points.shape[:-1])

    @property
    def lift(self) -> float:
        """What is added to the last constituent: a product keeps its mean."""
        last = self.constituents[self.elementary.output.name]
        return last.mean / last.scale if last.formula == "product" else 0.0

    def _tables(self, rows: Array | Tensor) -> Any:
        if not isinstance(rows, Tensor):
            return self._stages
        if rows.device not in self._on_device:
            move = lambda table: on_device(np.ascontiguousarray(table), rows.device)
            self._on_device[rows.device] = [
                [(formula, move(index), {k: move(v) for k, v in table.items()}) for formula, index, table in stage]
                for stage in self._stages
            ]
        return self._on_device[rows.device]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_on_device": {}}


def _value(xp: ModuleType, formula: str, u: Any, table: Mapping[str, Any], smoothness: int | None) -> Any:
    """(node, input, point) to (node, point); tables have a leading axis for nodes. No library adds up in an order that
    depends on how many points there are: a point has the same value in every batch."""
    if formula == "sum":
        return _along(table["weight"][:, None], u)[:, 0]
    if formula == "product":
        found = 1.0
        for i in range(u.shape[1]):
            found = found * (1.0 + table["weight"][:, i, None] * u[:, i])
        return found
    bent = xp.tanh(_along(table["slope"], u) + table["shift"][..., None])
    if formula == "smooth":
        terms = bent * xp.cos(_along(table["turn"], u) + table["phase"][..., None])
    else:
        assert smoothness is not None
        terms = bent + BEND * (bent - table["knot"][..., None]).clip(min=0.0) ** smoothness
    return _along(table["weight"][:, None], terms)[:, 0]


def _along(weights: Any, u: Any) -> Any:
    """Σ_i weights[node, term, i] · u[node, i, point]."""
    found = 0.0
    for i in range(u.shape[1]):
        found = found + weights[..., i, None] * u[:, None, i]
    return found


def _tables(graph: CompositionalGraph, constituents: Mapping[str, Constituent]) -> Any:
    """For each stage its groups: the formula, the rows that are read (node, input), and the parameters of all nodes."""
    place = {name: row for row, name in enumerate(graph.variables)}
    found = []
    for groups in stages(graph):
        stage = []
        for group in groups:
            drawn = [constituents[node.name] for node in group.nodes]
            index = np.array([[place[name] for name in node.inputs] for node in group.nodes])
            table = {key: np.stack([one.parameters[key] for one in drawn]) for key in drawn[0].parameters}
            table["mean"] = np.array([[one.mean] for one in drawn])
            table["scale"] = np.array([[one.scale] for one in drawn])
            stage.append((drawn[0].formula, index, table))
        for node in _in_stage(groups):
            place[node.name] = len(place)
        found.append(stage)
    return found


def _in_stage(groups: Iterable[Group]) -> list[Node]:
    return [node for group in groups for node in group.nodes]


class _Drawing:
    """Constituents drawn one after another on a sample of points, and again where a variable would hardly matter."""

    def __init__(self, graph: CompositionalGraph, smoothness: int | None, generator: np.random.Generator) -> None:
        self.graph, self.smoothness, self.generator = graph, smoothness, generator
        self.constituents: dict[str, Constituent] = {}
        shape = (len(graph.variables), _SAMPLE)
        points, others = (generator.uniform(-1.0, 1.0, shape) * math.sqrt(3.0) for _ in range(2))
        self.values = dict(zip(graph.variables, points, strict=True))
        self.redrawn = dict(zip(graph.variables, others, strict=True))
        self._draw(graph.nodes)
        floor = min(FLOOR, 0.1 / len(graph.used))
        self.relevance = {name: self._relevance(name) for name in graph.used}
        for _ in range(_ATTEMPTS):
            weakest = min(graph.used, key=self.relevance.__getitem__)
            if self.relevance[weakest] >= floor:
                return
            self._draw([node for node in graph.nodes if weakest in graph.reach[node.name]])
            self.relevance = {name: self._relevance(name) for name in graph.used}
        raise BadInput("no function of this graph was found in which every variable matters: use a graph of less depth")

    def _draw(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            below = [len(self.graph.reach[name]) for name in node.inputs]
            share = np.array(below) / sum(below)  # what has many variables below it must let all of them through
            u = np.stack([self.values[name] for name in node.inputs])
            worth, found = self._candidate(node, share, u)
            for _ in range(_REDRAWS):
                if worth >= 1:
                    break
                worth, found = max((worth, found), self._candidate(node, share, u), key=lambda drawn: drawn[0])
            self.constituents[node.name] = found
            self.values[node.name] = self._of(found, u)

    def _candidate(self, node: Node, share: Array, u: Array) -> tuple[float, Constituent]:
        """A drawn constituent, and how well its inputs matter: below 1 where one does less than it should."""
        formula = {"general": "smooth" if self.smoothness is None else "spline"}.get(node.kind, node.kind)
        drawn = Constituent(formula, _parameters(formula, share, self.generator))
        values = self._of(drawn, u)
        drawn = replace(drawn, mean=float(values.mean()), scale=float(values.std()))
        values = (values - drawn.mean) / drawn.scale
        return self._worth(drawn, values, share, u), drawn

    def _worth(self, drawn: Constituent, values: Array, share: Array, u: Array) -> float:
        other = np.roll(u, 1, axis=1)  # rows of the sample are independent of each other
        shifted = self._of(drawn, other)
        worth = 1.0
        for i in range(len(u) if len(u) > 1 else 0):
            one, rest = u.copy(), other.copy()
            one[i], rest[i] = other[i], u[i]
            changed, back = self._of(drawn, one), self._of(drawn, rest)
            worth = min(worth, float(((changed - values) ** 2).mean()) / (0.7 * float(share[i])))
            if drawn.formula in TERMS:
                mixed = float(((values - changed - back + shifted) ** 2).mean()) / 4
                worth = min(worth, mixed / (_INTERACTION * len(u) * float(share[i])))
        return worth

    def _of(self, drawn: Constituent, u: Array) -> Array:
        table = {key: value[None] for key, value in drawn.parameters.items()}
        return (_value(np, drawn.formula, u[None], table, self.smoothness)[0] - drawn.mean) / drawn.scale

    def _relevance(self, variable: str) -> float:
        """E(f(x) − f(x with the variable redrawn))² over the variance of f."""
        changed = {variable: self.redrawn[variable]}
        for node in self.graph.nodes:
            if any(name in changed for name in node.inputs):
                u = np.stack([changed.get(name, self.values[name]) for name in node.inputs])
                changed[node.name] = self._of(self.constituents[node.name], u)
        output = self.graph.output.name
        return float(((changed[output] - self.values[output]) ** 2).mean())


def _parameters(formula: str, share: Array, generator: np.random.Generator) -> dict[str, Array]:
    inputs = len(share)

    def directions(terms: int, least: float, most: float) -> Array:
        """Slopes of random signs, of a random length between these, that give every input about its share."""
        drawn = generator.choice([-1.0, 1.0], (terms, inputs)) * generator.uniform(0.5, 1.5, (terms, inputs))
        drawn = drawn * np.sqrt(share)
        length = generator.uniform(least, most, (terms, 1))
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * length

    if formula == "sum":
        return {"weight": directions(1, 1.0, 1.0)[0]}
    if formula == "product":
        return {"weight": directions(1, 1.0, 1.0)[0] * math.sqrt(inputs) * 0.8}
    terms = TERMS[formula]
    drawn = {
        "slope": directions(terms, 0.6, 1.2),
        "shift": generator.uniform(-0.6, 0.6, terms),
        "weight": generator.choice([-1.0, 1.0], terms) * generator.uniform(0.7, 1.3, terms),
    }
    drawn["weight"][1:] *= 0.4  # one term leads: with equal ones, compositions are too rough to be learnt from data
    if formula == "smooth":
        return drawn | {"turn": directions(terms, 0.2, 0.6), "phase": generator.uniform(-0.6, 0.6, terms)}
    return drawn | {"knot": generator.uniform(-0.6, 0.6, terms)}
