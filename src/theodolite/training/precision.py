"""How exactly matrices are multiplied while training: float32, TF32, or bfloat16 with weights kept in float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from theodolite.errors import BadInput

Precision = Literal["float32", "tf32", "bf16"]


def check_precision(name: str, device: str) -> Precision:
    """`device` is what was asked for, wherever that is."""
    if name not in get_args(Precision):
        raise BadInput(f"there is no precision '{name}': use {', '.join(get_args(Precision)[:-1])} or bf16")
    if name == "tf32" and not device.startswith("cuda"):
        raise BadInput(f"tf32 is a mode of CUDA devices and this runs on {device}: use float32 or bf16")
    return name  # pyright: ignore[reportReturnType]


@contextmanager
def multiplying(precision: Precision, device: torch.device) -> Iterator[None]:
    """What runs inside multiplies matrices like this."""
    cuda, convolutions = torch.backends.cuda.matmul, cast(Any, torch.backends.cudnn)
    before = cuda.allow_tf32, convolutions.allow_tf32
    cuda.allow_tf32 = convolutions.allow_tf32 = precision == "tf32"
    try:
        # Weights are cast anew in every step: a captured step may not read those of an earlier one.
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16", cache_enabled=False):
            yield
    finally:
        cuda.allow_tf32, convolutions.allow_tf32 = before


def full(outputs: Tensor) -> Tensor:
    """What a net says, in float32 at least: losses and scores are always computed in that."""
    return outputs.float() if outputs.dtype in (torch.bfloat16, torch.float16) else outputs
