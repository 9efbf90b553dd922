"""What the losses say: the best depth of a size, how flat it is about it, and the line through the best shapes.

Every shape is taken at its best rate, by the mean over seeds. Intervals resample the seeds of each shape; comparisons
are Welch's, one-sided, with Holm's correction over all of a size.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from theodolite.lab.cell import Row
from theodolite.measurement import seed_of
from theodolite.scaling.shapes import SizedShape
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.statistics.intervals import chance_of_no_lead, mean_interval
from theodolite.statistics.paired import holm

FLAT = 0.01  # of the best loss
APART = 0.05  # of the least: seeds farther apart than this are hardly of one distribution
_RESAMPLES = 2000


@dataclass(frozen=True)
class Point:
    """A shape at its best rate: bits a byte of every seed on what is held out, and their mean over steps. `edge`: the
    rate is the least or the greatest of three or more tried; `diverged`: members at all rates."""

    shape: SizedShape
    rate: float
    edge: bool
    bits: tuple[float, ...]
    curve: tuple[tuple[int, float], ...]
    diverged: int

    @property
    def mean(self) -> float:
        return statistics.fmean(self.bits)

    def to_json(self) -> dict[str, Any]:
        return {
            "size": self.shape.size,
            "depth": self.shape.depth,
            "width": self.shape.width,
            "shape": dict(self.shape.arguments),
            "parameters": self.shape.parameters,
            "rate": self.rate,
            "rate_at_edge": self.edge,
            "bits_per_byte": self.mean,
            "interval": mean_interval(self.bits),
            "seeds": list(self.bits),
            "curve": [list(pair) for pair in self.curve],
            "diverged": self.diverged,
        }


def points(rows: Iterable[Row], shapes: Mapping[str, SizedShape], bits: Callable[[float], float]) -> list[Point]:
    """One for every shape that some rate trained; `bits` turns a loss into bits a byte."""
    by_shape: dict[tuple[int, int], dict[float, list[Row]]] = {}
    for row in rows:
        shape = shapes[row.cell.key]
        by_shape.setdefault((shape.size, shape.depth), {}).setdefault(row.cell.config["lr"], []).append(row)
    found = []
    for _, by_rate in sorted(by_shape.items()):
        sound = {rate: own for rate, own in by_rate.items() if all(row["status"] != "diverged" for row in own)}
        diverged = sum(row["status"] == "diverged" for own in by_rate.values() for row in own)
        if not sound:
            continue
        rate = min(sound, key=lambda r: statistics.fmean(row["loss"] for row in sound[r]))
        own = sorted(sound[rate], key=lambda row: row.cell.config["seed"])
        curves = [{step: loss for step, loss, _ in row["curve"]} for row in own]
        curve = tuple((step, bits(statistics.fmean(c[step] for c in curves))) for step in sorted(curves[0]))
        edge = len(by_rate) > 2 and rate in (min(by_rate), max(by_rate))
        shape = shapes[own[0].cell.key]
        found.append(Point(shape, rate, edge, tuple(bits(row["loss"]) for row in own), curve, diverged))
    return found


@dataclass(frozen=True)
class Valley:
    """Of one size. `best` is the depth of least mean loss, `interval` that of its resamples; `flat`: depths within one
    per cent of its loss; `worse`: depths that are significantly worse; `enough`: the least depth to which no deeper
    one is significantly better; `settled`: the share of training after which the best depth stayed the best;
    `spread`: of the worst depth over the best, less 1."""

    size: int
    points: tuple[Point, ...]
    best: int
    interval: tuple[int, int]
    flat: tuple[int, ...]
    worse: tuple[int, ...]
    enough: int
    settled: float
    spread: float

    @property
    def unsteady(self) -> tuple[int, ...]:
        """Depths whose seeds are far apart: some of them stumbled, as at a rate that is too high."""
        return tuple(p.shape.depth for p in self.points if max(p.bits) > (1 + APART) * min(p.bits))

    def to_json(self) -> dict[str, Any]:
        names = ("size", "best", "interval", "flat", "worse", "enough", "settled", "spread", "unsteady")
        return {**{n: getattr(self, n) for n in names}, "points": [p.to_json() for p in self.points]}


def valley(of_size: Sequence[Point]) -> Valley:
    ordered = sorted(of_size, key=lambda p: p.shape.depth)
    best = min(ordered, key=lambda p: p.mean)
    drawn = percentile_interval([p.shape.depth for p in resampled_best(ordered)])
    several = all(len(p.bits) > 1 for p in ordered)
    depths = [p.shape.depth for p in ordered]
    pairs = list(combinations(range(len(ordered)), 2))
    chances = [
        chance_of_no_lead(ordered[worse].bits, ordered[better].bits)
        for pair in pairs
        for worse, better in (pair, pair[::-1])
    ]
    clear = holm(chances) if several else [False] * len(chances)
    beaten = {pair: (clear[2 * i], clear[2 * i + 1]) for i, pair in enumerate(pairs)}  # shallower, deeper one is worse
    place = ordered.index(best)
    worse = [d for i, d in enumerate(depths) if i != place and beaten[min(i, place), max(i, place)][i > place]]
    enough = next(d for i, d in enumerate(depths) if not any(beaten[i, j][0] for j in range(i + 1, len(ordered))))
    return Valley(
        ordered[0].shape.size,
        tuple(ordered),
        best.shape.depth,
        (round(drawn[0]), round(drawn[1])),
        tuple(p.shape.depth for p in ordered if p.mean <= (1 + FLAT) * best.mean),
        tuple(worse),
        enough,
        _settled(ordered, best),
        max(p.mean for p in ordered) / best.mean - 1,
    )


def resampled_best(of_size: Sequence[Point], resamples: int = _RESAMPLES) -> list[Point]:
    """The point of least mean loss in every resample of the seeds of each."""
    generator = np.random.default_rng(seed_of(["best depth", of_size[0].shape.size]))
    means = np.stack([resampled_means(p.bits, generator, resamples) for p in of_size])
    return [of_size[i] for i in means.argmin(axis=0)]


def _settled(of_size: Sequence[Point], best: Point) -> float:
    """Looks are at the same steps for all shapes of a size."""
    steps = [step for step, _ in best.curve]
    leaders = [min(of_size, key=lambda p, at=at: p.curve[at][1]) for at in range(len(steps))]
    last = max((i for i, leader in enumerate(leaders) if leader is not best), default=-1)
    return steps[min(last + 1, len(steps) - 1)] / steps[-1]


def diverged(rows: Iterable[Row], shapes: Mapping[str, SizedShape], rates: Mapping[str, float]) -> tuple[str, ...]:
    """A sentence for every size and rate at which networks did; `rates` as they were given, by the keys of cells."""
    lost: dict[tuple[int, float], list[int]] = {}
    for row in rows:
        if row["status"] == "diverged":
            key = row.cell.key
            lost.setdefault((shapes[key].size, rates[key]), []).append(shapes[key].depth)
    return tuple(
        f"size {size:,}: at a rate of {rate:g} {len(depths)} networks of {_depths(depths)} diverged"
        for (size, rate), depths in sorted(lost.items())
    )


def _depths(depths: Sequence[int]) -> str:
    own = sorted(set(depths))
    return f"depth{'s' * (len(own) > 1)} {', '.join(map(str, own))}"


@dataclass(frozen=True)
class Transition:
    """ln width = intercept + slope · depth through the best shapes of all sizes, with resampled 95 % intervals."""

    intercept: float
    slope: float
    intercept_interval: tuple[float, float]
    slope_interval: tuple[float, float]
    sizes: int

    def to_json(self) -> dict[str, Any]:
        return dict(self.__dict__)


def transition(valleys: Sequence[Valley]) -> Transition | None:
    """None where the best depths of fewer than three sizes differ: there is no line to speak of."""
    best = [next(p for p in v.points if p.shape.depth == v.best) for v in valleys]
    if len(valleys) < 3 or len({p.shape.depth for p in best}) < 3:
        return None
    drawn = zip(*(resampled_best(v.points) for v in valleys), strict=True)
    lines = [_line(one) for one in drawn if len({p.shape.depth for p in one}) > 1]
    slope, intercept = _line(best)
    slopes, intercepts = zip(*lines, strict=True)
    return Transition(intercept, slope, percentile_interval(intercepts), percentile_interval(slopes), len(valleys))


def _line(best: Sequence[Point]) -> tuple[float, float]:
    slope, intercept = np.polyfit([p.shape.depth for p in best], [math.log(p.shape.width) for p in best], 1)
    return float(slope), float(intercept)
