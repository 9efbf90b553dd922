"""How a kernel over rows is cut into programs, and how it is told where its tensors lie."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor


def tile(width: int, total: int, warps: int, vectors: int) -> dict[str, Any]:
    """How `total` rows with `width` numbers each are cut: a thread has `vectors` of up to 4 numbers each."""
    padded = 1 << (width - 1).bit_length()
    vector = min(padded, 4)
    rows = max(warps * 32 * vectors * vector // padded, 1)
    cut = {"WIDTH": padded, "VECTOR": vector, "ROWS": rows, "FAR": total >= 2**31 - rows, "num_warps": warps}
    return {"grid": (-(-total // rows),), "total": total, **cut}


def laid_out(x: Tensor) -> tuple[Any, ...]:
    """With its strides over members, batch, heads and tokens; copied where a load of several numbers would not fit."""
    x = with_members(x)
    together = math.gcd(x.shape[-1], 4)  # numbers loaded at once
    steps = [0 if size == 1 else step for size, step in zip(x.shape, x.stride(), strict=True)]
    aligned = x.data_ptr() % (together * x.element_size()) == 0 and not any(step % together for step in steps[:-1])
    if (x.shape[-1] > 1 and x.stride(-1) != 1) or not aligned:
        x = x.contiguous()
        steps = x.stride()
    return x, *steps[:-1]


def with_members(x: Tensor) -> Tensor:
    """One axis of members in front of the last four."""
    return x.unsqueeze(0) if x.dim() == 4 else x.flatten(0, -5)
