"""Data for tensors that have none: what a model asks about its values is answered with something of the right shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_Answer = Callable[..., Any]


def _places(x: torch.Tensor, *, as_tuple: bool = False) -> Any:
    """As if there were as many as the first axis is long."""
    rows = x.shape[0] if x.dim() else 1
    found = torch.zeros(rows, max(1, x.dim()), dtype=torch.long, device="meta")
    return found.unbind(1) if as_tuple else found


def _where(condition: torch.Tensor) -> Any:
    return _places(condition, as_tuple=True)


def _index(index: Any) -> Any:
    """The number of an expert is looked up in its tensor: the first."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    whole = isinstance(index, torch.Tensor) and index.is_meta and index.dim() == 0 and not index.is_floating_point()
    return 0 if whole else index


_ANSWERS: dict[Any, _Answer] = {
    torch.nonzero: _places,
    torch.Tensor.nonzero: _places,
    torch.Tensor.item: lambda x: 0,
    torch.Tensor.__bool__: lambda x: False,
    torch.Tensor.__int__: lambda x: 0,
    torch.Tensor.__index__: lambda x: 0,
    torch.Tensor.__format__: lambda x, how: "0",  # the first expert of a dictionary of them
}


class PretendedData(TorchFunctionMode):
    """Shapes are still checked by every other operation."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        on_meta = bool(args) and isinstance(args[0], torch.Tensor) and args[0].is_meta
        if on_meta and func in _ANSWERS:
            return _ANSWERS[func](*args, **kwargs)
        if on_meta and func is torch.where and len(args) == 1 and not kwargs:
            return _where(*args)
        if on_meta and func is torch.Tensor.__getitem__:
            args = (args[0], _index(args[1]))
        return func(*args, **kwargs)
