"""The matrix M_ij = y(a_i, b_j) of a scalar function at points of the two sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from theodolite.instruments.scalar import Evaluate
from theodolite.partition import Partition

_CPU_NUMBERS = 1 << 20  # input numbers evaluated at a time: few enough to stay near the cache
_CUDA_NUMBERS = 1 << 26


def pair_matrix(
    evaluate: Evaluate,
    a: Tensor,
    b: Tensor,
    partition: Partition,
    progress: Callable[[float], None] | None = None,
    numbers: int | None = None,
) -> Tensor:
    """`a` is (rows, |A|, features) and `b` (columns, |B|, features); evaluated in tiles of about `numbers` inputs."""
    rows, columns = a.shape[0], b.shape[0]
    matrix = torch.empty(rows, columns, dtype=torch.float64, device=a.device)
    for top, left, tile in tiles(evaluate, a, b, partition, numbers):
        matrix[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
        if progress is not None:
            progress(tile.numel() / matrix.numel())
    return matrix


def tiles(
    evaluate: Evaluate, a: Tensor, b: Tensor, partition: Partition, numbers: int | None = None
) -> Iterator[tuple[int, int, Tensor]]:
    """The same matrix piece by piece: (top, left, tile), a whole band of rows before the next."""
    rows, columns = a.shape[0], b.shape[0]
    per_pair = partition.sites * a.shape[2]
    numbers = numbers or (_CUDA_NUMBERS if a.device.type == "cuda" else _CPU_NUMBERS)
    pairs = max(1, numbers // per_pair)
    wide = min(columns, pairs)
    high = max(1, pairs // wide)
    order_a, order_b = (torch.tensor(side, device=a.device) for side in (partition.a, partition.b))
    for top in range(0, rows, high):
        part_a = a[top : top + high]
        for left in range(0, columns, wide):
            part_b = b[left : left + wide]
            shape = (part_a.shape[0], part_b.shape[0], partition.sites, a.shape[2])
            x = torch.empty(shape, dtype=a.dtype, device=a.device)
            x[:, :, order_a] = part_a[:, None]
            x[:, :, order_b] = part_b[None, :]
            yield top, left, evaluate(x.flatten(0, 1)).view(shape[:2])
