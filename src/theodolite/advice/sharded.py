"""The shape near the fit that a cluster's groups of devices can share, or the constraint that no shape meets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from theodolite.advice.hardware import Hardware, fill_tiles
from theodolite.advice.recommend import FACTORS, Family, Recommendation
from theodolite.advice.reshaped import Reshaped
from theodolite.advice.result import short
from theodolite.advice.rules import broken_by_hardware
from theodolite.advice.shape import Modality, ModelShape
from theodolite.errors import BadInput

TOLERANCE = 0.05  # of the budget
_WIDER = 1.6  # widths are looked for within this factor of the fitted one
_NARROWER = 0.35  # attention may lose this much of a natural logarithm of its share of the width
_GROUPS = 6  # other sizes of groups that are tried
_LARGE, _TILE, _SMALL_TILE = 1024, 64, 8


@dataclass(frozen=True)
class Sharded:
    """`shape` with its `alternatives` meets every constraint; `notes` say what of the family had to change."""

    shapes: Reshaped
    shape: ModelShape
    alternatives: tuple[ModelShape, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Search:
    config: Mapping[str, Any]
    name: str
    start: ModelShape
    modality: Modality
    family: Family
    budget: int

    def shapes(self, hardware: Hardware, group: int) -> Reshaped:
        def adjust(made: dict[str, Any], width: int, heads: int) -> dict[str, Any]:
            return fill_tiles(made, hardware, width=width, heads=heads, vocab=self.start.vocab, group=group)

        return Reshaped(self.config, self.name, self.start, self.modality, adjust)

    def nearest(
        self,
        shapes: Reshaped,
        hardware: Hardware,
        group: int,
        depth: float,
        width: float,
        interval: tuple[int, int] | None = None,
    ) -> ModelShape | None:
        """Of the shapes that meet every constraint, at about the budget: inside the interval, then nearest in depth."""
        for family, tile in product(self._families(), _tiles(width)):
            found = [
                (self._rank(shape, depth, interval), shape.width, shape.heads, shape)
                for shape in self._candidates(shapes, family, hardware, group, width, tile, interval)
            ]
            if found:
                return min(found, key=lambda one: one[:3])[3]
        return None

    def _families(self) -> Iterator[Family]:
        """As it is advised; with attention as wide as the model has it; with narrower heads."""
        yield self.family
        wide = self.start.attention_width / self.start.width
        if wide > 1:
            yield replace(self.family, attention_ratio=wide)
        yield from self.family.narrower()

    def _rank(self, shape: ModelShape, depth: float, interval: tuple[int, int] | None) -> tuple[bool, float]:
        outside = interval is not None and not interval[0] <= shape.depth <= interval[1]
        share = shape.attention_width / (shape.width * self.family.attention_ratio)
        far = abs(math.log(shape.depth / depth)) + 2 * abs(shape.params / self.budget - 1) + abs(math.log(share)) / 2
        return outside, far

    def _candidates(
        self,
        shapes: Reshaped,
        family: Family,
        hardware: Hardware,
        group: int,
        near: float,
        tile: int,
        interval: tuple[int, int] | None,
    ) -> Iterator[ModelShape]:
        for width, heads in _sizes(family, hardware, group, near, tile):
            try:
                yield from self._of_width(shapes, hardware, group, width, heads, interval)
            except BadInput:  # the family has no such shape
                continue

    def _of_width(
        self,
        shapes: Reshaped,
        hardware: Hardware,
        group: int,
        width: int,
        heads: int,
        interval: tuple[int, int] | None,
    ) -> Iterator[ModelShape]:
        """Depths about what the budget pays, and in the interval where that is within the tolerance too."""
        few = max(self.family.least, min(self.start.depth, 1000))
        one, two = shapes.near(few, width, heads), shapes.near(2 * few, width, heads)
        if one.heads != heads or one.key_value_heads * group != heads:
            return
        paid = (
            self.start.depth
            if two.params <= one.params
            else few + (self.budget - one.params) * few / (two.params - one.params)
        )
        depths = _multiples(paid, hardware.pp)
        if interval is not None:
            depths = tuple(dict.fromkeys((*depths, *_multiples(min(max(paid, interval[0]), interval[1]), hardware.pp))))
        for depth in depths:
            if depth < self.family.least:
                continue
            shape = shapes.near(depth, width, heads)
            fits = abs(shape.params / self.budget - 1) <= TOLERANCE
            if fits and not any(broken_by_hardware(shapes.config(shape), shape, hardware)):
                yield shape


def fit_to_hardware(
    config: Mapping[str, Any],
    name: str,
    start: ModelShape,
    modality: Modality,
    family: Family,
    found: Recommendation,
    budget: int,
    hardware: Hardware,
) -> Sharded:
    """The recommended shape where it can be shared, or the nearest that can; key-value groups stay if they can."""
    search = _Search(config, name, start, modality, family, budget)
    group = max(1, start.heads // max(1, start.key_value_heads))
    looked = partial(
        search.nearest,
        depth=found.fitted_depth,
        width=found.fitted_width,
        interval=(found.depth_low, found.depth_high),
    )
    for size in (group, *_other_groups(group)):
        shapes = search.shapes(hardware, size)
        shape = looked(shapes, hardware, size)
        if shape is None:
            continue
        shape = shapes.exact(shape)
        others = {shape.depth: shape}
        for factor in FACTORS:
            other = search.nearest(shapes, hardware, size, factor * shape.depth, shape.width / math.sqrt(factor))
            if other is not None and abs(math.log(other.depth / shape.depth / factor)) < abs(math.log(factor)) / 2:
                others.setdefault(other.depth, shapes.exact(other))
        alternatives = tuple(others[depth] for depth in sorted(others))
        return Sharded(shapes, shape, alternatives, _notes(start, shape, group, hardware))
    raise BadInput(_refusal(search, looked, group, hardware))


def _tiles(near: float) -> tuple[int, ...]:
    """Widths are multiples of the first where a shape has such a width, else of the next."""
    return (_TILE, _SMALL_TILE) if near >= _LARGE else (_SMALL_TILE,)


def _sizes(family: Family, hardware: Hardware, group: int, near: float, tile: int) -> Iterator[tuple[int, int]]:
    """Widths around one, with the heads that suit them."""
    together = hardware.tp * group
    free = family.stated or not family.dividing  # heads × their width need not be the width
    step = math.lcm(hardware.multiple_of, tile if free else together * family.head_width)
    first = max(1, math.ceil(near / _WIDER / step))
    for multiple in range(first, math.floor(near * _WIDER / step) + 1):
        width = multiple * step
        wanted = width * family.attention_ratio / family.head_width
        for heads in _multiples(wanted, together):
            if abs(math.log(heads / wanted)) <= _NARROWER and heads * family.head_width <= width * max(
                1, family.attention_ratio
            ):
                yield width, heads


def _multiples(near: float, step: int) -> tuple[int, ...]:
    """The one below and the one above."""
    below = math.floor(near / step + 1e-9) * step
    return tuple(value for value in dict.fromkeys((below, below + step)) if value > 0)


def _other_groups(group: int) -> list[int]:
    return sorted((2**power for power in range(7) if 2**power != group), key=lambda one: abs(math.log(one / group)))[
        :_GROUPS
    ]


def _notes(start: ModelShape, shape: ModelShape, group: int, hardware: Hardware) -> tuple[str, ...]:
    notes = []
    size = shape.heads // shape.key_value_heads
    if size != group:
        notes.append(
            f"No shape of this family's groups of {group} heads to a key-value head meets {hardware} near the fit: "
            f"groups of {size} are advised, which changes the cache of a token."
        )
    if shape.head_width != start.head_width:
        notes.append(f"Heads are {shape.head_width} wide instead of {start.head_width}, for {hardware}.")
    if start.vocab is not None and shape.vocab is not None and shape.vocab != start.vocab:
        notes.append(
            f"The vocabulary is padded from {start.vocab:,} to {shape.vocab:,} symbols, a multiple of "
            f"{hardware.sharded}."
        )
    return tuple(notes)


def _refusal(search: _Search, looked: Any, group: int, hardware: Hardware) -> str:
    """Which constraint would have to go."""
    rules = {
        "tp": "heads-divide-tp or kv-heads-divide-tp",
        "pp": "depth-divides-pp",
        "multiple_of": "width-multiple, mlp-multiple or vocab-multiple",
    }
    options = {"tp": "--tp", "pp": "--pp", "multiple_of": "--multiple-of"}
    asked = [name for name in rules if getattr(hardware, name) > 1]
    alone = []
    for name in asked:
        milder = replace(hardware, **{name: 1})
        if looked(search.shapes(milder, group), milder, group) is not None:
            alone.append(name)
    near = f"no shape within {TOLERANCE:.0%} of {short(search.budget)} parameters and near the fit meets {hardware}"
    if len(asked) == 1 or not alone:
        which = " and ".join(f"{options[name]} {getattr(hardware, name)}" for name in asked)
        cannot = "; ".join(rules[name] for name in asked)
        return f"{near}: {cannot} cannot be met, so lower {which}"
    which = " or ".join(f"{options[name]} {getattr(hardware, name)} ({rules[name]})" for name in alone)
    return (
        f"{near}: {which} cannot be met together with the rest, so lower {'it' if len(alone) == 1 else 'one of them'}"
    )
