"""Multi-query associative recall: look up what stood beside each key."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.permutation import permutations
from theodolite.tasks.shared.strings import check_training_lengths, token_spec


@register("recall", "the value that stood beside each key")
class Recall(Named):
    """`length` pairs of a key and a value, then every key once more, in random order; its value is the answer.

    c 2 a 0 b 2 a b c   (keys = 3, values = 3, length = 3; keys are ids 0 to 2, values 3 to 5)
    · · · · · · 0 2 2

    Keys differ, values are independent. After Arora et al. 2023, "Zoology".
    """

    keys: int = 64
    values: int = 64
    shortest: int = 1
    longest: int = 16

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, keys=self.keys)
        check_pairs(self.name, self.keys, self.values, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return recall_spec(self.keys + self.values, self.values, self.shortest, self.longest, self.keys)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length = check_length(self, length)
        keys, values, order = draw_pairs(self.keys, self.values, (members, batch), length, generator)
        pairs = torch.stack([keys, values + self.keys], dim=-1).flatten(-2)
        return then_ask(pairs, keys.gather(-1, order), values.gather(-1, order))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        pairs = 2 * (len(row) // 3)
        beside = {row[place]: row[place + 1] - self.keys for place in range(0, pairs, 2)}
        return [0.0] * pairs + [beside[key] for key in row[pairs:]]


def recall_spec(vocab: int, values: int, shortest: int, longest: int, possible: int) -> TaskSpec:
    """One of equally likely values for every key that is asked, of `possible` keys."""
    return token_spec(vocab, values, (shortest, longest), chance=1 / values, limit=possible)


def check_pairs(name: str, possible: int, values: int, shortest: int, longest: int) -> None:
    """Refuse values that leave nothing to guess, and more pairs than there are keys."""
    check_at_least(name, 2, values=values)
    check_training_lengths(name, shortest, longest)
    if longest > possible:
        raise BadInput(
            f"longest={longest} pairs need as many different keys in the task '{name}', "
            f"which has {possible}: use {possible} or less, or more keys"
        )


def draw_pairs(
    keys: int, values: int, rows: tuple[int, ...], length: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Three of (*rows, length): keys that differ, the value of each, and in which order the pairs are asked for."""
    chosen = permutations(rows, keys, generator)[..., :length]
    beside = torch.randint(values, (*rows, length), generator=generator, device=generator.device)
    return chosen, beside, permutations(rows, length, generator)


def then_ask(read: Tensor, questions: Tensor, answers: Tensor, scored: Tensor | None = None) -> Batch:
    """What is to be remembered, then the questions, each answered at once; `scored` are those that count, or all.

    r e a d q q
    · · · · a a
    """
    before = torch.zeros_like(read)
    if scored is None:
        scored = torch.ones_like(questions, dtype=torch.bool)
    return Batch(
        torch.cat([read, questions], dim=-1),
        torch.cat([before, answers], dim=-1),
        torch.cat([before.bool(), scored], dim=-1),
    )
