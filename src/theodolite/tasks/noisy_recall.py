"""Associative recall where tokens that mean nothing stand between the pairs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.recall import check_pairs, draw_pairs, recall_spec, then_ask
from theodolite.tasks.shared.permutation import permutations


@register("noisy-recall", "the value that stood beside each key, with noise between the pairs")
class NoisyRecall(Named):
    """As `recall`, with `noise` tokens of noise for each pair at random places between the pairs.

    ~ c 2 a 0 ^ ~ b 2 b a c   (keys = 3, values = 3, noise = 1, kinds = 2, length = 3; ~ and ^ are noise)
    · · · · · · · · · 2 0 2

    Ids are the keys, then the values, then the `kinds` of noise. A pair is never parted, every placing is equally
    likely. After Poli et al. 2024, "Mechanistic design and scaling of hybrid architectures", where a pair is noise with
    a given probability: here the amount of noise is fixed, and every key is asked once.
    """

    keys: int = 64
    values: int = 64
    noise: int = 1
    kinds: int = 16
    shortest: int = 1
    longest: int = 16

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, keys=self.keys, noise=self.noise, kinds=self.kinds)
        check_pairs(self.name, self.keys, self.values, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        return recall_spec(self.keys + self.values + self.kinds, self.values, self.shortest, self.longest, self.keys)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, rows = check_length(self, length), (members, batch)
        keys, values, order = draw_pairs(self.keys, self.values, rows, length, generator)

        # A slot holds one pair or one token of noise; a pair's first token is as far as its slot, and one further for
        # every pair before it.
        slots = length * (1 + self.noise)
        slot = permutations(rows, slots, generator)[..., :length]
        pairs = torch.zeros((*rows, slots), dtype=torch.int64, device=generator.device).scatter_(-1, slot, 1)
        before = F.pad(pairs.cumsum(dim=-1)[..., :-1], (1, 0))
        place = slot + before.gather(-1, slot)

        read = torch.randint(self.kinds, (*rows, slots + length), generator=generator, device=generator.device)
        read += self.keys + self.values
        read.scatter_(-1, place, keys).scatter_(-1, place + 1, values + self.keys)
        return then_ask(read, keys.gather(-1, order), values.gather(-1, order))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        asked = len(row) // (3 + self.noise)
        read = [token for token in row[: len(row) - asked] if token < self.keys + self.values]
        beside = dict(zip(read[::2], read[1::2], strict=True))
        return [0.0] * (len(row) - asked) + [beside[key] - self.keys for key in row[len(row) - asked :]]
