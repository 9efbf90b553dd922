"""Networks of threshold units, or of ReLU units, with whole weights: what circuits and machines are compiled to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

Activation = Literal["step", "relu"]
_WORKING = 1 << 25  # numbers held at once while a batch is evaluated


@dataclass(frozen=True)
class Affine:
    """constant + Σ weight · node, nodes numbered from the inputs on."""

    constant: int = 0
    weights: Mapping[int, int] = field(default_factory=dict)

    @staticmethod
    def of(node: int) -> Affine:
        return Affine(0, {node: 1})

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.weights)
        weights = dict(self.weights)
        for node, weight in other.weights.items():
            weights[node] = weights.get(node, 0) + weight
        return Affine(self.constant + other.constant, {n: w for n, w in weights.items() if w})

    def __mul__(self, factor: int) -> Affine:
        return Affine(self.constant * factor, {n: w * factor for n, w in self.weights.items()} if factor else {})

    def __sub__(self, other: Affine) -> Affine:
        return self + other * -1


@dataclass(frozen=True)
class Edges:
    """The non-zero weights of one layer: unit `rows` (from 0 in the layer) reads node `cols` times `weights`."""

    rows: np.ndarray
    cols: np.ndarray
    weights: np.ndarray
    biases: np.ndarray

    @staticmethod
    def of(forms: Sequence[Affine]) -> Edges:
        rows = [row for row, form in enumerate(forms) for _ in form.weights]
        cols = [node for form in forms for node in form.weights]
        weights = [weight for form in forms for weight in form.weights.values()]
        biases = [form.constant for form in forms]
        return Edges(*(np.array(part, dtype=np.int64) for part in (rows, cols, weights, biases)))


class UnitNetwork(nn.Module):
    """Layers of units on 0/1 inputs; a unit may read the inputs and any earlier layer, each a node with a number.

    A step unit gives 1 where bias + Σ weight · node ≥ 0, else 0; a ReLU unit gives max(0, that). The outputs are
    affine in the nodes. Parameters are the weights that are not 0 and one bias a unit; an output of a step network
    that is one of its units has none of its own.
    """

    def __init__(
        self, inputs: int, layers: Sequence[Edges], outputs: Sequence[Affine], activation: Activation = "step"
    ) -> None:
        super().__init__()
        self.inputs, self.activation = inputs, activation
        self.chosen: Tensor
        starts, first = [], inputs
        for layer in layers:
            starts.append(first)
            first += len(layer.biases)
        self.nodes, self.units, self.depth = first, first - inputs, len(layers)
        self.layers = nn.ModuleList(_Layer(layer, start) for layer, start in zip(layers, starts, strict=True))
        bare = activation == "step" and all(o.constant == 0 and list(o.weights.values()) == [1] for o in outputs)
        self.readout = None if bare else _Layer(Edges.of(outputs), first)
        chosen = [next(iter(o.weights)) for o in outputs] if bare else []
        self.register_buffer("chosen", torch.tensor(chosen, dtype=torch.int64))

    def forward(self, x: Float[Tensor, "batch input"]) -> Float[Tensor, "batch output"]:
        at_once = max(1, _WORKING // max(1, self.nodes))
        return torch.cat([self._evaluate(part) for part in x.split(at_once)]) if len(x) else self._evaluate(x)

    def _evaluate(self, x: Tensor) -> Tensor:
        values = x.new_zeros(self.nodes, len(x))
        values[: self.inputs] = x.T
        for layer in self.layers:
            assert isinstance(layer, _Layer)
            sums = layer(values)
            values[layer.start : layer.start + len(sums)] = (sums >= 0) if self.activation == "step" else sums.relu()
        return (self.readout(values) if self.readout is not None else values[self.chosen]).T


class _Layer(nn.Module):
    """bias + weights · nodes for a whole layer, the weights sparse; only nodes before `start` are read."""

    def __init__(self, edges: Edges, start: int) -> None:
        super().__init__()
        self.start = start
        self.indices: Tensor
        self.first = int(edges.cols.min()) if len(edges.cols) else 0
        order = np.lexsort((edges.cols, edges.rows))
        indices = np.stack([edges.rows[order], edges.cols[order] - self.first])
        self.register_buffer("indices", torch.from_numpy(indices))
        self.weight = nn.Parameter(torch.from_numpy(edges.weights[order].astype(np.float64)))
        self.bias = nn.Parameter(torch.from_numpy(edges.biases.astype(np.float64)))

    def forward(self, values: Tensor) -> Tensor:
        read = values[self.first : self.start].detach()
        shape = (len(self.bias), len(read))
        matrix = torch.sparse_coo_tensor(
            self.indices, self.weight.detach().to(values.dtype), shape, is_coalesced=True, check_invariants=False
        )
        return torch.sparse.mm(matrix, read) + self.bias.detach().to(values.dtype).unsqueeze(-1)


class Builder:
    """Collects units one by one and sorts them into layers by the longest way from an input."""

    def __init__(self, inputs: int, activation: Activation = "step") -> None:
        self.inputs: int = inputs
        self.activation: Activation = activation
        self._forms: list[Affine] = []
        self._levels = [0] * inputs
        self._made: dict[tuple[int, frozenset[tuple[int, int]]], Affine] = {}

    def unit(self, form: Affine) -> Affine:
        """A unit that reads `form`, the same one for the same form; what it gives is a form again."""
        key = (form.constant, frozenset(form.weights.items()))
        if key in self._made:
            return self._made[key]
        self._levels.append(1 + max((self._levels[node] for node in form.weights), default=0))
        self._forms.append(form)
        self._made[key] = Affine.of(len(self._levels) - 1)
        return self._made[key]

    def build(self, outputs: Sequence[Affine], layered: bool = False) -> UnitNetwork:
        """`layered`: every unit reads the layer before it alone; copies carry what is needed later."""
        if self.activation == "step":  # an output is a unit
            bare = [list(o.weights.values()) == [1] and o.constant == 0 and _node(o) >= self.inputs for o in outputs]
            outputs = [o if is_unit else self.unit(o + -1) for o, is_unit in zip(outputs, bare, strict=True)]
        if layered:
            return self._layered(outputs)
        return _network(self.inputs, self._forms, self._levels, outputs, self.activation)

    def _layered(self, outputs: Sequence[Affine]) -> UnitNetwork:
        forms, levels, copies = list(self._forms), list(self._levels), {}

        def at(node: int, level: int) -> int:
            """The node's value in that layer: 1[v − 1 ≥ 0] = v for 0 and 1, relu(v) = v for v ≥ 0."""
            for place in range(levels[node] + 1, level + 1):
                if (node, place) not in copies:
                    before = copies.get((node, place - 1), node)
                    forms.append(Affine(-1 if self.activation == "step" else 0, {before: 1}))
                    levels.append(place)
                    copies[node, place] = len(levels) - 1
            return copies.get((node, level), node)

        def moved(form: Affine, level: int) -> Affine:
            return Affine(form.constant, {at(node, level): weight for node, weight in form.weights.items()})

        for place in range(len(self._forms)):
            forms[place] = moved(forms[place], levels[self.inputs + place] - 1)
        last = max(levels, default=0)
        outputs = [moved(form, last) for form in outputs]
        return _network(self.inputs, forms, levels, outputs, self.activation)


def _node(form: Affine) -> int:
    return next(iter(form.weights))


def _network(
    inputs: int, forms: Sequence[Affine], levels: Sequence[int], outputs: Sequence[Affine], activation: Activation
) -> UnitNetwork:
    """Renumber the units layer by layer."""
    order = sorted(range(len(levels)), key=lambda node: (levels[node], node))
    number = {node: place for place, node in enumerate(order)}

    def renumbered(form: Affine) -> Affine:
        return Affine(form.constant, {number[node]: weight for node, weight in form.weights.items()})

    by_level: dict[int, list[Affine]] = {}
    for node in order[inputs:]:
        by_level.setdefault(levels[node], []).append(renumbered(forms[node - inputs]))
    layers = [Edges.of(by_level[level]) for level in sorted(by_level)]
    return UnitNetwork(inputs, layers, [renumbered(form) for form in outputs], activation)
