"""What predicts as an ONNX file, written byte by byte: onnxruntime and others run it without this package, or Python.

The input `x` (row, variable) holds the variables as numbers, in the graph's order; the output `y` (row,) is the
prediction, the weighted mean of all models and of the networks of their folds, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from theodolite.errors import BadInput
from theodolite.nets.compositional_net import Perceptrons, Products, Sums
from theodolite.structure.additive import Additive
from theodolite.structure.boosting import Forest
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.process import GaussianProcess
from theodolite.structure.stacking import WeightedMean
from theodolite.structure.surrogate.gaussian_process import TINY
from theodolite.training.stacked import Stacked
from theodolite.version import __version__

OPSET, IR_VERSION = 17, 8
_TYPES = {np.dtype(np.float64): 11, np.dtype(np.int64): 7}
_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu"}


def onnx_bytes(mean: WeightedMean, variables: int) -> bytes:
    graph = _Graph()
    said = graph.op("Mul", graph.op("ReduceSum", "x", graph.constant([1]), keepdims=0), graph.constant(np.float64(0)))
    for name, model in mean.models.items():
        if isinstance(model, Fitted):
            part = _network(graph, model)
        elif isinstance(model, Forest):
            part = _trees(graph, model)
        elif isinstance(model, Additive):
            part = _curves(graph, model)
        else:
            assert isinstance(model, GaussianProcess)
            part = _process(graph, model)
        said = graph.op("Add", said, graph.op("Mul", part, graph.constant(np.float64(mean.weights[name]))))
    graph.op("Add", said, graph.constant(np.float64(mean.offset)), output="y")
    return graph.file(variables)


def _network(graph: _Graph, model: Fitted) -> str:
    """(row,): the mean over folds."""
    if model.activation not in _ACTIVATIONS:
        fit = " or ".join(_ACTIVATIONS)
        raise BadInput(f"a network of '{model.activation}' units cannot be written as ONNX: fit one with {fit}")
    members, variables = len(model.members), len(model.centre)
    scaled = graph.op("Div", graph.op("Sub", "x", graph.constant(model.centre)), graph.constant(model.scale))
    columns = graph.op("Unsqueeze", graph.op("Transpose", scaled, perm=[1, 0]), graph.constant([0]))
    found = [graph.op("Expand", columns, graph.constant([members, variables, 1]))]
    net: Any = model.module
    weights = Stacked(net).named(torch.from_numpy(model.members))
    for place, stage in enumerate(net.stages):
        said = []
        for number, (block, read) in enumerate(zip(stage.blocks, stage.reads, strict=True)):
            first = f"stages.{place}.blocks.{number}."
            own = {name[len(first) :]: one.numpy() for name, one in weights.items() if name.startswith(first)}
            said.append(_block(graph, block, own, _read(graph, read, found, members), _ACTIVATIONS[model.activation]))
        found.append(said[0] if len(said) == 1 else graph.op("Concat", *said, axis=1))
    shared = graph.op("Mul", found[-1], graph.constant(model.shares[:, None, None]))
    mean = graph.op("ReduceSum", shared, graph.constant([0, 1]), keepdims=0)
    spread = graph.op("Mul", mean, graph.constant(np.float64(model.spread)))
    return graph.op("Add", spread, graph.constant(np.float64(model.offset)))


def _trees(graph: _Graph, forest: Forest) -> str:
    """(row,): every row goes down all trees at once, a level at a time; a leaf leads to itself."""
    arrays, _ = forest.state()
    feature, threshold, left, right, value, roots = (graph.constant(one) for one in arrays.values())
    ones = graph.op("Mul", graph.op("Gather", "x", graph.constant([0]), axis=1), graph.constant(np.float64(0)))
    zeros = graph.op("Cast", ones, to=_TYPES[np.dtype(np.int64)])  # (row, 1)
    at = graph.op("Add", zeros, graph.op("Unsqueeze", roots, graph.constant([0])))
    for _ in range(forest.depth):
        read = graph.op("GatherElements", "x", graph.op("Gather", feature, at, axis=0), axis=1)
        below = graph.op("LessOrEqual", read, graph.op("Gather", threshold, at, axis=0))
        at = graph.op("Where", below, graph.op("Gather", left, at, axis=0), graph.op("Gather", right, at, axis=0))
    leaves = graph.op("ReduceSum", graph.op("Gather", value, at, axis=0), graph.constant([1]), keepdims=0)
    return graph.op("Add", leaves, graph.constant(np.float64(forest.offset)))


def _curves(graph: _Graph, model: Additive) -> str:
    """(row,): a line through knots is a sum of ramps, clipped to its ends: slope · min(max(x − knot, 0), gap)."""
    gaps = np.diff(model.knots, axis=1)
    slopes = np.divide(np.diff(model.heights, axis=1), gaps, out=np.zeros_like(gaps), where=gaps > 0)
    places = np.repeat(np.arange(len(gaps)), gaps.shape[1])
    read = graph.op("Gather", "x", graph.constant(places), axis=1)
    risen = graph.op("Relu", graph.op("Sub", read, graph.constant(model.knots[:, :-1].ravel())))
    ramps = graph.op("Min", risen, graph.constant(gaps.ravel()))
    said = graph.op("MatMul", ramps, graph.constant(slopes.ravel()))
    return graph.op("Add", said, graph.constant(np.float64(model.offset + model.heights[:, 0].sum())))


def _process(graph: _Graph, model: GaussianProcess) -> str:
    """(row,): the covariance with every training row times its weight."""
    number = lambda value: graph.constant(np.float64(value))
    scaled = graph.op("Mul", graph.op("Sub", "x", graph.constant(model.centre)), graph.constant(model.rates))
    own = graph.op("ReduceSum", graph.op("Mul", scaled, scaled), graph.constant([1]), keepdims=1)
    apart = graph.op("Sub", own, graph.op("MatMul", scaled, graph.constant(2 * model.rows.T)))
    square = graph.op("Relu", graph.op("Add", apart, graph.constant((model.rows**2).sum(1))))
    if model.kind == "gaussian":
        near = graph.op("Exp", graph.op("Mul", square, number(-0.5)))
    else:
        distance = graph.op("Sqrt", graph.op("Add", graph.op("Mul", square, number(5)), number(TINY)))
        third = graph.op("Add", graph.op("Mul", distance, number(1 / 3)), number(1))
        near = graph.op("Add", graph.op("Mul", distance, third), number(1))
        near = graph.op("Mul", near, graph.op("Exp", graph.op("Neg", distance)))
    return graph.op("Add", graph.op("MatMul", near, graph.constant(model.weights)), number(model.offset))


def _read(graph: _Graph, read: Any, found: list[str], members: int) -> str:
    """(member, node, row, point) of what a group of nodes reads."""
    used = [found[stage] for stage in read.stages]
    rows = used[0] if len(used) == 1 else graph.op("Concat", *used, axis=1)
    index = list(range(read.first, read.first + read.count)) if read.together else read.index.tolist()
    rows = graph.op("Gather", rows, graph.constant(index), axis=1)
    return graph.op("Reshape", rows, graph.constant([members, read.nodes, len(index) // read.nodes, -1]))


def _block(graph: _Graph, block: Any, own: dict[str, Any], u: str, activation: str) -> str:
    """(member, row, point) of what a group of nodes says."""
    affine = lambda weight, u, bias: graph.op(
        "Add", graph.op("MatMul", graph.constant(own[weight]), u), graph.constant(own[bias])
    )
    if isinstance(block, Perceptrons):
        hidden = u
        for layer in range(len(block.weights)):
            hidden = graph.op(activation, affine(f"weights.{layer}", hidden, f"biases.{layer}"))
        said = graph.op("Add", graph.op("MatMul", graph.constant(own["combine"]), hidden), affine("linear", u, "bias"))
    elif isinstance(block, Sums):
        said = affine("weight", u, "bias")
    elif isinstance(block, Products):
        members, factors, outputs, channels = own["weight"].shape
        nodes = own["bias"].shape[1]
        each = graph.op("Reshape", u, graph.constant([members, factors, channels, -1]))
        apart = [members, nodes, factors // nodes, outputs, -1]
        parts = graph.op("Reshape", affine("weight", each, "offset"), graph.constant(apart))
        said = graph.op("Gather", parts, graph.constant(np.int64(0)), axis=2)
        for factor in range(1, factors // nodes):
            said = graph.op("Mul", said, graph.op("Gather", parts, graph.constant(np.int64(factor)), axis=2))
        said = graph.op("Add", said, graph.constant(own["bias"]))
    else:
        raise BadInput(f"a constituent of the kind {type(block).__name__} cannot be written as ONNX")
    rows = own["bias"].shape[1] * own["bias"].shape[2]
    return graph.op("Reshape", said, graph.constant([len(own["bias"]), rows, -1]))


class _Graph:
    """Nodes and constants of an ONNX graph, each encoded as it is added."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        name = f"c{len(self.constants)}"
        dims = b"".join(_number(1, size) for size in array.shape)
        raw = _part(9, np.ascontiguousarray(array).tobytes())
        self.constants.append(dims + _number(2, _TYPES[array.dtype]) + _part(8, name.encode()) + raw)
        return name

    def op(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"n{len(self.nodes)}"
        encoded = b"".join(_part(1, one.encode()) for one in inputs) + _part(2, name.encode()) + _part(4, kind.encode())
        self.nodes.append(encoded + b"".join(_part(5, _attribute(*item)) for item in attributes.items()))
        return name

    def file(self, variables: int) -> bytes:
        inputs = _part(11, _value("x", ["row", variables]))
        named = _part(2, b"theodolite")
        graph = (
            b"".join(_part(1, node) for node in self.nodes)
            + named
            + b"".join(_part(5, constant) for constant in self.constants)
            + inputs
            + _part(12, _value("y", ["row"]))
        )
        opset = _part(8, _part(1, b"") + _number(2, OPSET))
        made = _part(2, b"theodolite") + _part(3, __version__.encode())
        return _number(1, IR_VERSION) + made + _part(7, graph) + opset


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, list):
        return _part(1, name.encode()) + b"".join(_number(8, one) for one in value) + _number(20, 7)
    return _part(1, name.encode()) + _number(3, value) + _number(20, 2)


def _value(name: str, shape: Sequence[str | int]) -> bytes:
    """A tensor of doubles; a size that is a word is any."""
    dims = [_part(2, one.encode()) if isinstance(one, str) else _number(1, one) for one in shape]
    tensor = _number(1, _TYPES[np.dtype(np.float64)]) + _part(2, b"".join(_part(1, dim) for dim in dims))
    return _part(1, name.encode()) + _part(2, _part(1, tensor))


def _number(field: int, value: int) -> bytes:
    """A field of protocol buffers that is a number."""
    return _varint(field << 3) + _varint(value)


def _part(field: int, content: bytes) -> bytes:
    """A field of protocol buffers that is text, bytes or a message."""
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; of a negative number its 64 bits."""
    value &= (1 << 64) - 1
    count = max(1, math.ceil(value.bit_length() / 7))
    sevens = [value >> 7 * place & 127 for place in range(count)]
    return bytes([*(one | 128 for one in sevens[:-1]), sevens[-1]])
