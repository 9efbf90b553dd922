"""The words aⁿbⁿ and aⁿbⁿcⁿ and their prefixes: what may come next, which only counting tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import torch

from theodolite.tasks.contract import Batch, TaskSpec, check_length, register
from theodolite.tasks.shared.strings import Lengths, string_spec


@dataclass(frozen=True)
class CountedWord(Lengths):
    """A prefix of a word of so many letters, each of them n times in a row."""

    letters: ClassVar[int]

    @property
    def spec(self) -> TaskSpec:
        return _spec(self.letters, self.shortest, self.longest)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        return _sample(self.letters, members, batch, check_length(self, length), generator)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return _solve(self.letters, row)


@register("anbn", "what may follow a prefix of aⁿbⁿ")
class AnBn(CountedWord):
    """What may follow a prefix of the word aⁿbⁿ, said at the first marker: 0 = a or b, 1 = only b, 2 = its end.

    a a a b b # #   (length = 6, n = 3, one b missing; # is the marker)
    · · · · · 1 ·

    n is uniform on 1 … `length` / 2. Half of the prefixes are the whole word, a quarter lack its last symbol, a
    quarter are any shorter ones, so that three answers in four hang on a single symbol. Markers fill the rest up to
    `length` + 1 tokens.
    """

    letters: ClassVar[int] = 2


@register("anbncn", "what may follow a prefix of aⁿbⁿcⁿ")
class AnBnCn(CountedWord):
    """What may follow a prefix of aⁿbⁿcⁿ, said at the first marker: 0 = a or b, 1 = only b, 2 = only c, 3 = its end.

    a a b b c # #   (length = 6, n = 2, one c missing; # is the marker)
    · · · · · 2 ·

    n is uniform on 1 … `length` / 3. Half of the prefixes end with the last b or, as often, the last c; a quarter lack
    one symbol of that, a quarter are any shorter ones. Markers fill the rest up to `length` + 1 tokens.
    """

    letters: ClassVar[int] = 3


def _sample(letters: int, members: int, batch: int, length: int, generator: torch.Generator) -> Batch:
    """A word of `letters` blocks of n, cut after the second or a later block, one symbol earlier, or anywhere before.

    A word longer than `length`, which only a length below `letters` brings about, is cut there.
    """
    shape, device = (members, batch, 1), generator.device
    draw = lambda low, high: torch.randint(low, high, shape, generator=generator, device=device)
    n = draw(1, max(1, length // letters) + 1)
    whole = n * draw(2, letters + 1)
    way, anywhere = draw(0, 4), torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
    shorter = 1 + (anywhere * (whole - 1)).long()
    kept = torch.where(way < 2, whole, torch.where(way == 2, whole - 1, shorter)).clamp(max=length)

    place = torch.arange(length + 1, device=device)
    inputs = torch.where(place < kept, place // n, letters)
    targets = torch.where(kept <= n, 0, kept // n)
    mask = place == kept
    return Batch(inputs, targets * mask, mask)


def _solve(letters: int, row: Sequence[float]) -> Sequence[float]:
    string = "".join("abc"[int(symbol)] for symbol in row[: row.index(letters)])
    missing = [string.count("a") - string.count(letter) for letter in "abc"[:letters]]
    if "b" not in string:
        answer = 0
    else:
        answer = next((place for place, count in enumerate(missing) if count > 0), letters)
    return [0.0] * len(string) + [float(answer)] + [0.0] * (len(row) - len(string) - 1)


@lru_cache(maxsize=256)
def _spec(letters: int, shortest: int, longest: int) -> TaskSpec:
    total, words = [0.0] * (letters + 1), [0.0] * (letters + 1)
    for length in range(1, longest + 1):
        if length < letters:
            law = _law(letters, 1, length)
        else:
            if length % letters == 0:
                words = [
                    sum_ + share for sum_, share in zip(words, _law(letters, length // letters, length), strict=True)
                ]
            law = [share / (length // letters) for share in words]
        if length >= shortest:
            total = [sum_ + share for sum_, share in zip(total, law, strict=True)]
    chance = max(total) / (longest - shortest + 1)
    return replace(string_spec(letters, shortest, longest), outputs=letters + 1, chance=chance)


def _law(letters: int, n: int, length: int) -> list[float]:
    """How likely each answer is at this n, by going through every cut of every word."""
    law = [0.0] * (letters + 1)
    for whole in range(2 * n, letters * n + 1, n):
        for kept in range(1, whole + 1):
            share = 0.5 if kept == whole else 0.25 / (whole - 1) + 0.25 * (kept == whole - 1)
            cut = min(kept, length)
            law[0 if cut <= n else cut // n] += share / (letters - 1)
    return law
