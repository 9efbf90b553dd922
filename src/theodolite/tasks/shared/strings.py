"""What the tasks on strings share: a net reads the whole string, then answers at marker tokens that follow it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least


@dataclass(frozen=True)
class Lengths(Named):
    """The fields of a task of which only the lengths of training can be set; a task derives from it."""

    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_training_lengths(self.name, self.shortest, self.longest)


def check_training_lengths(name: str, shortest: int, longest: int) -> None:
    """Refuse training lengths that hold no length."""
    check_at_least(name, 1, shortest=shortest)
    if longest < shortest:
        raise BadInput(f"longest={longest} is below shortest={shortest} in the task '{name}': use {shortest} or more")


def token_spec(
    vocab: int, outputs: int, lengths: tuple[int, int], *, chance: float, limit: int | None = None
) -> TaskSpec:
    """Sequences of `vocab` tokens; one of `outputs` classes is asked for where they are scored."""
    return TaskSpec("sequence", vocab, outputs, vocab, lengths, "cross-entropy", chance, solved=0.99, limit=limit)


def string_spec(symbols: int, shortest: int, longest: int) -> TaskSpec:
    """Strings of equally likely symbols, and one more token for the marker; answers are such symbols too."""
    return token_spec(symbols + 1, symbols, (shortest, longest), chance=1 / symbols)


def read_then_answer(string: Tensor, answer: Tensor, marker: int) -> Batch:
    """The string, then one marker for each token of the answer, which alone is scored.

    s t r i n g # #
    · · · · · · a n
    """
    length, answers = string.shape[-1], answer.shape[-1]
    shape = (*string.shape[:-1], length + answers)
    inputs = torch.full(shape, marker, dtype=torch.int64, device=string.device)
    inputs[..., :length] = string
    targets = torch.zeros(shape, dtype=torch.int64, device=string.device)
    targets[..., length:] = answer
    mask = torch.zeros(shape, dtype=torch.bool, device=string.device)
    mask[..., length:] = True
    return Batch(inputs, targets, mask)
