"""The shape for a budget of parameters, counted as the model's own family counts: what the published fit asks for, or
what learnt best in our own trainings where the budget is as small as these and the fit was never made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from theodolite.advice.heads_law import heads_law
from theodolite.advice.shape import Modality, ModelShape
from theodolite.advice.trained import TrainedSize, trained
from theodolite.errors import BadInput
from theodolite.theory.heads import heads_that_see_all
from theodolite.theory.shapes import IMAGE_RATIO, Fit

Build = Callable[[int, int, int], ModelShape]
"""(depth, width, heads) → that shape of the family, with its parameters counted."""

FACTORS = (0.5, 0.75, 1.5, 2.0)
"""Depths beside the recommended one, to show what going deeper costs."""

_TILE = 64  # widths are multiples of it where they are large: matrix units work in such tiles
_LARGE = 1024
_SLACK = 0.05  # of the layers the budget pays
_FAR = 0.3  # a shape this share of the budget away is not at that budget
_UNEVEN = 0.3  # groups of heads may grow or shrink by this much of a natural logarithm
_NARROWEST = 16  # numbers in a head
_MANY = 24  # widths on either side
_NEAR = 1.3  # shapes are looked for within this factor of the fitted width


@dataclass(frozen=True)
class Recommendation:
    """`shape` is buildable; `fitted_depth` and `fitted_width` are where the fit and the budget meet, unrounded. Depths
    `from_training` are those that learnt within 1 % of the best in our own trainings of about this size, and not the
    fit's."""

    shape: ModelShape
    fitted_depth: float
    fitted_width: float
    depth_low: int
    depth_high: int
    extrapolated: bool
    from_training: bool = False


