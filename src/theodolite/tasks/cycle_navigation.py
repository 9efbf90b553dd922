"""Steps on a cycle: where they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec


@register("cycle-navigation", "the place where steps on a cycle end")
class CycleNavigation(Named):
    """The place on a cycle of `places` after `length` moves from place 0, said at the marker.

    > > . < < < #   (places = 5, length = 6; ids 0 = < back, 1 = . stay, 2 = > forward; # is the marker)
    · · · · · · 4

    The three moves are equally likely. The set-up of Delétang et al. 2022, "Neural Networks and the Chomsky
    Hierarchy", where it is a regular task.
    """

    places: int = 5
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, places=self.places)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        chance = _best_place(self.places, self.shortest, self.longest)
        return replace(string_spec(3, self.shortest, self.longest), outputs=self.places, chance=chance)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        shape = (members, batch, check_length(self, length))
        moves = torch.randint(3, shape, generator=generator, device=generator.device)
        place = (moves - 1).sum(dim=-1, keepdim=True).remainder(self.places)
        return read_then_answer(moves, place, marker=3)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        place = 0
        for move in row[:-1]:
            if move == 2:
                place = 0 if place == self.places - 1 else place + 1
            elif move == 0:
                place = self.places - 1 if place == 0 else place - 1
        return [0.0] * (len(row) - 1) + [float(place)]


@lru_cache(maxsize=256)
def _best_place(places: int, shortest: int, longest: int) -> float:
    """Share of the most likely place, averaged over the lengths: the exact law of the walk, step by step."""
    law = [1.0] + [0.0] * (places - 1)
    total = [0.0] * places
    for length in range(1, longest + 1):
        law = [(law[place - 1] + law[place] + law[(place + 1) % places]) / 3 for place in range(places)]
        if length >= shortest:
            total = [sum_ + share for sum_, share in zip(total, law, strict=True)]
    return max(total) / (longest - shortest + 1)
