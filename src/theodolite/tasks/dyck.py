"""Nested brackets of bounded depth: which of them may close next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, token_spec


@register("dyck", "nested brackets of bounded depth: which may close next")
class Dyck(Named):
    """After every bracket: the type of the innermost open one, which alone may close next, or `types` if none is open.

    ( [ ] ( ) ) [   (types = 2, length = 7; types 0 = () and 1 = [], openings are ids 0 and 1, closings 2 and 3)
    0 1 0 0 0 2 1

    A prefix of a well-nested string. Nothing open: a bracket opens. `depth` brackets open: the innermost closes.
    Otherwise a fair coin decides. The type of an opening bracket is uniform.
    """

    types: int = 2
    depth: int = 4
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, types=self.types, depth=self.depth)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return bracket_spec(
            self.types, _share_empty(self.depth, self.shortest, self.longest), self.shortest, self.longest
        )

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape, device = (members, batch, check_length(self, length)), generator.device
        coins = torch.randint(2, shape, generator=generator, device=device)
        types = torch.randint(self.types, shape, generator=generator, device=device)

        # A triangle wave folds a free ±1 walk into one on 0 … depth that turns back at both ends.
        depth = min(self.depth, shape[-1])  # no string climbs higher
        small = torch.int16 if shape[-1] < 2**14 else torch.int32  # a quarter of the memory to go through
        walk = (2 * coins - 1).cumsum(dim=-1, dtype=small)
        level = depth - (walk.remainder(2 * depth) - depth).abs()
        opens = level > F.pad(level[..., :-1], (1, 0))

        return bracket_batch(types.gather(-1, _innermost(level, opens, depth)), level, opens, self.types)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return innermost_open(row, self.types)


def bracket_spec(types: int, empty: float, shortest: int, longest: int) -> TaskSpec:
    """Which of `types` brackets may close next, or none of them; `empty` is the share of positions with none open."""
    return token_spec(2 * types, types + 1, (shortest, longest), chance=max(empty, (1 - empty) / types))


def bracket_batch(top: Tensor, level: Tensor, opens: Tensor, types: int) -> Batch:
    """Strings from how many brackets are open after every token and the type `top` of the innermost of them."""
    inputs = torch.where(opens, top, types + F.pad(top[..., :-1], (1, 0)))
    return Batch(inputs, torch.where(level == 0, types, top), torch.ones_like(opens))


def innermost_open(row: Sequence[float], types: int) -> list[float]:
    """After every bracket the type of the innermost open one, or `types`: with a stack, one by one."""
    stack: list[float] = []
    found = []
    for bracket in row:
        if bracket < types:
            stack.append(bracket)
        elif not stack or stack.pop() != bracket - types:
            raise ValueError(f"the brackets {row} are not nested")
        found.append(stack[-1] if stack else float(types))
    return found


def _innermost(level: Tensor, opens: Tensor, depth: int) -> Tensor:
    """Which opening bracket is the innermost one open, all openings of a string numbered level by level from 0.

    That bracket is the latest opened to the current level, so counting each level's openings so far finds it without
    a loop over time. Where nothing is open, the latest of level 1 stands in.
    """
    levels = torch.arange(1, depth + 1, device=level.device, dtype=level.dtype).view(-1, 1, 1, 1)
    opened = (level * opens == levels).cumsum(dim=-1, dtype=level.dtype)
    total = opened[..., -1:]
    number = opened + (total.cumsum(dim=0, dtype=level.dtype) - total - 1)
    return number.gather(0, (level - 1).clamp(min=0).long().unsqueeze(0)).squeeze(0).long()


@lru_cache(maxsize=256)
def _share_empty(depth: int, shortest: int, longest: int) -> float:
    """Share of positions with no bracket open, averaged over the lengths: the exact law of the walk, step by step."""
    depth = min(depth, longest)  # no string climbs higher
    law = [1.0] + [0.0] * depth
    empty, total = 0.0, 0.0
    for length in range(1, longest + 1):
        moved = [0.0] * (depth + 1)
        for level, probability in enumerate(law):
            ups = 1.0 if level == 0 else 0.0 if level == depth else 0.5
            if ups:
                moved[level + 1] += ups * probability
            if ups < 1:
                moved[level - 1] += (1 - ups) * probability
        law = moved
        empty += law[0]
        if length >= shortest:
            total += empty / length
    return total / (longest - shortest + 1)