@dataclass(frozen=True)
class Family:
    """How shapes of one family grow: its heads keep their width, its groups of them their size.

    `stated`: the configuration states the head's width, so that heads × head width need not be the width.
    `dividing`: the family asks that the heads divide the width all the same.
    """

    build: Build
    head_width: int
    group: int = 1  # heads that share a key-value head
    attention_ratio: float = 1.0  # H·d_a over d, without the heads beyond the cap
    stated: bool = False
    dividing: bool = True
    least: int = 1  # layers: an encoder and a decoder need one each

    @classmethod
    def of(cls, shape: ModelShape, build: Build) -> Family:
        group = shape.heads // shape.key_value_heads if shape.key_value_heads > 1 else 1
        ratio = heads_law(shape).kept * shape.head_width / shape.width
        stated = _keeps_heads(shape, build, shape.heads * (shape.head_width + 8))
        dividing = not (shape.heads > 1 and _keeps_heads(shape, build, shape.heads * shape.head_width + 1))
        least = 2 if 0 < shape.decoder_depth < shape.depth else 1
        return cls(build, shape.head_width, max(1, group), ratio, stated, dividing, least)

    def heads(self, width: int) -> int:
        """As many as keep attention's share of the width."""
        most = max(1, int(self.attention(width) + 1e-9) // self.head_width)
        return next(heads for heads in range(most, 0, -1) if width % heads == 0) if self.dividing else most

    def attention(self, width: int) -> float:
        """H·d_a at this width: the family's share of it, where that is more than all up to what reads all of S."""
        wide = width * self.attention_ratio
        if self.attention_ratio <= 1:
            return wide
        return min(wide, max(width, heads_that_see_all(width, self.head_width) * self.head_width))

    def at(self, depth: int, width: int) -> ModelShape:
        return self.build(max(depth, self.least), width, self.heads(width))

    def uneven(self, width: int) -> float:
        """By how much of a natural logarithm the heads that share a key-value head become more or fewer."""
        if self.group == 1:
            return 0.0
        shape = self.at(self.least, width)
        return abs(math.log(shape.heads / shape.key_value_heads / self.group))

    @property
    def step(self) -> int:
        return self.head_width if self.dividing else 8

    def steps(self) -> tuple[int, ...]:
        """Widths at which counts grow evenly: groups of heads whole, then at least heads whole."""
        return (self.group * self.head_width, self.head_width) if self.dividing else (_TILE, 8)

    def narrower(self) -> Iterator[Family]:
        """The same with heads of half the width, and so on, where the configuration does not state it."""
        width = self.head_width
        while not self.stated and self.dividing and width % 2 == 0 and width >= 2 * _NARROWEST:
            width //= 2
            yield replace(self, head_width=width)

    def widths(self, near: float) -> Iterator[int]:
        """Those that can be built, around one that need not be."""
        step = self.step
        if self.stated:
            step = _TILE if near >= _LARGE else 8
        least, most = max(1, int(near / _NEAR) // step), math.ceil(near * _NEAR / step)
        middle = round(near / step)
        yield from (m * step for m in range(max(least, middle - _MANY), min(most, middle + _MANY) + 1))


def _keeps_heads(shape: ModelShape, build: Build, width: int) -> bool:
    try:
        return build(shape.depth, width, shape.heads).head_width == shape.head_width
    except BadInput:
        return False


def fit_for(modality: Modality) -> Fit:
    """The published fit, moved to the larger depth-to-width ratio of images where that is asked for."""
    return Fit(ratio=IMAGE_RATIO if modality == "image" else 1.0)


def recommend(family: Family, budget: int, modality: Modality, start_depth: int = 12) -> Recommendation:
    """By the fit of the modality where that was made, else by our own trainings where they speak of the size."""
    found = by_fit(family, budget, fit_for(modality), start_depth)
    seen = trained().near(found.shape) if found.extrapolated and modality != "image" else None
    return found if seen is None else _by_training(family, budget, seen, found, start_depth)


def _by_training(
    family: Family, budget: int, seen: TrainedSize, found: Recommendation, start_depth: int
) -> Recommendation:
    """The depth that learnt best at about this size; `found` is the fit's."""
    low, high = max(family.least, min(seen.flat)), max(family.least, max(seen.flat))
    family = replace(family, head_width=found.shape.head_width)
    affordable = _affordable(family, budget, start_depth)
    shape = _nearest(family, seen.best, _paying(family, seen.best, affordable), (low, high), affordable)
    if not low <= shape.depth <= high:  # heads too wide for such a shape: the fit's stays
        return found
    return replace(found, shape=shape, depth_low=low, depth_high=high, extrapolated=False, from_training=True)


def by_fit(family: Family, budget: int, fit: Fit, start_depth: int = 12) -> Recommendation:
    """The shape nearest to `budget` parameters in all whose depth is nearest to where the fit meets the budget."""
    affordable = _affordable(family, budget, start_depth)
    depth, width = _meeting(family, fit, affordable)
    finer = family.narrower()
    while math.isnan(depth) and (narrower := next(finer, None)):  # wide heads may leave a small budget no width
        family, affordable = narrower, _affordable(narrower, budget, start_depth)
        depth, width = _meeting(family, fit, affordable)
    if math.isnan(depth):
        raise BadInput(
            f"{budget:,} parameters are too few for one block beside this vocabulary: raise the budget, or take a "
            "smaller vocabulary or a smaller embedding rank"
        )
    ends = [end for end, _ in (_meeting(family, corner, affordable) for corner in fit.corners()) if not math.isnan(end)]
    low, high = (max(family.least, end) for end in (math.floor(min([depth, *ends])), math.ceil(max([depth, *ends]))))
    if depth < family.least:
        shape = _one_block(family, budget)
    else:
        shape = _nearest(family, depth, width, (low, high), affordable)
        for narrower in family.narrower():  # steps of narrower heads are finer
            if low <= shape.depth <= high:
                break
            shape = _nearest(narrower, depth, width, (low, high), _affordable(narrower, budget, start_depth))
    if abs(shape.params / budget - 1) > _FAR:
        raise BadInput(f"no shape of one block comes near {budget:,} parameters: raise the budget")
    return Recommendation(shape, depth, width, low, high, fit.extrapolates(shape.depth))


def alternatives(family: Family, budget: int, chosen: ModelShape) -> tuple[ModelShape, ...]:
    """Shapes of the same budget at about these factors of the depth, shallow to deep, the chosen one among them."""
    found = {chosen.depth: chosen}
    if not family.stated:
        family = replace(family, head_width=chosen.head_width)
    affordable = _affordable(family, budget, chosen.depth)
    for factor in FACTORS:
        depth, width = factor * chosen.depth, chosen.width
        if math.isfinite(affordable(width)):
            width = _paying(family, depth, affordable)
            depth = affordable(width)
        if depth >= 0.5:
            shape = family.at(round(depth), width)
            found.setdefault(shape.depth, shape)
    return tuple(found[depth] for depth in sorted(found))


def _paying(family: Family, depth: float, affordable: Callable[[int], float]) -> int:
    """The width at which the budget pays about this many layers."""
    low, high = 0, 1
    while affordable(high * family.step) > depth:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle * family.step) > depth else (low, middle)
    tile = math.lcm(family.step, _TILE) if high * family.step >= _LARGE else family.step
    first = low * family.step // tile
    around = [multiple * tile for multiple in range(max(1, first - 1), first + 4)]

    def off(width: int) -> float:
        return abs(math.log(max(affordable(width), 0.1) / depth)) + 0.4 * family.uneven(width)

    return min(around, key=off)


def _one_block(family: Family, budget: int) -> ModelShape:
    """The fewest layers, where the fit would have less than that."""
    multiple = 1
    while family.at(1, (multiple + 1) * family.step).params <= budget:
        multiple += 1
    both = (family.at(1, m * family.step) for m in (multiple, multiple + 1))
    return min(both, key=lambda shape: abs(shape.params - budget))


def _affordable(family: Family, budget: int, start: int) -> Callable[[int], float]:
    """width → how many layers the budget pays, from the counts at two depths; infinite where layers share weights."""

    @cache
    def layers(width: int) -> float:
        one, two = family.at(start, width).params, family.at(2 * start, width).params
        if two > one:
            return start + (budget - one) * start / (two - one)
        return math.inf if one <= budget else -math.inf

    return layers


def _meeting(family: Family, fit: Fit, affordable: Callable[[int], float]) -> tuple[float, float]:
    """Where the depth that the budget pays falls below the depth of the fit, between two widths of the family.

    Not a number where one block is already too much.
    """
    for step in family.steps():
        low, high = 0, 1
        while affordable(high * step) > fit.depth(high * step):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            deep = affordable(middle * step) > fit.depth(middle * step)
            low, high = (middle, high) if deep else (low, middle)
        if low:
            return _between(low * step, high * step, fit, affordable)
    return math.nan, math.nan


def _between(low: int, high: int, fit: Fit, affordable: Callable[[int], float]) -> tuple[float, float]:
    """The crossing between two widths; layers fall like a power of the width where they are many, else linearly.

    With shared layers the width is the budget's and the depth the fit's.
    """
    first, last = affordable(low), affordable(high)
    if not (math.isfinite(first) and math.isfinite(last)):
        return fit.depth(low), low
    near, far = 0.0, 1.0
    for _ in range(40):
        share = (near + far) / 2
        paid = first ** (1 - share) * last**share if last > 0 else first + share * (last - first)
        near, far = (share, far) if paid > fit.depth(low ** (1 - share) * high**share) else (near, share)
    width = low ** (1 - near) * high**near
    return fit.depth(width), width


def _nearest(
    family: Family,
    depth: float,
    width: float,
    interval: tuple[int, int],
    affordable: Callable[[int], float],
) -> ModelShape:
    """Of the widths around the fitted one: groups of heads as large unless that is far from the interval, inside it,
    then nearest."""
    least, most = interval
    if not math.isfinite(affordable(round(width))):  # layers share their weights
        return family.at(round(depth), round(width))

    def ranked(candidate: int) -> tuple[tuple[bool, bool, bool, bool, bool, bool, float], int, int]:
        layers, heads = affordable(candidate), family.heads(candidate)
        rounded = max(family.least, round(layers))
        within = min(max(rounded, least), most)
        if abs(within - layers) <= _SLACK * layers:  # a coarse step of widths: the interval before the last percents
            rounded = within
        outside = not least <= rounded <= most or layers < 0.5
        far_outside = not least / _NEAR <= rounded <= most * _NEAR or layers < 0.5
        narrow = heads * family.head_width < 0.9 * family.attention(candidate)
        uneven = family.uneven(candidate)
        coarse = candidate >= _LARGE and candidate % _TILE != 0
        far = abs(math.log(rounded / depth)) + 2 * abs(rounded - layers) / max(layers, 0.5) + 0.2 * uneven
        changed = far_outside or uneven > 0
        return (changed, outside, narrow, uneven > _UNEVEN, far_outside, coarse, far), rounded, candidate

    _, layers, chosen = min(map(ranked, family.widths(width)))
    return family.at(layers, chosen)
