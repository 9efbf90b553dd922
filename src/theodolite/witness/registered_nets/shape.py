"""From what a construction needs to the shape of a registered net, as the user asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.nets.contract import canonical_arguments, nets


def fitted(net: str, needed: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The shape to build: sizes as large as asked for, never smaller than needed; None where what is asked for does
    not hold the construction. `tokens` is a hint that no net's weights depend on."""
    asked = canonical_arguments(net, asked, nets[net].arguments)
    shape = dict(needed)
    for name, value in asked.items():
        if name == "tokens":
            continue
        if name not in needed:
            shape[name] = value
        elif name in ("depth", "width", "kernel"):
            if not isinstance(value, int) or value < needed[name]:
                return None
            shape[name] = value
        elif value != needed[name]:
            return None
    return shape


def blank(net: str, shape: Mapping[str, Any]) -> nn.Module:
    """The registered net in double precision, every parameter 0 but the weights of norms, which are 1."""
    with torch.device("meta"):  # shapes only: drawing weights would move the global generator
        module = nets[net].build(**shape)
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            value = 1.0 if isinstance(part, nn.LayerNorm) and name == "weight" else 0.0
            setattr(part, name, nn.Parameter(torch.full(parameter.shape, value, dtype=torch.float64)))
    return module


def put(parameter: Tensor, values: Any, row: int = 0, column: int = 0) -> None:
    """Write a block into a parameter, its upper left corner at this row and column; the rest stays as it is."""
    block = torch.as_tensor(values, dtype=parameter.dtype)
    sides = zip((row, column), block.shape, strict=False)
    parameter.data[tuple(slice(start, start + size) for start, size in sides)] = block
