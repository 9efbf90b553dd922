"""Products of many small matrices on the tensor cores, as exact as float32.

A float32 number is the sum of two TF32 numbers and a rest of 2⁻²² of it; three products of those give the product to
float32's accuracy at a multiple of the rate of the units that multiply float32 numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from theodolite.kernels.launch import declare, precision, usable

_LARGE, _LONG = 128 * 128, 1024


def _run(left: Tensor, right: Tensor, precision: str) -> Tensor:
    from theodolite.kernels.product_triton import launch

    found = left.new_empty(left.shape[0], left.shape[1], right.shape[2])
    launch(left, right, found, precision)
    return found


def _shapes(left: Tensor, right: Tensor, precision: str) -> Tensor:
    return left.new_empty(left.shape[0], left.shape[1], right.shape[2])


batched_product = declare("batched_product(Tensor left, Tensor right, str precision) -> Tensor", _run, _shapes)


def with_products(graph: GraphModule) -> GraphModule:
    """The traced operations with this kernel in place of torch's batched products, where it is the faster."""
    aten = torch.ops.aten
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target not in (aten.bmm.default, aten.baddbmm.default):
            continue
        if node.kwargs:
            continue
        *added, left, right = node.args
        if not faster(left.meta["val"], right.meta["val"]):
            continue
        with graph.graph.inserting_before(node):
            found: Node = graph.graph.call_function(batched_product, (left, right, precision()))
            found.meta["val"] = node.meta["val"]
            if added:
                found = graph.graph.call_function(aten.add.Tensor, (found, added[0]))
                found.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(found)
        graph.graph.erase_node(node)
    graph.recompile()
    return graph


def faster(left: Tensor, right: Tensor) -> bool:
    """Whether this kernel is the faster for (member, row, inner) × (member, inner, column) in float32 on a GPU: not for
    large results of long sums, which fill its tiles and cuBLAS's alike."""
    large = left.shape[1] * right.shape[2] >= _LARGE and left.shape[2] >= _LONG
    return left.is_cuda and not large and left.dtype == torch.float32 and usable(left, right)
