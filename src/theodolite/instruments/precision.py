"""In which precision a net can be measured: double, or single for one that makes tensors of single precision inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

_SHORT = (torch.float32, torch.complex64, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Precision:
    """`dtype` is what weights and inputs are given in; `rounding` that of what comes out; `note` says why it is not
    that of double precision."""

    dtype: torch.dtype = torch.float64
    rounding: float = torch.finfo(torch.float64).eps
    note: str | None = None


def precision_of(module: nn.Module, x: Tensor) -> Precision:
    """Found by running the net, whose weights are of double precision, once; one that fails in both fails later."""
    with torch.no_grad(), Watch() as seen:
        failed = _fails(module, x)
    single = torch.finfo(torch.float32).eps
    if failed is None and not seen.single:
        return Precision()
    if failed is None:
        return Precision(rounding=single, note="float32 in parts: the net makes tensors of single precision inside")
    with torch.no_grad():
        again = _fails(module.float(), x.float() if x.is_floating_point() else x)
    module.double()
    if again is not None:
        return Precision()
    return Precision(torch.float32, single, f"float32: the net does not run in float64 ({failed})")


def single_precision(tensor: Tensor) -> bool:
    return tensor.dtype in _SHORT


class Watch(TorchDispatchMode):
    """Whether a tensor of single precision is made."""

    single = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for each in found if isinstance(found, tuple | list) else (found,):
            self.single = self.single or (isinstance(each, Tensor) and single_precision(each))
        return found


def _fails(module: nn.Module, x: Tensor) -> str | None:
    try:
        module(x)
    except Exception as error:
        return (str(error).strip().splitlines() or [type(error).__name__])[0]
    return None
