"""Claim T9 of the tensor source: do the two regimes of depth against width show in training?

The study takes a GPU (`claims check T9 --preset full --device cuda`, in a folder that holds its text); what `scale`
has trained of it is not trained again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from theodolite.claims.contract import claim
from theodolite.claims.rule import Rule, Statistics, Verdict, not_run
from theodolite.claims.tensors.rank_cell import TENSORS
from theodolite.lab.cell import Cell, Row
from theodolite.measurement import seed_of
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.statistics.intervals import chance_of_no_lead
from theodolite.statistics.paired import holm
from theodolite.theory.shapes import INTERCEPT, SLOPE

DIGEST = "ed3f5f826dc4df5f"  # of the text that benchmarks/scale_text.py gathers
SEEDS = 4
_FIRST = 3000  # seeds from here on: trials used others
_RESAMPLES = 2000
_MOST = 4  # of five sizes


@dataclass(frozen=True)
class Size:
    """`tokens` in all, for every network; `rates` over the width."""

    parameters: int
    depths: tuple[int, ...]
    rates: tuple[float, ...]
    tokens: int


_DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
_THREE, _TWO, _ONE = (0.05, 0.1, 0.2), (0.1, 0.2), (0.1,)
SIZES = (
    Size(30_000, _DEPTHS[:6], _THREE, 16_000_000),
    Size(120_000, _DEPTHS, _THREE, 16_000_000),
    Size(500_000, _DEPTHS, _TWO, 16_000_000),
    Size(2_000_000, (1, 2, 4, 6, 8, 12, 16, 24), _ONE, 16_000_000),
    Size(10_000_000, (1, 2, 4, 8, 16, 32), _ONE, 12_000_000),
)


def options(size: Size) -> dict[str, Any]:
    """As `scale` takes them."""
    return {
        "net": "decoder",
        "depths": list(size.depths),
        "seeds": SEEDS,
        "seed": _FIRST,
        "rates": list(size.rates),
        "per_width": True,
        "tokens": size.tokens / size.parameters,
        "vocabulary": 256,
        "context": 128,
        "batch": 32,
        "rows": 512,
        "precision": "tf32",
    }


def _cells() -> list[Cell]:
    return [
        Cell("depth-against-width", {"text": "text", "digest": DIGEST, "size": size.parameters, **options(size)})
        for size in SIZES
    ]


@dataclass(frozen=True)
class _Shape:
    """`halfway`: mean bits a byte after half of the training."""

    depth: int
    width: int
    bits: tuple[float, ...]
    halfway: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.bits))


def _decide(rows: Sequence[Row]) -> Verdict:
    all_sizes = {row["size"]: [_shape(point) for point in row["points"]] for row in rows}
    sizes = {size: shapes for size, shapes in all_sizes.items() if settled(shapes)}
    shows = regimes(sizes)
    best = {size: min(shapes, key=lambda shape: shape.mean) for size, shapes in sizes.items()}
    slope, interval = transition(sizes)
    both, one = (sum(said is side for said in shows.values()) for side in (True, False))
    rises = interval is not None and interval[0] > 0
    falls = interval is not None and interval[1] < 0
    moving = [size for size in all_sizes if size not in sizes]
    outcome = "holds" if both >= _MOST and rises else "fails" if one >= _MOST or falls else "undecided"
    between = "no line" if interval is None else f"{slope:.4f} ({interval[0]:.4f} to {interval[1]:.4f})"
    shapes = ", ".join(f"{size:,}: {shape.depth} (width {shape.width})" for size, shape in best.items())
    return Verdict(
        outcome,
        {"both regimes": "most sizes", "slope of ln width over depth": "above 0", "published": [INTERCEPT, SLOPE]},
        {
            "best depth": {str(size): [shape.depth, shape.width] for size, shape in best.items()},
            "both regimes": {str(size): said for size, said in shows.items()},
            "slope": None if interval is None else [slope, *interval],
            "not settled": moving,
        },
        f"Both regimes at {both} of {len(all_sizes)} sizes, one alone at {one}, not settled {len(moving)}; best "
        f"depths: {shapes}; slope of ln width over depth {between}, published {SLOPE}.",
    )


def _shape(point: Mapping[str, Any]) -> _Shape:
    curve: dict[int, float] = dict(point["curve"])
    halfway = min(curve, key=lambda step: abs(step - max(curve) / 2))
    return _Shape(point["depth"], point["width"], tuple(point["seeds"]), curve[halfway])


def settled(shapes: Sequence[_Shape]) -> bool:
    """Whether the best depth halfway is the best at the end or next to it among those tried."""
    depths = sorted(shape.depth for shape in shapes)
    places = [depths.index(min(shapes, key=key).depth) for key in (lambda s: s.halfway, lambda s: s.mean)]
    return abs(places[0] - places[1]) <= 1


def regimes(sizes: Mapping[int, Sequence[_Shape]]) -> dict[int, bool | None]:
    """By size, True where the shallowest is beaten by a deeper one and the deepest by a shallower one, False where one
    of them beats all others; Holm over all pairs with one of the two, of all sizes, both ways."""
    ends = {size: _ends(shapes) for size, shapes in sizes.items()}
    pairs = [
        (size, worse, better)
        for size, shapes in sizes.items()
        for pair in combinations(shapes, 2)
        for worse, better in (pair, pair[::-1])
        if worse.depth in ends[size] or better.depth in ends[size]
    ]
    clear = holm([chance_of_no_lead(worse.bits, better.bits) for _, worse, better in pairs])
    beaten: dict[tuple[int, int], set[int]] = {}
    for (size, worse, better), is_clear in zip(pairs, clear, strict=True):
        if is_clear:
            beaten.setdefault((size, worse.depth), set()).add(better.depth)
    said: dict[int, bool | None] = {}
    for size, shapes in sizes.items():
        depths = {shape.depth for shape in shapes}
        alone = any(all(end in beaten.get((size, other), ()) for other in depths - {end}) for end in ends[size])
        said[size] = False if alone else all((size, end) in beaten for end in ends[size]) or None
    return said


def _ends(shapes: Sequence[_Shape]) -> tuple[int, int]:
    depths = [shape.depth for shape in shapes]
    return min(depths), max(depths)


def transition(sizes: Mapping[int, Sequence[_Shape]]) -> tuple[float, tuple[float, float] | None]:
    """The slope of ln width over depth through the best shapes, and its interval over resampled seeds; None where
    resamples have one best depth at all sizes."""
    generator = np.random.default_rng(seed_of(["regimes of depth and width"]))
    drawn = [_resampled(shapes, generator) for shapes in sizes.values()]
    slopes = [_slope(best) for best in zip(*drawn, strict=True) if len({shape.depth for shape in best}) > 1]
    best = [min(shapes, key=lambda shape: shape.mean) for shapes in sizes.values()]
    if len(slopes) < 0.95 * _RESAMPLES or len({shape.depth for shape in best}) < 2:
        return math.nan, None
    return _slope(best), percentile_interval(slopes)


def _resampled(shapes: Sequence[_Shape], generator: np.random.Generator) -> list[_Shape]:
    means = [resampled_means(shape.bits, generator, _RESAMPLES) for shape in shapes]
    return [shapes[place] for place in np.stack(means).argmin(axis=0)]


def _slope(best: Sequence[_Shape]) -> float:
    return float(np.polyfit([shape.depth for shape in best], [math.log(shape.width) for shape in best], 1)[0])


_STUDY = Rule(
    "Decoders (pre-norm, rotary, heads of about 16 numbers, a perceptron of about four widths) of five sizes, 30k, "
    "120k, 500k, 2M and 10M parameters without embedding and readout, all shapes of a size within 1 % of it, depths 1 "
    f"to 32 as far as the width is at least 16; text {DIGEST} as bytes, 16M tokens for every network (12M at 10M) in "
    f"batches of 32 windows of 128, {SEEDS} seeds, rates constant and in proportion to 1/width: the best of three up "
    "to 120k (0.05, 0.1, 0.2), of two at 500k (0.1, 0.2), 0.1/width above. "
    "Loss: bits a byte on documents that are held out, at the end. A size whose best depth halfway through training is "
    "neither the best at the end nor next to it among those tried has not settled and does not count. For all pairs "
    "with the least or the greatest depth, of all sizes that count, both ways, Welch's one-sided test, Holm at 5 %: a "
    "size shows both regimes if depth 1 is worse than a deeper network and the deepest is worse than a shallower one. "
    "The transition of a size is the shape of least mean loss; the slope of ln width over depth through them has a "
    f"95 % interval over resampled seeds. Holds if {_MOST} sizes or more show both regimes and the slope is above 0; "
    f"fails if at {_MOST} or more depth 1, or the deepest, is better than all others, or if the slope is below 0; "
    "undecided otherwise. The published line, ln d = 5.039 + 0.0555·L, was fitted at depths 6 to 48 and stands beside.",
    _cells,
    _decide,
    Statistics(
        f"{SEEDS} seeds of each of 38 shapes, from {_FIRST} on; trials used others (5 rates of 2 shapes of 1M; 30k and "
        "100k at 20 tokens a parameter, which is 160 and 500 steps: too few)",
        "Holm over all pairs with the least or the greatest depth, of all sizes that count, both ways",
    ),
)

claim(
    "T9",
    "Networks of equal size show two regimes in training: deeper is better only up to a depth that grows with the "
    "logarithm of the width.",
    TENSORS + "Section 7.3.2, Fig. 7.5",
    "Decided with --preset full, on a GPU: it takes trained networks of equal size over depths and widths.",
    lambda: [],
    quote="an experimental validation of the two depth efficiency/inefficiency regimes predicted by the tensorial "
    "framework of this chapter … the transition between regimes occurs in exponentially larger network sizes as the "
    "networks gets deeper",
    kind="observation",
    statistics=Statistics("none at this size", "none at this size", "none at this size"),
    full=_STUDY,
)(not_run("it takes a study of trained networks on a GPU: --preset full"))
