"""Parity of a string of bits, read one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from theodolite.tasks.contract import Batch, TaskSpec, check_length, register
from theodolite.tasks.shared.strings import Lengths, read_then_answer, string_spec


@register("parity-check", "parity of a string of bits, read one after the other")
class ParityCheck(Lengths):
    """Whether `length` bits hold an odd number of ones, said at the marker after them.

    1 0 1 1 #   (length = 4; # is the marker)
    · · · · 1

    The set-up of Delétang et al. 2022, "Neural Networks and the Chomsky Hierarchy", where it is a regular language.
    """

    @property
    def spec(self) -> TaskSpec:
        return string_spec(2, self.shortest, self.longest)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape = (members, batch, check_length(self, length))
        bits = torch.randint(2, shape, generator=generator, device=generator.device)
        return read_then_answer(bits, bits.sum(dim=-1, keepdim=True) & 1, marker=2)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        odd = False
        for bit in row[:-1]:
            if bit == 1:
                odd = not odd
        return [0.0] * (len(row) - 1) + [1.0 if odd else 0.0]
