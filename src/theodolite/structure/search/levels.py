"""Grids on which f itself takes few values: for inputs that also enter above the block that is looked at.

Whatever a shared x_s does above a block v is, with all else held fixed, a function of v alone, and so of f. On points
where f takes the values of a short list, that is one unknown a value; the rest of ∂_s f must come from below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from theodolite.structure.data.source import Array, GradientSource
from theodolite.structure.search.explain import Grid

LEVEL: frozenset[int] = frozenset((-1,))  # no variable: what a term reads that depends on the value of f

CANDIDATES = 24  # settings of the varied group, of which those that reach the widest band of values are kept
PROFILE = 9  # values along the adjusted variable to bracket a level
NEAR = 0.07  # how far settings lie from the base, as a part of the way to a fresh draw: branches must not be left
STEPS = 14  # of a bracketed secant; each but the first few doubles the digits


def level_grids(
    source: GradientSource,
    jobs: Sequence[tuple[frozenset[int], frozenset[int]]],
    generator: np.random.Generator,
    side: int,
    bases: int,
) -> list[Grid | None]:
    """For each job (varied, adjusted): settings of `varied` × values of f, brought about by one variable of `adjusted`;
    None where f cannot be brought to common values at any base."""
    starts, brackets, owners = [], [], []
    for varied, adjusted in jobs:
        starts.append(_settings(source, sorted(varied), min(adjusted), generator, bases))
    middles = _shaped(source, [start[:, 0, 0] for start, _ in starts])
    profiles = _shaped(source, [start[:, 1:] for start, _ in starts])
    points, wanted, places = [], [], []
    for number, ((start, along), middle, profile) in enumerate(zip(starts, middles, profiles, strict=True)):
        for base in range(bases):
            found = _levels(profile[base], float(middle[base]), side)
            if found is None:
                continue
            kept, levels = found
            owners.append(number)
            points.append(np.repeat(start[base, 1:][kept][:, 0], side, axis=0))
            wanted.append(np.tile(levels, side))
            near = start[base, 0, 0, min(jobs[number][1])]
            brackets.append(_brackets(np.repeat(profile[base, kept], side, axis=0), wanted[-1], along[base], near))
            places.append(np.full(side * side, min(jobs[number][1])))
    if not owners:
        return [None] * len(jobs)
    rows = np.concatenate(points)
    low, high = (np.concatenate([bracket[end] for bracket in brackets]) for end in (0, 1))
    _solve(source, rows, np.concatenate(places), np.concatenate(wanted), low, high)
    slopes = source.gradients(rows)
    shape = (len(owners), side * side, rows.shape[1])
    value, error = slopes.value.reshape(shape), slopes.error.reshape(shape)
    return [_collected(job, side, value, error, np.array(owners) == number) for number, job in enumerate(jobs)]


def _collected(
    job: tuple[frozenset[int], frozenset[int]], side: int, value: Array, error: Array, mine: NDArray[np.bool_]
) -> Grid | None:
    # where the slope changes its sign, equal values of f may be different values of the block
    sign = np.sign(value[:, :, min(job[1])])
    chosen = mine & (np.abs(sign.sum(axis=1)) == sign.shape[1])
    return Grid((job[0], LEVEL), side, value[chosen], error[chosen]) if chosen.any() else None


def _settings(
    source: GradientSource, columns: list[int], adjusted: int, generator: np.random.Generator, bases: int
) -> tuple[Array, Array]:
    """(base, 1 + candidate, place, variable): the base itself, then each setting with the adjusted variable along a
    short line; and the places on that line (base, place)."""
    base = source.points(bases, generator)
    draws = source.points(bases * CANDIDATES, generator).reshape(bases, CANDIDATES, -1)
    far = source.points(64, generator)[:, adjusted]
    here = base[:, adjusted]
    along = np.linspace(here + 2 * NEAR * (far.min() - here), here + 2 * NEAR * (far.max() - here), PROFILE, axis=1)
    points = np.repeat(base[:, None, :], 1 + CANDIDATES, axis=1)
    points[:, 1:, columns] += NEAR * (draws[:, :, columns] - base[:, None, columns])
    points = np.repeat(points[:, :, None, :], PROFILE, axis=2)
    points[:, 1:, :, adjusted] = along[:, None, :]
    return points, along


def _shaped(source: GradientSource, parts: list[Array]) -> list[Array]:
    """f at all points of the parts, in one call."""
    values = source.values(np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts]))
    ends = np.cumsum([part[..., 0].size for part in parts])[:-1]
    return [some.reshape(part.shape[:-1]) for some, part in zip(np.split(values, ends), parts, strict=True)]


def _levels(profile: Array, middle: float, side: int) -> tuple[NDArray[np.intp], Array] | None:
    room = np.minimum(profile.max(axis=1) - middle, middle - profile.min(axis=1))
    kept = np.argsort(-room)[:side]
    width = 0.9 * float(room[kept].min())
    return (kept, middle + width * np.linspace(-1.0, 1.0, side)) if width > 0 else None


def _brackets(profile: Array, wanted: Array, places: Array, near: float) -> tuple[Array, Array]:
    """For every row the interval nearest to the base in which the profile crosses what is wanted."""
    below = profile < wanted[:, None]
    distance = np.where(below[:, 1:] != below[:, :-1], np.abs((places[1:] + places[:-1]) / 2 - near)[None, :], np.inf)
    nearest = np.argmin(distance, axis=1)
    return places[nearest], places[nearest + 1]


def _solve(
    source: GradientSource, rows: Array, column: NDArray[np.intp], wanted: Array, low: Array, high: Array
) -> None:
    """Sets each row's adjusted variable such that f is what is wanted: the Illinois method, all rows at once."""
    each = np.arange(len(rows))

    def missing(place: Array) -> Array:
        rows[each, column] = place
        return source.values(rows) - wanted

    at_low, at_high = missing(low), missing(high)
    side = np.zeros(len(rows))
    for _ in range(STEPS):
        gap = at_high - at_low
        place = np.where(gap == 0, (low + high) / 2, high - at_high * (high - low) / np.where(gap == 0, 1.0, gap))
        at_place = missing(place)
        left = np.sign(at_place) == np.sign(at_low)
        # an end that stays twice counts half, so that both ends come closer
        at_high = np.where(left & (side == 1), at_high / 2, at_high)
        at_low = np.where(~left & (side == -1), at_low / 2, at_low)
        low, at_low = np.where(left, place, low), np.where(left, at_place, at_low)
        high, at_high = np.where(left, high, place), np.where(left, at_high, at_place)
        side = np.where(left, 1.0, -1.0)
    rows[each, column] = np.where(np.abs(at_low) < np.abs(at_high), low, high)
