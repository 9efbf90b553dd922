"""Associative recall where keys and values are several tokens long."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.recall import check_pairs, draw_pairs, recall_spec, then_ask

_MOST_KEYS = 2**12  # every row of a batch draws its keys from an order of all of them
_MOST_VALUES = 2**62  # a value is drawn as one whole number


@register("fuzzy-recall", "the value that stood beside each key, both of several tokens")
class FuzzyRecall(Named):
    """As `recall`, with keys of `key_tokens` and values of `value_tokens`; a key that is asked for is followed by one
    marker for each token of its value.

    b a 1 2 a a 0 0 a a # # b a # #   (keys = 2, values = 3, length = 2; # is the marker)
    · · · · · · · · · · 0 0 · · 1 2

    Ids are the tokens of keys, then those of values, then the marker. Keys differ in at least one token. After Poli et
    al. 2024, "Mechanistic design and scaling of hybrid architectures", where the sizes vary up to a most: here all keys
    have one size and all values one, so that a length has one number of tokens.
    """

    keys: int = 8
    values: int = 8
    key_tokens: int = 2
    value_tokens: int = 2
    shortest: int = 1
    longest: int = 12

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, keys=self.keys, key_tokens=self.key_tokens, value_tokens=self.value_tokens)
        for field, symbols, tokens, most in (
            ("key_tokens", self.keys, self.key_tokens, _MOST_KEYS),
            ("value_tokens", self.values, self.value_tokens, _MOST_VALUES),
        ):
            if symbols > 1 and tokens > math.log(most, symbols) + 1e-9:
                raise BadInput(
                    f"{field}={tokens} tokens of {symbols} kinds make more than {most} words "
                    f"in the task '{self.name}': use fewer tokens or kinds"
                )
        check_pairs(self.name, self.keys**self.key_tokens, self.values, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return recall_spec(
            self.keys + self.values + 1, self.values, self.shortest, self.longest, self.keys**self.key_tokens
        )

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, long, wide = check_length(self, length), self.key_tokens, self.value_tokens
        possible = self.keys**long, self.values**wide
        keys, values, order = draw_pairs(*possible, (members, batch), length, generator)

        read = torch.cat([_digits(keys, self.keys, long), _digits(values, self.values, wide) + self.keys], dim=-1)
        asked = _digits(keys.gather(-1, order), self.keys, long)
        answers = _digits(values.gather(-1, order), self.values, wide)
        questions = F.pad(asked, (0, wide), value=self.keys + self.values)
        scored = torch.arange(long + wide, device=read.device) >= long
        return then_ask(
            read.flatten(-2),
            questions.flatten(-2),
            F.pad(answers, (long, 0)).flatten(-2),
            scored.expand(questions.shape).flatten(-2),
        )

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        long, both = self.key_tokens, self.key_tokens + self.value_tokens
        blocks = [tuple(row[start : start + both]) for start in range(0, len(row), both)]
        beside = {block[:long]: [value - self.keys for value in block[long:]] for block in blocks[: len(blocks) // 2]}
        targets = [0.0] * (len(row) // 2)
        for block in blocks[len(blocks) // 2 :]:
            targets += [0.0] * long + beside[block[:long]]
        return targets


def _digits(numbers: Tensor, base: int, count: int) -> Tensor:
    """(…) → (…, count): the digits of each number, highest first."""
    weights = base ** torch.arange(count - 1, -1, -1, device=numbers.device)
    return numbers.unsqueeze(-1).div(weights, rounding_mode="floor") % base
