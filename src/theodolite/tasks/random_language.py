"""Membership in a random regular language, against words that miss it by one symbol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.boolean import solved_share
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.automata import Automaton, edit_walk, log_paths, random_automaton
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec
from theodolite.tasks.shared.tables import on_device

MOST_STATES = 16
MOST_SYMBOLS = 4


@register("random-language", "membership in a random regular language, against near misses")
class RandomLanguage(Named):
    """Whether a random automaton accepts the string, said at the marker after it; `draw` numbers the automata.

    a b a #   (states = 3, symbols = 2, length = 3; # is the marker; the near miss of aab, abb, baa and bbb)
    · · · 0

    The automaton is complete and minimal with `states` states, and from the length `states` on every length has words
    of both kinds. A fair coin says which kind is drawn: an accepted word, all of that length equally likely; or a
    rejected one that a single substitution makes accepted, all pairs of a rejected word and an accepted one beside it
    equally likely. Such a pair exists wherever both kinds do. Where all words of a length are of one kind, any is
    drawn, and its answer is always the same.
    """

    states: int = 6
    symbols: int = 2
    draw: int = 0
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, states=self.states, symbols=self.symbols)
        check_at_least(self.name, 0, draw=self.draw)
        check_training_lengths(self.name, self.shortest, self.longest)
        for field, size, most in (("states", self.states, MOST_STATES), ("symbols", self.symbols, MOST_SYMBOLS)):
            if size > most:
                raise BadInput(f"{field}={size} are too many for the task '{self.name}': use {most} or less")
        if self._accepted_share() in (0, 1):
            raise BadInput(
                f"all words of length {self.shortest} to {self.longest} have the same answer in the task '{self.name}' "
                f"with draw={self.draw}: use a longest of {self.states} or more, or another draw"
            )

    @property
    def spec(self) -> TaskSpec:
        share = self._accepted_share()
        chance = max(share, 1 - share)
        spec = string_spec(self.symbols, self.shortest, self.longest)
        return replace(spec, outputs=2, chance=chance, solved=solved_share(chance))

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, rows = check_length(self, length), (members, batch)
        accepted_kinds = _kinds(self.automaton, length)[-1]
        if len(accepted_kinds) == 2:
            accepted = torch.randint(2, rows, generator=generator, device=generator.device)
            words = _walk(self.automaton, accepted, length, generator)
        else:
            accepted = torch.full(rows, int(True in accepted_kinds), device=generator.device)
            words = torch.randint(self.symbols, (*rows, length), generator=generator, device=generator.device)
        return read_then_answer(words, accepted.unsqueeze(-1), marker=self.symbols)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        state = 0
        for symbol in row[:-1]:
            state = self.automaton.moves[state][int(symbol)]
        return [0.0] * (len(row) - 1) + [float(self.automaton.accepting[state])]

    @property
    def automaton(self) -> Automaton:
        return random_automaton(self.states, self.symbols, self.draw)

    def _accepted_share(self) -> float:
        """Share of accepted words over the training lengths: half of a length with both kinds, else all or none."""
        kinds = _kinds(self.automaton, self.longest)[self.shortest :]
        return sum(0.5 if len(both) == 2 else float(True in both) for both in kinds) / len(kinds)


@lru_cache(maxsize=256)
def _kinds(automaton: Automaton, longest: int) -> tuple[frozenset[bool], ...]:
    """Of each length up to the longest: whether it has accepted words (True) and rejected ones (False)."""
    return tuple(islice(automaton.kinds(), longest + 1))


def _walk(automaton: Automaton, accepted: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """(…) → (…, length): a word of the asked kind, by the exact law of its next symbol given those before it."""
    walk, device = edit_walk(automaton), generator.device
    horizon = max(64, 1 << (length - 1).bit_length())  # few different tables, whatever lengths are asked for
    paths = on_device(log_paths(automaton, horizon)[: length + 1], device)
    steps = on_device(walk.steps, device)
    # The probability of a step is the share of paths that begin with it; (left, node, step), summed up over steps.
    law = (paths[:-1, steps] - paths[1:, :, None]).exp().cumsum(dim=-1)
    flat = steps.flatten()

    draws = 1 - torch.rand((length, *accepted.shape), generator=generator, device=device, dtype=torch.float64)
    node = torch.where(accepted == 1, walk.start_of_accepted, walk.start_of_rejected)
    taken = []
    for place in range(length):
        reach = law[length - 1 - place][node]
        # Never a step of probability 0: the draw is above 0, and at most 1, so at most the last sum as it was rounded.
        step = (reach < draws[place].unsqueeze(-1) * reach[..., -1:]).sum(dim=-1)
        taken.append(step)
        node = flat[node * steps.shape[1] + step]
    return torch.stack(taken, dim=-1) % automaton.symbols
