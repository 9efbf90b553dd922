"""The count of shapes between some that were built: each part grows with the layers, and as a square with the width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from theodolite.advice.rescale import dividing
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

FEW = 4
"""Layers of the smallest model that is built; the second has twice as many."""


class Interpolated:
    """From three widths with heads in proportion and two depths of each; what is shown is built and counted again."""

    def __init__(self, start: ModelShape, read: Callable[[int, int, int], ModelShape]) -> None:
        self._start = start
        heads = start.heads
        some = (heads // 2, heads, 2 * heads) if heads % 2 == 0 else (heads, 2 * heads, 3 * heads)
        share = Fraction(start.width, heads)
        wide = [(int(share * count), count) for count in some if (share * count).denominator == 1]
        if len(wide) < 3:
            raise BadInput(f"{heads} heads of {start.name} do not divide its width {start.width}: state others")
        self._built = {width: (read(FEW, width, count), read(2 * FEW, width, count)) for width, count in wide}
        try:
            self._stated = read(FEW, 2 * start.width, heads).head_width == start.head_width
        except BadInput:
            self._stated = False

    def at(self, depth: int, width: int, heads: int) -> ModelShape:
        if width % heads:
            raise BadInput(f"{heads} heads do not divide the width {width}: pass a multiple of the heads")
        start = self._start
        _, template = self._built[min(self._built, key=lambda one: abs(one - width))]
        parts = {part: self._grown(depth, width, lambda one, part=part: one.parts.get(part, 0)) for part in start.parts}
        return replace(
            template,
            depth=depth,
            width=width,
            heads=heads,
            head_width=start.head_width if self._stated else width // heads,
            key_value_heads=dividing(heads, start.key_value_heads * heads / start.heads),
            decoder_depth=round(depth * template.decoder_depth / template.depth),
            encoder_token={},
            parts=parts,
            active=self._grown(depth, width, lambda one: one.active),
            windows={},
            exact=False,
        )

    def _grown(self, depth: int, width: int, of: Callable[[ModelShape], int]) -> int:
        few = _square({wide: of(one) for wide, (one, _) in self._built.items()}, width)
        more = _square({wide: of(two) for wide, (_, two) in self._built.items()}, width)
        return max(0, round(few + (more - few) * (depth - FEW) / FEW))


def _square(known: Mapping[int, int], width: int) -> Fraction:
    """Lagrange's polynomial through three points."""
    total = Fraction(0)
    for at, value in known.items():
        weight = Fraction(value)
        for other in known:
            if other != at:
                weight *= Fraction(width - other, at - other)
        total += weight
    return total
