"""What the recurrences with a memory share: how their kernels are tiled, and products over all tokens.

A program holds a block of rows of one member and runs over all tokens. A token's states travel through global memory,
which they are results of anyway; the weights are read anew at every token, from the chip's second-level cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

PROGRAMS = 132  # at work at once: the multiprocessors of an H200


@dataclass(frozen=True)
class Tiling:
    rows: int  # of a program
    inner: int  # how much of the width is multiplied at once
    warps: int
    stages: int  # tiles of weights on their way
    memory: int  # numbers of a program's memories that are moved at once


def fits(width: int, cell: int) -> bool:
    """Whether a multiprocessor holds what the kernels keep there: the weights between a controller and its memory
    beside tiles of the others."""
    spoken = padded(cell + 5)
    return spoken <= 32 and padded(width) * spoken <= 2**14


def tiling(members: int, rows: int, width: int) -> Tiling:
    """Small blocks of rows where all are at work at once, a program on every multiprocessor; else larger ones, since
    every block reads all weights."""
    whole = padded(width)
    if whole <= 64:
        return Tiling(16, min(whole, 32), 4, 3, 2048)
    if whole > 512:
        return Tiling(16, 16, 8, 2, 2048)
    block = 16 if members * -(-rows // 16) <= PROGRAMS else 32
    return Tiling(block, 32 if whole <= 256 else 16, 8, 3, 2048)


def padded(size: int) -> int:
    """To a power of two that matrices can be multiplied at."""
    return max(16, 1 << (size - 1).bit_length())


def options(at: Tiling, **more: Any) -> dict[str, Any]:
    sizes = {"ROWS": at.rows, "INNER": at.inner, "SPAN": at.memory // at.rows}
    return {**more, **sizes, "num_warps": at.warps, "num_stages": at.stages}


def over_tokens(one: Tensor, other: Tensor, precision: str) -> Tensor:
    """Σ over tokens and rows of one ⊗ other, for every member: the gradient of the weights between the two."""
    one, other = one.flatten(1, 2), other.flatten(1, 2)
    if precision == "bf16":
        return (one.mT.bfloat16() @ other.bfloat16()).to(torch.float32)
    return one.mT @ other


def flat(tensor: Tensor, kept: int) -> Tensor:
    """With all axes before the last `kept` made one."""
    cut = tensor.ndim - kept
    return tensor.reshape(math.prod(tensor.shape[:cut]), *tensor.shape[cut:]).contiguous()
