"""A stack, and what pops and pushes leave of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec


@register("stack-manipulation", "what pops and pushes leave of a stack, from its top")
class StackManipulation(Named):
    """The stack after some actions, from its top, then a terminator; what follows the terminator is not scored.

    a b b pop pop +a # # # # # # #   (symbols = 2, length = 6; a b is 0 1, pop 2, +a +b push and are 3 4, # is 5)
    · · · ·   ·   ·  a a $ · · · ·   ($ is the terminator, 2)

    The stack stands first, its bottom leftmost: 1 to `length` − 1 symbols, any number equally likely. All actions are
    equally likely; a pop of an empty stack does nothing. The set-up of Delétang et al. 2022, "Neural Networks and the
    Chomsky Hierarchy", where it is deterministic context-free.
    """

    symbols: int = 2
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, symbols=self.symbols)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return replace(
            string_spec(2 * self.symbols + 1, self.shortest, self.longest),
            outputs=self.symbols + 1,
            chance=_best_answer(self.symbols, self.shortest, self.longest),
        )

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, device = check_length(self, length), generator.device
        shape = (members, batch, length)
        place = torch.arange(length + 1, device=device)
        given = torch.randint(1, max(2, length), (members, batch, 1), generator=generator, device=device)
        symbols = torch.randint(self.symbols, shape, generator=generator, device=device)
        actions = torch.randint(self.symbols + 1, shape, generator=generator, device=device)
        acts = place[:length] >= given
        pops = acts & (actions == 0)
        pushed = torch.where(acts, actions - 1, symbols)
        string = torch.where(acts, self.symbols + actions, symbols)

        # A free ±1 walk less its lowest value below 0 is the height of a stack that cannot be popped below 0.
        walk = (1 - 2 * pops.long()).cumsum(dim=-1)
        height = walk - walk.cummin(dim=-1).values.clamp(max=0)
        lowest_after = height.flip(-1).cummin(dim=-1).values.flip(-1)
        stays = ~pops & (height == lowest_after)
        top = height[..., -1:]

        nowhere = length + 1  # a column for what was popped, cut off again
        answer = torch.zeros((members, batch, length + 2), dtype=torch.int64, device=device)
        answer.scatter_(-1, torch.where(stays, top - height, nowhere), pushed)
        answer = torch.where(place == top, self.symbols, answer[..., : length + 1])
        drawn = read_then_answer(string, answer, marker=2 * self.symbols + 1)
        drawn.mask[..., length:] = place <= top
        return drawn

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        string = list(row[: row.index(2 * self.symbols + 1)])
        stack: list[float] = []
        for token in string:
            if token == self.symbols:
                stack = stack[:-1]
            else:
                stack.append(token if token < self.symbols else token - self.symbols - 1)
        answer = [*reversed(stack), float(self.symbols)]
        return [0.0] * len(string) + answer + [0.0] * (len(row) - len(string) - len(answer))


@lru_cache(maxsize=256)
def _best_answer(symbols: int, shortest: int, longest: int) -> float:
    """Share of scored tokens that are one symbol or the terminator, whichever is more, averaged over the lengths.

    `heights[t][k]` is the mean height of a stack of k after t actions, by one step of the walk at a time.
    """
    up = symbols / (symbols + 1)
    heights = [[float(k) for k in range(longest + 1)]]
    for _ in range(longest - 1):
        last = heights[-1]
        heights.append([up * last[k + 1] + (1 - up) * last[max(k - 1, 0)] for k in range(len(last) - 1)])
    symbol, terminator = 0.0, 0.0
    for length in range(shortest, longest + 1):
        given = range(1, max(2, length))
        height = sum(heights[length - k][k] for k in given) / len(given)
        symbol += height / (height + 1) / symbols
        terminator += 1 / (height + 1)
    return max(symbol, terminator) / (longest - shortest + 1)
