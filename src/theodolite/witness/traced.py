"""The computation graph of a module on one input, and which of its nodes hold a value of their own."""

from __future__ import annotations

import copy
import math
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

from theodolite.errors import BadInput


@dataclass(frozen=True)
class Slot:
    """A node with a value of its own; `depth` counts the slots on the longest way from the input to it, itself too."""

    node: fx.Node
    shape: tuple[int, ...]
    depth: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def slots_of(module: nn.Module, example: Tensor) -> tuple[fx.GraphModule, list[Slot], int]:
    """The graph, its slots in the order they are computed, and which of them is the output."""
    graph = _graph(module, example)
    values = _values(graph, example[0])
    slots: list[Slot] = []
    depth: dict[fx.Node, int] = {}  # of every node that depends on the input
    holds: dict[fx.Node, int] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            depth[node] = 0
        if node.op != "call_function":
            continue
        read = [depth[source] for source in node.all_input_nodes if source in depth]
        if not read:
            continue  # a constant, such as a mask
        depth[node] = max(read)
        value = values[node]
        if isinstance(value, Tensor) and value.is_floating_point() and not _is_view(node):
            depth[node] += 1
            holds[node] = len(slots)
            slots.append(Slot(node, tuple(value.shape), depth[node]))
    (returned,) = (node.args[0] for node in graph.graph.nodes if node.op == "output")
    if not isinstance(returned, fx.Node) or returned not in holds:
        raise BadInput(f"'{type(module).__name__}' returns no number it computed from its input: return one tensor")
    return graph, slots, holds[returned]


def _graph(module: nn.Module, example: Tensor) -> fx.GraphModule:
    if example.dim() < 2:
        raise BadInput(f"an example input of shape {tuple(example.shape)} is no batch: add a dimension in front")
    kept = copy.deepcopy(module).eval().requires_grad_(False)

    def one(x: Tensor) -> Any:
        output = kept(x.unsqueeze(0))
        if not isinstance(output, Tensor) or output.dim() < 1 or output.shape[0] != 1:
            raise BadInput(f"'{type(module).__name__}' returns no batch for a batch: return one tensor, batch first")
        return output.squeeze(0).clone()  # a copy is a value of its own, whatever view the module ends with

    try:
        return make_fx(torch.func.functionalize(one))(example[0])
    except BadInput:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BadInput(
            f"'{type(module).__name__}' cannot be traced ({reason}): its forward may not branch on values"
        ) from error


def _values(graph: fx.GraphModule, x: Tensor) -> dict[fx.Node, Any]:
    class Record(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            found[n] = super().run_node(n)
            return found[n]

    found: dict[fx.Node, Any] = {}
    with torch.no_grad():
        Record(graph).run(x)
    return found


def _is_view(node: fx.Node) -> bool:
    """An operation whose result shares the memory of what it is given, or one of the parts of such a result."""
    if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        return _is_view(node.args[0])
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(result.alias_info is not None for result in schema.returns)
