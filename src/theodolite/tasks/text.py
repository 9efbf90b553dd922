"""Real text: what comes next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, Task, TaskSpec, check_at_least, check_length, register_reader
from theodolite.tasks.shared.corpus import PYTHON, read_corpus
from theodolite.tasks.shared.vocabulary import BYTES, Symbols, read_symbols


@register_reader("text", "the next symbol of real text, at every place of it")
class Text(Named):
    """Windows of `context` symbols from anywhere in the text that is trained on.

    t h e _ c a t
    h e _ c a t ·

    `corpus` is a file, a folder, or `python`, the library of the Python that runs; a tenth of the documents is held
    out. `vocabulary` is 256 for bytes, or a larger number of pieces, which are found in the text. `digest` is the
    text's own: it is filled in, and a text that has another is refused.
    """

    corpus: str = PYTHON
    vocabulary: int = BYTES
    context: int = 128
    digest: str = ""

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, context=self.context)
        if self.vocabulary != BYTES and self.vocabulary < BYTES + 2:
            raise BadInput(
                f"vocabulary={self.vocabulary} is too small for the task '{self.name}': use {BYTES} for bytes, or "
                f"{BYTES + 2} or more for pieces of words"
            )
        found = read_corpus(self.corpus).digest
        if self.digest not in ("", found):
            raise BadInput(f"the text '{self.corpus}' has changed ({found}, was {self.digest}): bring back the old one")
        object.__setattr__(self, "digest", found)
        shortest = min(len(self.symbols.trained), len(self.symbols.held_out))
        if shortest <= self.context:
            raise BadInput(
                f"'{self.corpus}' is too short for a context of {self.context}: the part that is held out, or the "
                f"rest, has {shortest} symbols; use a shorter context, or give more text"
            )

    @property
    def symbols(self) -> Symbols:
        return read_symbols(self.corpus, self.digest, self.vocabulary)

    @property
    def spec(self) -> TaskSpec:
        size, limit = self.vocabulary, min(len(self.symbols.trained), len(self.symbols.held_out)) - 1
        lengths = (self.context, self.context)
        chance = _most_frequent(self.corpus, self.digest, size)
        return TaskSpec("sequence", size, size, size, lengths, "cross-entropy", chance, solved=1.0, limit=limit)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length = _check_window(self, length)
        text = _on(self.corpus, self.digest, self.vocabulary, False, generator.device)
        starts = torch.randint(
            len(text) - length + 1, (members, batch, 1), generator=generator, device=generator.device
        )
        return _windows(text, starts, length)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return [*row[1:], 0.0]

    @property
    def held_out(self) -> Task:
        return _HeldOut(self)

    def bits_per_byte(self, loss: float) -> float:
        """Of a loss in nats a symbol on what is held out: so that vocabularies compare."""
        return loss / math.log(2) / self.symbols.bytes_per_symbol


@dataclass(frozen=True)
class _HeldOut:
    """Windows at equal distances over the part that is held out: the same for every member of every network."""

    whole: Text
    name: ClassVar[str] = Text.name
    summary: ClassVar[str] = Text.summary
    version: ClassVar[int] = Text.version

    @property
    def spec(self) -> TaskSpec:
        return self.whole.spec

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length = _check_window(self, length)
        whole = self.whole
        text = _on(whole.corpus, whole.digest, whole.vocabulary, True, generator.device)
        starts = torch.arange(batch, device=generator.device) * (len(text) - length) // max(1, batch - 1)
        return _windows(text, starts[:, None].expand(members, batch, 1), length)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return self.whole.solve(row)


def _check_window(task: Task, length: int | None) -> int:
    length = check_length(task, length)
    if length < 2:
        raise BadInput(f"a window of {length} symbol of the task '{task.name}' asks for none: use 2 or more")
    return length


def _windows(text: Tensor, starts: Tensor, length: int) -> Batch:
    """(member, row, token): what is read, and the symbol after it; after the last there is none."""
    inputs = text[starts + torch.arange(length, device=text.device)]
    targets = torch.nn.functional.pad(inputs[..., 1:], (0, 1))
    mask = torch.ones_like(inputs, dtype=torch.bool)
    mask[..., -1] = False
    return Batch(inputs, targets, mask)


@lru_cache(maxsize=8)
def _on(corpus: str, digest: str, size: int, held_out: bool, device: torch.device) -> Tensor:
    symbols = read_symbols(corpus, digest, size)
    return (symbols.held_out if held_out else symbols.trained).to(device)


@lru_cache(maxsize=8)
def _most_frequent(corpus: str, digest: str, size: int) -> float:
    """The share of the most frequent symbol: what the best constant answer gets."""
    trained = read_symbols(corpus, digest, size).trained
    return float(torch.bincount(trained, minlength=size).max()) / len(trained)
