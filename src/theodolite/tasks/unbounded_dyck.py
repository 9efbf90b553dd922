"""Nested brackets of any depth: which of them may close next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.dyck import bracket_batch, bracket_spec, innermost_open
from theodolite.tasks.shared.strings import check_training_lengths


@register("unbounded-dyck", "nested brackets of any depth: which may close next")
class UnboundedDyck(Named):
    """After every bracket: the type of the innermost open one, which alone may close next, or `types` if none is open.

    ( [ ( [ ] ) ] )   (types = 2, length = 8; types 0 = () and 1 = [], openings are ids 0 and 1, closings 2 and 3)
    0 1 0 1 0 1 0 2

    A prefix of a well-nested string. Nothing open: a bracket opens. Otherwise a fair coin decides, so that the depth
    grows like the root of the length, where `dyck` keeps it bounded and the language regular. The type of an opening
    bracket is uniform.
    """

    types: int = 2
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, types=self.types)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return bracket_spec(self.types, _share_empty(self.shortest, self.longest), self.shortest, self.longest)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape, device = (members, batch, check_length(self, length)), generator.device
        coins = torch.randint(2, shape, generator=generator, device=device)
        types = torch.randint(self.types, shape, generator=generator, device=device)
        level = (2 * coins - 1).cumsum(dim=-1).abs()  # a free ±1 walk, turned back at 0
        opens = level > F.pad(level[..., :-1], (1, 0))
        return bracket_batch(types.gather(-1, _innermost(level, opens)), level, opens, self.types)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return innermost_open(row, self.types)


def _innermost(level: Tensor, opens: Tensor) -> Tensor:
    """The place of the innermost bracket open: the latest that opened to the current level.

    With places sorted by level, then time, it is the latest opening so far: a level is first reached by an opening,
    so that none is taken from the level below. Where nothing is open, any place stands in.
    """
    length = level.shape[-1]
    bits = (length - 1).bit_length()
    place = torch.arange(length, device=level.device)
    keys = level.bitwise_left_shift(bits).bitwise_or_(place)
    if keys.device.type == "cpu":
        keys.numpy().sort(axis=-1)  # in place; torch's own sort of short rows is ten times slower on a CPU
    else:
        keys = keys.sort(dim=-1).values
    order = keys.bitwise_and_((1 << bits) - 1)
    latest = (place * opens.gather(-1, order)).cummax(dim=-1).values
    return torch.empty_like(order).scatter_(-1, order, order.gather(-1, latest))


@lru_cache(maxsize=256)
def _share_empty(shortest: int, longest: int) -> float:
    """Share of positions with no bracket open, averaged over the lengths; the walk is at 0 with C(2k, k) / 4^k."""
    back, empty, total = 1.0, 0.0, 0.0
    for length in range(1, longest + 1):
        if length % 2 == 0:
            back *= (length - 1) / length
            empty += back
        if length >= shortest:
            total += empty / length
    return total / (longest - shortest + 1)
