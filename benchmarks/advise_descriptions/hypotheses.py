"""Which monomials of the fields a size may be made of, simple ones first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from theodolite.advice.fields import HEADS, WIDTH

Monomials = list[tuple[str, ...]]


def hypotheses(moved: Sequence[str]) -> Iterator[Monomials]:
    """In fields whose change changes the size."""
    for count in (1, 2, 3):
        for some in itertools.combinations(moved, count):
            yield [some]
            yield [some, ()]
    yield from pairs(moved, moved)
    heads = [name for name in moved if name.split(".")[-1] in HEADS or name.endswith("attention_heads")]
    widths = [name for name in moved if name.split(".")[-1] in WIDTH]
    shares = [_share(width, head) for width in widths for head in heads]
    for share in shares:
        for count in (0, 1, 2):
            for some in itertools.combinations([n for n in moved if n not in widths], count):
                yield [(share, *some)]
    if len(moved) <= 4:
        yield [some for count in range(len(moved) + 1) for some in itertools.combinations(moved, count)]
        for share in shares:
            others = [n for n in moved if n not in widths and n not in heads]
            yield [*((n,) for n in widths), (share,)]
            yield [*((n,) for n in widths), *((share, n) for n in others), ()]
    else:
        yield [(), *((n,) for n in moved), *itertools.combinations(moved, 2)]


def pairs(moved: Sequence[str], names: Sequence[str]) -> Iterator[Monomials]:
    """Patches of an image; layers from the first few on; every second layer."""
    for one, two in itertools.permutations(names, 2):
        if one not in moved and two not in moved:
            continue
        if "image" in one or ("size" in one and "patch" in two):
            yield [(f"@grid:{one}/{two}",), ()]
        if "layer" in one or "depth" in one:
            for kind in ("over", "under", "floor", "ceil"):
                yield [(f"@{kind}:{one}/{two}",)]
            yield [(one,), (f"@floor:{one}/{two}",)]
            yield [(one,), (f"@ceil:{one}/{two}",)]


def simple(names: Sequence[str]) -> Iterator[Monomials]:
    """For tensors that only a flag brings: they were not seen with one field changed."""
    for name in names:
        yield [(name,)]
    for name in names:
        yield [(name,), ()]
    for pair in itertools.combinations(names, 2):
        yield [pair]
    for one, two in itertools.combinations(names, 2):
        yield [(one,), (two,)]
    for width in (name for name in names if name.split(".")[-1] in WIDTH):
        for heads in (name for name in names if name.split(".")[-1] in HEADS):
            share = _share(width, heads)
            yield [(share,)]
            yield [(width,), (share,)]
            for name in names:
                yield [(share, name)]


def _share(width: str, heads: str) -> str:
    """The width over the heads."""
    return f"@head:{width}/{heads}"
