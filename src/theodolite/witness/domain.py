"""The inputs of a task: all of them where they are few enough, drawn ones beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations, product
from math import factorial, perm
from typing import Any

import torch
from torch import Tensor

from theodolite.tasks.contract import Task

MOST_INPUTS = 2**20  # vectors of bits that are all looked at
MOST_STRINGS = 2**16  # the same for strings, which cost a network more
SAMPLES = 2**14
_ROWS = 4096


@dataclass(frozen=True)
class Block:
    """Inputs of one length and where their answers are scored: (row, feature) or ids (row, token); (position,).

    `drawn` at random, or else listed: every input of that length is in some block.
    """

    inputs: Tensor
    mask: Tensor
    drawn: bool = False


@dataclass(frozen=True)
class Domain:
    """`blocks` hold every input of the task where `exhaustive`; `words` says in a phrase what they hold."""

    words: str
    exhaustive: bool
    blocks: Callable[[], Iterator[Block]]


def is_boolean(task: Task) -> bool:
    """Whether the task asks for a sign and its inputs are signs, by looking at 64 drawn ones."""
    if task.spec.kind != "vector" or task.spec.loss != "hinge":
        return False
    drawn = task.sample(1, 64, None, torch.Generator().manual_seed(0)).inputs
    return bool((drawn.abs() == 1).all())


def every_sign(bits: int) -> Iterator[Tensor]:
    """All 2^bits vectors of ±1, float64, in blocks; −1 is a set bit, the first entry the highest."""
    places = torch.arange(bits - 1, -1, -1)
    for start in range(0, 2**bits, _ROWS):
        numbers = torch.arange(start, min(start + _ROWS, 2**bits))
        yield 1.0 - 2.0 * ((numbers.unsqueeze(-1) >> places) & 1).double()


def domain_of(task: Task, seed: int = 0, most: int = MOST_INPUTS, samples: int = SAMPLES) -> Domain:
    """All inputs where there are at most `most` (strings: at most 2^16 in all), else `samples` drawn ones."""
    spec = task.spec
    if spec.kind == "vector":
        if is_boolean(task) and 2**spec.features <= most:
            mask = torch.ones(spec.outputs, dtype=torch.bool)
            words = f"all {2**spec.features:,} inputs of {spec.features} signs"
            return Domain(words, True, lambda: (Block(x, mask) for x in every_sign(spec.features)))
        size = f"2^{spec.features} are too many to verify" if is_boolean(task) else "the inputs are real numbers"
        words = f"{samples:,} drawn inputs ({size})"
        return Domain(words, False, lambda: _drawn(task, [(None, samples)], seed))
    assert spec.lengths is not None
    shortest, longest = spec.lengths
    reached, total = shortest - 1, 0
    while reached < longest:
        count = _count(task, reached + 1, min(most, MOST_STRINGS))
        if count is None or total + count > min(most, MOST_STRINGS):
            break
        reached, total = reached + 1, total + count
    rest = _spread(reached + 1, longest)
    each = max(1, samples // max(1, len(rest)) // 4)  # a string costs a network several times a vector
    parts = [f"all {total:,} inputs of length {_range(shortest, reached)}"] if total else []
    parts += [f"{each * len(rest):,} drawn ones of length {', '.join(map(str, rest))}"] if rest else []
    lengths = range(shortest, reached + 1)
    return Domain(
        " and ".join(parts),
        not rest,
        lambda: chain(_listed(task, lengths), _drawn(task, [(length, each) for length in rest], seed)),
    )


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _spread(low: int, high: int) -> list[int]:
    """A few lengths of a range, both ends among them."""
    return sorted({low + (high - low) * step // 3 for step in range(4)}) if low <= high else []


def _mask(task: Task, length: int) -> Tensor:
    """Where a string of this length is scored; the same for all of them."""
    masks = task.sample(1, 8, length, torch.Generator().manual_seed(0)).mask[0]
    assert bool((masks == masks[0]).all())
    return masks[0]


def _listed(task: Task, lengths: Sequence[int]) -> Iterator[Block]:
    for length in lengths:
        mask, rows = _mask(task, length), iter(_strings(task, length))
        while part := list(islice(rows, _ROWS)):
            yield Block(torch.tensor(part, dtype=torch.int64), mask)


def _drawn(task: Task, lengths: Sequence[tuple[int | None, int]], seed: int) -> Iterator[Block]:
    generator = torch.Generator().manual_seed(seed)
    for length, samples in lengths:
        for start in range(0, samples, _ROWS):
            batch = task.sample(1, min(_ROWS, samples - start), length, generator)
            inputs = batch.inputs[0] if task.spec.vocab is not None else batch.inputs[0].double()
            yield Block(inputs, batch.mask[0, 0], drawn=True)


# How all strings of a task are listed: by the task's own `every_input(length)`, or by one of these; `count` comes
# first, so that nothing too long is begun.


def _strings(task: Task, length: int) -> Iterator[Sequence[int]]:
    own = getattr(task, "every_input", None)
    return iter(own(length)) if own is not None else _KNOWN[task.name][0](task, length)


def _count(task: Task, length: int, most: int) -> int | None:
    """How many strings there are, None where nobody can list them; a task's own list is counted up to `most`."""
    own = getattr(task, "every_input", None)
    if own is not None:
        return sum(1 for _ in islice(own(length), most + 1))
    return _KNOWN[task.name][1](task, length) if task.name in _KNOWN else None


def _then_marked(symbols: int, length: int, answers: int) -> Iterator[Sequence[int]]:
    return ((*word, *[symbols] * answers) for word in product(range(symbols), repeat=length))


def _nested(task: Any, length: int, opened: tuple[int, ...] = ()) -> Iterator[Sequence[int]]:
    if length == 0:
        yield ()
        return
    if len(opened) < task.depth:
        for kind in range(task.types):
            yield from ((kind, *rest) for rest in _nested(task, length - 1, (*opened, kind)))
    if opened:
        yield from ((task.types + opened[-1], *rest) for rest in _nested(task, length - 1, opened[:-1]))


def _count_nested(task: Any, length: int) -> int:
    at_level = [1] + [0] * task.depth
    for _ in range(length):
        below, above = [0, *at_level[:-1]], [*at_level[1:], 0]
        at_level = [task.types * low + high for low, high in zip(below, above, strict=True)]
    return sum(at_level)


def _recalled(task: Any, length: int) -> Iterator[Sequence[int]]:
    for keys in permutations(range(task.keys), length):
        for values in product(range(task.keys, task.keys + task.values), repeat=length):
            pairs = tuple(chain.from_iterable(zip(keys, values, strict=True)))
            yield from ((*pairs, *asked) for asked in permutations(keys))


_KNOWN: Mapping[str, tuple[Callable[[Any, int], Iterator[Sequence[int]]], Callable[[Any, int], int]]] = {
    "parity-check": (lambda task, n: _then_marked(2, n, 1), lambda task, n: 2**n),
    "copy": (lambda task, n: _then_marked(task.symbols, n, n), lambda task, n: task.symbols**n),
    "reverse": (lambda task, n: _then_marked(task.symbols, n, n), lambda task, n: task.symbols**n),
    "dyck": (_nested, _count_nested),
    "recall": (_recalled, lambda task, n: perm(task.keys, n) * task.values**n * factorial(n)),
}
