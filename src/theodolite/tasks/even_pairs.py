"""Whether a string changes its symbol an even number of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from theodolite.tasks.contract import Batch, TaskSpec, check_length, register
from theodolite.tasks.shared.strings import Lengths, read_then_answer, string_spec


@register("even-pairs", "whether ab and ba stand an odd number of times in a string")
class EvenPairs(Lengths):
    """Parity of the number of places where a is followed by b or b by a, said at the marker: 0 for even, 1 for odd.

    a a b a #   (length = 4; # is the marker)
    · · · · 0   (ab and ba: two)

    The set-up of Delétang et al. 2022, "Neural Networks and the Chomsky Hierarchy": a regular language, and one that
    only the first and the last symbol decide.
    """

    @property
    def spec(self) -> TaskSpec:
        lengths = range(self.shortest, self.longest + 1)
        # One symbol holds no pair, which is even; any other length gives both answers equally often.
        return replace(
            string_spec(2, self.shortest, self.longest),
            chance=sum(1.0 if length == 1 else 0.5 for length in lengths) / len(lengths),
        )

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape = (members, batch, check_length(self, length))
        string = torch.randint(2, shape, generator=generator, device=generator.device)
        return read_then_answer(string, string[..., :1] ^ string[..., -1:], marker=2)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        string = "".join("ab"[int(symbol)] for symbol in row[:-1])
        pairs = string.count("ab") + string.count("ba")
        return [0.0] * (len(row) - 1) + [float(pairs % 2)]
