"""The matrix M_ij = y(a_i, b_j) of a scalar function at points of the two sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from theodolite.instruments.rank.scalar import Evaluate
from theodolite.partition import Partition

# Numbers in the net's widest tensor for one tile. 4 MiB stay in a CPU's cache and are given back by the allocator
# without asking the system for them anew, which was a third of the time at 16 MiB; 1 GiB fills a GPU.
_CPU_NUMBERS = 1 << 19
_CUDA_NUMBERS = 1 << 27


def pair_matrix(
    evaluate: Evaluate,
    a: Tensor,
    b: Tensor,
    partition: Partition,
    progress: Callable[[float], None] | None = None,
    numbers: int | None = None,
) -> Tensor:
    """`a` is (rows, |A|, features), `b` (columns, |B|, features); a tile's widest tensor holds about `numbers`."""
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
    pairs = _pairs_at_once(evaluate, a, partition, numbers)
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


def _pairs_at_once(evaluate: Evaluate, a: Tensor, partition: Partition, numbers: int | None) -> int:
    """How many pairs keep the widest tensor of the net within the budget, found by evaluating two and three of them.

    What does not grow with the batch is no part of it: weights laid out anew, masks and tables of positions would
    leave room for a single pair at a time.
    """
    sizes = []
    for batch in (2, 3):
        with _Sizes() as seen:
            evaluate(a.new_zeros(batch, partition.sites, a.shape[2]))
        sizes.append(seen.numbers)
    two, three = sizes
    grown = [more - less for less, more in zip(two, three, strict=True)] if len(two) == len(three) else two
    per_pair = max([partition.sites * a.shape[2], *grown])
    budget = numbers or (_CUDA_NUMBERS if a.device.type == "cuda" else _CPU_NUMBERS)
    return max(1, budget // per_pair)


class _Sizes(TorchDispatchMode):
    """Watches every operation and keeps the size of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.numbers.append(result.numel() if isinstance(result, Tensor) else 0)
        return result
